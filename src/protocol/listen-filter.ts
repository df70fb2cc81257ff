// What a client that listens opts in to, what of it the servers can tell, and which message is part of that.
// Source: MCP 2026-07-28 basic/patterns/subscriptions.

import { isJsonObject, type JsonObject } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import type { ListField } from '../domain/mcp.ts';
import { isTooLong, MOST_REFERENCE_BYTES } from './client-bounds.ts';
import { invalidParams } from './modern-call.ts';
import type { WantedChanges } from './ports.ts';
import type { RpcFailure } from './rpc-failure.ts';

/** What will be told: as the client is to be shown it, and as the backends are to be asked for it. */
export interface Granted {
  readonly shown: JsonObject;
  readonly wanted: WantedChanges;
}

/** A kind of news: its name in the filter, who must announce it, and the lists it is about. */
const KINDS: readonly (readonly [name: string, capability: string, lists: readonly ListField[]])[] = [
  ['toolsListChanged', 'tools', ['tools']],
  ['promptsListChanged', 'prompts', ['prompts']],
  ['resourcesListChanged', 'resources', ['resources', 'resourceTemplates']],
];

/** Reads the filter, and leaves out what the servers do not announce. Throws RpcFailure, -32602, for what is none. */
export function grant({ notifications }: JsonObject, capabilities: JsonObject): Granted {
  if (!isJsonObject(notifications)) throw badFilter('`notifications` must be an object');
  const shown: JsonObject = {};
  const lists = new Set<ListField>();
  for (const [name, capability, about] of KINDS) {
    if (!readFlag(notifications, name) || !announces(capabilities, capability, 'listChanged')) continue;
    shown[name] = true;
    for (const list of about) lists.add(list);
  }
  const uris = readUris(notifications);
  if (uris.length === 0 || !announces(capabilities, 'resources', 'subscribe')) {
    return { shown, wanted: { lists, resources: new Set() } };
  }
  shown.resourceSubscriptions = uris;
  return { shown, wanted: { lists, resources: new Set(uris) } };
}

/** True for a message that is part of what was granted, whatever else a backend may say. */
export function isGranted(method: string, { uri }: JsonObject, { lists, resources }: WantedChanges): boolean {
  switch (method) {
    case 'notifications/tools/list_changed':
      return lists.has('tools');
    case 'notifications/prompts/list_changed':
      return lists.has('prompts');
    case 'notifications/resources/list_changed':
      return lists.has('resources');
    case 'notifications/resources/updated':
      return typeof uri === 'string' && isSubscribed(uri, resources);
    default:
      return false;
  }
}

/** A server may tell of a part of the resource that was subscribed to. Source: server/resources#subscriptions. */
function isSubscribed(uri: string, resources: ReadonlySet<string>): boolean {
  if (resources.has(uri)) return true;
  const isPartOf = (whole: string) => whole.endsWith('/') || INSIDE.has(uri.charAt(whole.length));
  return [...resources].some((whole) => uri.startsWith(whole) && isPartOf(whole));
}

const INSIDE: ReadonlySet<string> = new Set(['/', '?', '#']);

function announces(capabilities: JsonObject, name: string, flag: string): boolean {
  const capability = capabilities[name];
  return isJsonObject(capability) && capability[flag] === true;
}

function readFlag(notifications: JsonObject, name: string): boolean {
  const value = notifications[name];
  if (value !== undefined && typeof value !== 'boolean') throw badFilter(`\`${name}\` must be a boolean`);
  return value === true;
}

function readUris({ resourceSubscriptions = [] }: JsonObject): string[] {
  const isList = Array.isArray(resourceSubscriptions);
  const uris = isList ? resourceSubscriptions.filter((uri) => typeof uri === 'string') : [];
  if (!isList || uris.length < resourceSubscriptions.length) {
    throw badFilter('`resourceSubscriptions` must be a list of URIs');
  }
  if (uris.some(isTooLong)) throw badFilter(`a URI has at most ${MOST_REFERENCE_BYTES} bytes`);
  if (uris.length <= LIMITS.subscriptionsPerClient) return uris;
  throw badFilter(`\`resourceSubscriptions\` has at most ${LIMITS.subscriptionsPerClient} URIs`);
}

function badFilter(what: string): RpcFailure {
  return invalidParams(`Invalid params: ${what}`);
}
