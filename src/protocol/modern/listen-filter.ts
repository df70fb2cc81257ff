// What a client that listens opts in to, what of it the servers can tell, and which message is part of that.
// Source: MCP 2026-07-28 basic/patterns/subscriptions.

import { fieldValue, isJsonObject, type JsonFields, type JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ListField } from '../../domain/mcp.ts';
import { announcesChanges, announcesUpdates, changedList, NOTICED_LISTS } from '../../domain/notices.ts';
import { isAboutOneOf } from '../../domain/resource-uris.ts';
import { isTooLong, MOST_REFERENCE_BYTES } from '../client-bounds.ts';
import type { WantedChanges } from '../ports.ts';
import type { RpcFailure } from '../rpc-failure.ts';
import { invalidParams } from './modern-call.ts';

/** What will be told: as the client is to be shown it, and as the backends are to be asked for it. */
export interface Granted {
  readonly shown: JsonObject;
  readonly wanted: WantedChanges;
}

/** Reads the filter, and leaves out what the servers do not announce. Throws RpcFailure, -32602, for what is none. */
export function grant(params: JsonFields, capabilities: JsonObject): Granted {
  const notifications = fieldValue(params.notifications);
  if (!isJsonObject(notifications)) throw badFilter('`notifications` must be an object');
  const shown: JsonObject = {};
  const lists = new Set<ListField>();
  for (const list of NOTICED_LISTS) {
    const name = `${list}ListChanged`;
    if (!readFlag(notifications, name) || !announcesChanges(capabilities, list)) continue;
    shown[name] = true;
    lists.add(list);
    if (list === 'resources') lists.add('resourceTemplates');
  }
  const uris = readUris(notifications);
  if (uris.length === 0 || !announcesUpdates(capabilities)) {
    return { shown, wanted: { lists, resources: new Set() } };
  }
  shown.resourceSubscriptions = uris;
  return { shown, wanted: { lists, resources: new Set(uris) } };
}

/** True for a message that is part of what was granted, whatever else a backend may say. */
export function isGranted(method: string, { uri }: JsonObject, { lists, resources }: WantedChanges): boolean {
  const list = changedList(method);
  if (list !== undefined) return lists.has(list);
  return method === 'notifications/resources/updated' && isAboutOneOf(uri, resources);
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
