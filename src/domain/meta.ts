// `_meta` of requests, results and notifications: fields that one side adds for itself, and the other must not get.

import { isFields, type JsonFields, type JsonObject } from './json.ts';

/** The same parameters without these keys of `_meta`, and without a `_meta` in which nothing is left. */
export function withoutMeta(params: JsonObject, keys: readonly string[]): JsonObject;
export function withoutMeta(params: JsonFields, keys: readonly string[]): JsonFields;
export function withoutMeta(params: JsonFields, keys: readonly string[]): JsonFields {
  const { _meta, ...others } = params;
  if (!isFields(_meta)) return params;
  const left = Object.fromEntries(Object.entries(_meta).filter(([key]) => !keys.includes(key)));
  return Object.keys(left).length === 0 ? others : { ...others, _meta: left };
}
