// Schemas, and parts of answers, that several routes share.

import Type from 'typebox';
import type { JsonObject } from '../domain/json.ts';

/** Any JSON object. Cheaper to check than a record of unknown values. */
export const AnyObject = Type.Unsafe<JsonObject>(Type.Object({}));

/** `_meta` of an MCP request: passed on as it is. */
export const Meta = Type.Optional(AnyObject);

/** Bodies and queries that refuse unknown fields. */
export const CLOSED = { additionalProperties: false } as const;

export const NullableText = Type.Union([Type.String(), Type.Null()]);

/** Why an instance gets no calls although it may be healthy, and until when; null for an instance that gets calls. */
export const NullableEjection = Type.Union([
  Type.Object({ reason: Type.String(), until: Type.String() }),
  Type.Null(),
]);

/** Templates a principal may use; null = all. */
export const NullableTemplates = Type.Union([Type.Array(Type.String()), Type.Null()]);

/** For a body with a secret: no cache may keep it. Source: RFC 6749 section 5.1. */
export const NOT_STORED: readonly string[] = ['Cache-Control', 'no-store'];

/** Header of an answer 201, for the API description. */
export const LOCATION = { Location: 'Path of what was made' } as const;

/** Rounds a measurement to a number of decimals. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
