// Tools and resources of MCP Apps: a tool can have a page, which calls tools of its server. Source: SEP-1865.

import { isJsonObject, type JsonObject } from '../../../domain/json/json.ts';
import type { ClientProfile } from '../../../domain/mcp/client.ts';

const PAGE = 'ui://';
/** The key of earlier MCP Apps in `_meta`. */
const FLAT = 'ui/resourceUri';
const EXTENSION = 'io.modelcontextprotocol/ui';

export function isPage(uri: string): boolean {
  return uri.startsWith(PAGE);
}

/** The URI of the page of a tool. */
export function appPageOf({ _meta }: JsonObject): string | undefined {
  if (!isJsonObject(_meta)) return undefined;
  const uri = isJsonObject(_meta.ui) ? (_meta.ui.resourceUri ?? _meta[FLAT]) : _meta[FLAT];
  return typeof uri === 'string' && isPage(uri) ? uri : undefined;
}

/** A tool that has a page, with another URI of it. */
export function withPage(tool: JsonObject, uri: string): JsonObject {
  const { _meta } = tool;
  if (!isJsonObject(_meta)) return tool;
  const ui = isJsonObject(_meta.ui) && { ui: { ..._meta.ui, resourceUri: uri } };
  return { ...tool, _meta: { ..._meta, ...ui, ...(_meta[FLAT] === undefined ? {} : { [FLAT]: uri }) } };
}

/** True for a tool that pages call, and that hosts keep from models. */
export function isForPagesOnly({ _meta }: JsonObject): boolean {
  const visibility = isJsonObject(_meta) && isJsonObject(_meta.ui) ? _meta.ui.visibility : undefined;
  return Array.isArray(visibility) && visibility.length > 0 && !visibility.includes('model');
}

/** True for a client that shows pages. */
export function showsPages({ capabilities: { extensions } }: ClientProfile): boolean {
  return isJsonObject(extensions) && extensions[EXTENSION] !== undefined;
}
