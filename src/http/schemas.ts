// Schemas that several routes share.

import Type from 'typebox';
import type { JsonObject } from '../domain/json.ts';

/** Any JSON object. Cheaper to check than a record of unknown values. */
export const AnyObject = Type.Unsafe<JsonObject>(Type.Object({}));

/** `_meta` of an MCP request: passed on as it is. */
export const Meta = Type.Optional(AnyObject);

/** Bodies and queries in which an unknown field is a mistake of the caller. */
export const CLOSED = { additionalProperties: false } as const;
