// Reads files that name MCP servers: those of clients (client-config.ts), and server.json of registries (server-json.ts).
// Pure: the command line fills the placeholders in the result.

import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import { giveTexts, isDeeper, isJsonObject, jsonIn } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { asWords } from '../domain/text.ts';
import { readClientConfig } from './client-config.ts';
import { TemplateError } from './definition.ts';
import type { ImportedFile } from './imported-server.ts';
import { isServerJson, readServerJson } from './server-json.ts';

/** The most servers of one file. */
const MAX_SERVERS = 500;

/**
 * Reads a claude_desktop_config.json, an mcp.json of any client, or a server.json of the official registry, with comments and
 * trailing commas. `source` names the file in descriptions. Throws TemplateError for a text that is none of them.
 */
export function readImported(text: string, source: string): ImportedFile {
  const value = jsoncOf(text);
  if (isDeeper(value, LIMITS.nestingDepth)) throw tooDeep();
  if (!isJsonObject(value)) throw new TemplateError(['is not a JSON object']);
  giveTexts(value);
  const written = isJsonObject(value.server) && isServerJson(value.server) ? value.server : value;
  const file = isServerJson(written) ? readServerJson(written) : readClientConfig(written, source);
  if (file.servers.length + file.refused.length > MAX_SERVERS)
    throw new TemplateError([`has more than ${MAX_SERVERS} servers`]);
  return file;
}

/** The value of JSON; comments and trailing commas are removed only where the text has them. */
function jsoncOf(written: string): unknown {
  const text = written.replace(/^\uFEFF/, '');
  const json = jsonIn(text);
  if (json !== undefined) return json;
  const errors: ParseError[] = [];
  const value = parsed(text, errors);
  const [first] = errors;
  if (first === undefined) return value;
  const line = text.slice(0, first.offset).split('\n').length;
  throw new TemplateError([`is not JSON: ${asWords(printParseErrorCode(first.error))} in line ${line}`]);
}

function parsed(text: string, errors: ParseError[]): unknown {
  try {
    return parse(text, errors, { allowTrailingComma: true });
  } catch (thrown) {
    throw thrown instanceof RangeError ? tooDeep() : thrown;
  }
}

function tooDeep(): TemplateError {
  return new TemplateError([`is nested deeper than ${LIMITS.nestingDepth} levels`]);
}
