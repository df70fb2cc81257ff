// Bounds of client input that is stored or used as a key: capabilities and client info, cursors, URIs of resources. The code of
// each era refuses what exceeds them.

import { createHash } from 'node:crypto';
import { type JsonFields, type JsonObject, valuesIn } from '../domain/json.ts';

/** Capabilities and client info, which are stored as long as the session: UTF-16 units of JSON, and values with keys. */
export const MOST_PROFILE_UNITS = 32 * 1024;
export const MOST_PROFILE_VALUES = 1_000;
/** Longest cursor, and longest URI. UTF-8. */
export const MOST_REFERENCE_BYTES = 8 * 1024;

/** True when capabilities and client info have together more than MOST_PROFILE_UNITS or MOST_PROFILE_VALUES. */
export function isProfileTooLarge(capabilities: JsonObject, clientInfo: JsonObject): boolean {
  const profile = [capabilities, clientInfo];
  const isTooLarge = valuesIn(profile, MOST_PROFILE_VALUES) > MOST_PROFILE_VALUES;
  return isTooLarge || JSON.stringify(profile).length > MOST_PROFILE_UNITS;
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
