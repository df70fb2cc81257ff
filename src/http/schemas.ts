// Schemas that several routes share.

import Type from 'typebox';
import type { JsonObject } from '../domain/json.ts';

/** Any JSON object. Cheaper to check than a record of unknown values. */
export const AnyObject = Type.Unsafe<JsonObject>(Type.Object({}));

/** `_meta` of an MCP request: passed on as it is. */
export const Meta = Type.Optional(AnyObject);

/** Bodies and queries in which an unknown field is a mistake of the caller. */
export const CLOSED = { additionalProperties: false } as const;

export const NullableText = Type.Union([Type.String(), Type.Null()]);

/** Why an instance gets no calls although it may be healthy, and until when; null: it gets them. */
export const NullableEjection = Type.Union([
  Type.Object({ reason: Type.String(), until: Type.String() }),
  Type.Null(),
]);

/** Templates a principal may use; null = all. */
export const NullableTemplates = Type.Union([Type.Array(Type.String()), Type.Null()]);

/** The body holds a secret that is told this once: nothing on the way may keep it. Source: RFC 6749 section 5.1. */
export const NOT_STORED: readonly string[] = ['Cache-Control', 'no-store'];

/** For the API description: what an answer 201 tells besides its body. */
export const LOCATION = { Location: 'Path of what was made' } as const;
