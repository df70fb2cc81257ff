// Bounds of client input that is stored or used as a key: capabilities and client info, cursors, URIs of resources. The code of
// each era refuses what exceeds them.

import { createHash } from 'node:crypto';
import type { JsonFields, JsonObject } from '../domain/json.ts';

/** Capabilities and client info, which are stored as long as the session. UTF-16 units of JSON. */
export const MOST_PROFILE_UNITS = 32 * 1024;
/** Longest cursor, and longest URI. UTF-8. */
export const MOST_REFERENCE_BYTES = 8 * 1024;

/** True when capabilities and client info have together more than MOST_PROFILE_UNITS. */
export function isProfileTooLarge(capabilities: JsonObject, clientInfo: JsonObject): boolean {
  return JSON.stringify([capabilities, clientInfo]).length > MOST_PROFILE_UNITS;
}

export function isTooLong(text: string): boolean {
  return Buffer.byteLength(text) > MOST_REFERENCE_BYTES;
}

/** The name of the field that is too long; undefined when none is. */
export function tooLongIn(method: string, params: JsonFields | undefined): 'cursor' | 'uri' | undefined {
  if (params === undefined) return undefined;
  const { cursor, uri } = params;
  if (typeof cursor === 'string' && isTooLong(cursor)) return 'cursor';
  return typeof uri === 'string' && ABOUT_RESOURCES.has(method) && isTooLong(uri) ? 'uri' : undefined;
}

/** A digest of texts of any length, as part of a key. */
export function shortKey(...texts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(texts)).digest('base64url');
}

const ABOUT_RESOURCES: ReadonlySet<string> = new Set([
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
]);
