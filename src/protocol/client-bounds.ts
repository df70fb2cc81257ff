// Bounds of client input that is stored or used as a key: capabilities and client info, cursors, URIs of resources. The
// code of each era refuses input that exceeds them.

import { hash } from 'node:crypto';
import { type JsonFields, type JsonObject, valuesIn } from '../domain/json/json.ts';
import { isTaskMethod, listReturnedBy, METHODS, SUBSCRIBE, UNSUBSCRIBE } from '../domain/mcp/mcp.ts';
import { caseless } from '../domain/text.ts';
import { isTaskId, MAX_TASK_ID_LENGTH } from './known-tasks.ts';

/** Bytes of a stream that a client of the MCP endpoint may leave unread before messages are dropped. */
export const MAX_UNREAD_BYTES = 1024 * 1024;

/**
 * The most UTF-16 units of JSON, and the most values, of capabilities and client info together. Both are kept as long
 * as the session.
 */
export const MAX_PROFILE_UNITS = 32 * 1024;
export const MAX_PROFILE_VALUES = 1_000;
/** The most bytes (UTF-8) of a cursor or a URI. */
export const MAX_REFERENCE_BYTES = 8 * 1024;

/** True when capabilities and client info together exceed MAX_PROFILE_UNITS or MAX_PROFILE_VALUES. */
export function isProfileTooLarge(capabilities: JsonObject, clientInfo: JsonObject): boolean {
  const profile = [capabilities, clientInfo];
  const isTooLarge = valuesIn(profile, MAX_PROFILE_VALUES) > MAX_PROFILE_VALUES;
  return isTooLarge || JSON.stringify(profile).length > MAX_PROFILE_UNITS;
}

/** The fields that have a value: some serializers write null for a field without one. */
export function declaredFields(fields: JsonObject): JsonObject {
  const entries = Object.entries(fields);
  const declared = entries.filter(([, value]) => value !== null);
  return declared.length === entries.length ? fields : Object.fromEntries(declared);
}

export function isTooLong(text: string): boolean {
  return Buffer.byteLength(text) > MAX_REFERENCE_BYTES;
}

/**
 * The fault of the method, or of the field that names a page, resource, task, tool or prompt; undefined when there is none.
 * The field may be too long; or a backend may read it in another way than the gateway, because it is not a text
 * (`["delete"]` for `delete`) or is repeated in other letters (`Name`). A cursor may be null.
 */
export function badReferenceIn(method: string, params: JsonFields = {}): string | undefined {
  const { cursor, uri, taskId, name } = params;
  if (METHODS[method] === undefined && isTooLong(method)) return 'the method is too long';
  if (METHODS[method] !== undefined || ABOUT_RESOURCES.has(method) || isTaskMethod(method))
    for (const field in params)
      if (!READ_HERE.has(field) && READ_CASELESS.has(caseless(field)))
        return `"${field}" is not a field: upper and lower case count`;
  if (isTaskMethod(method) && method !== 'tasks/list' && !isTaskId(taskId))
    return `taskId must be a string of at most ${MAX_TASK_ID_LENGTH} characters`;
  if (ABOUT_RESOURCES.has(method)) return badText('uri', uri);
  if (METHODS[method]?.nameField === 'name' && typeof name !== 'string') return 'name must be a string';
  // In other methods this field means nothing, but may have any length.
  const isPage = listReturnedBy(method) !== undefined || method === 'tasks/list';
  return isPage || typeof cursor === 'string' ? badText('cursor', cursor ?? '') : undefined;
}

function badText(name: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return `${name} must be a string`;
  return isTooLong(value) ? `${name} is too long` : undefined;
}

/** A digest of texts of any length, to be part of a key. */
export function shortKey(...texts: readonly string[]): string {
  return hash('sha256', JSON.stringify(texts), 'base64url');
}

/** The fields by which the gateway makes decisions. */
const READ_HERE: ReadonlySet<string> = new Set([
  'name',
  'arguments',
  'uri',
  'taskId',
  'task',
  'ref',
  'cursor',
  '_meta',
]);
const READ_CASELESS: ReadonlySet<string> = new Set([...READ_HERE].map(caseless));

const ABOUT_RESOURCES: ReadonlySet<string> = new Set(['resources/read', SUBSCRIBE, UNSUBSCRIBE]);
