// Reads files that name MCP servers: those of clients (client-config.ts), and server.json of registries (server-json.ts). Pure: the
// command line fills the placeholders in what they give.

import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import { isJsonObject } from '../domain/json.ts';
import { readClientConfig } from './client-config.ts';
import { TemplateError } from './definition.ts';
import type { ImportedFile } from './imported-server.ts';
import { isServerJson, readServerJson } from './server-json.ts';

/** Most servers of one file. */
const MAX_SERVERS = 500;

/**
 * Reads a claude_desktop_config.json, an mcp.json of any client, or a server.json of the official registry, with comments and
 * trailing commas. `source` names the file in descriptions. Throws TemplateError for a text that is none of them.
 */
export function readImported(text: string, source: string): ImportedFile {
  const value = jsoncOf(text);
  if (!isJsonObject(value)) throw new TemplateError(['is not a JSON object']);
  const written = isJsonObject(value.server) && isServerJson(value.server) ? value.server : value;
  const file = isServerJson(written) ? readServerJson(written) : readClientConfig(written, source);
  if (file.servers.length + file.refused.length > MAX_SERVERS)
    throw new TemplateError([`has more than ${MAX_SERVERS} servers`]);
  return file;
}

function jsoncOf(text: string): unknown {
  const errors: ParseError[] = [];
  const value: unknown = parse(text.replace(/^\uFEFF/, ''), errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first === undefined) return value;
  const line = text.slice(0, first.offset).split('\n').length;
  throw new TemplateError([`is not JSON: ${printParseErrorCode(first.error)} in line ${line}`]);
}
