// Schemas and parts of answers that several routes share.

import { hash } from 'node:crypto';
import Type, { type TProperties, type TSchema, type TSchemaOptions } from 'typebox';
import { GatewayError } from '../../domain/errors/errors.ts';
import { validationFailed } from '../../domain/errors/request-errors.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { timestampOf } from '../../domain/text.ts';
import { HTTP_LIMITS } from '../http-limits.ts';

/** An object that has this name in the API description, wherever it is a part of an answer. */
export function named<P extends TProperties>(schemaName: string, properties: P) {
  return Type.Object(properties, { schemaName });
}

/** Any JSON object. It is cheaper to check than a record of unknown values. */
export const AnyObject = Type.Unsafe<JsonObject>(Type.Object({}));

/** Any JSON object, with an example of its own. */
export function anyObject(example: JsonObject) {
  return Type.Unsafe<JsonObject>(Type.Object({}, { examples: [example] }));
}

/** `_meta` of an MCP request, which is passed on unchanged. */
export const Meta = Type.Optional(AnyObject);

/** A body or a query that refuses unknown fields. */
export function closed<P extends TProperties>(properties: P, options: TSchemaOptions = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

/** `limit` of a list: records of one page. */
export const PageLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: HTTP_LIMITS.pageRecords, examples: [100] }),
);

/** The `cursor` of a list: that of the page before. */
export const PageCursor = Type.Optional(Type.String({ minLength: 1, maxLength: 400 }));

/**
 * The cursor behind a record: its id, after a sum by which a damaged cursor and one of another list are noticed.
 * It stays valid when the record is deleted, and at other nodes. `list`: a name of the list.
 */
export function cursorOf(list: string, id: string): string {
  return `${hash('sha256', `${list} ${id}`, 'base64url').slice(0, CURSOR_SUM)}${id}`;
}

/** The id in a cursor; undefined without one. Throws INVALID_CURSOR. */
export function idIn(list: string, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const id = cursor.slice(CURSOR_SUM);
  if (cursorOf(list, id) !== cursor) throw new GatewayError('INVALID_CURSOR', NOT_OURS);
  return id;
}

const CURSOR_SUM = 8;
const NOT_OURS =
  'The cursor is not one of this list: it was damaged, or belongs to another list. Without a cursor the list starts from the beginning.';

/** The first page of a list, whose cursor is that of its last record; null when no record follows. */
export function pageOf<T>(
  list: string,
  rest: readonly T[],
  limit: number | undefined,
  idOf: (record: T) => string,
) {
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const isLast = last === undefined || page.length === rest.length;
  return { page, nextCursor: isLast ? null : cursorOf(list, idOf(last)) };
}

// Fields with their examples for the API description. Examples match the demo (`npm start`), where they can be tried unchanged.

export function text(example: string) {
  return Type.String({ examples: [example] });
}

export function integer(example: number) {
  return Type.Integer({ examples: [example] });
}

export function number(example: number) {
  return Type.Number({ examples: [example] });
}

export function flag(example: boolean) {
  return Type.Boolean({ examples: [example] });
}

export function nullable<S extends TSchema>(schema: S, example: unknown = null) {
  return Type.Union([schema, Type.Null()], { examples: [example] });
}

export function nullableText(example: string | null = null) {
  return nullable(Type.String(), example);
}

/** A time as ISO 8601 in UTC, with milliseconds. */
export const Time = text('2026-11-20T12:00:00.000Z');
export const NullableTime = nullableText('2026-11-20T12:00:00.000Z');

/** A time in a query: ISO 8601 with an offset or `Z`. */
export const QueryTime = Type.Optional(Type.String({ maxLength: 64, examples: ['2026-11-20T12:00:00Z'] }));

/** The time of a field of the query, in ms since 1970. Throws VALIDATION_ERROR. */
export function timeIn(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const atMs = timestampOf(text);
  if (!Number.isNaN(atMs)) return atMs;
  const msg = 'Input should be a date and a time with Z or an offset';
  throw validationFailed([{ loc: ['query', field], msg, type: 'datetime_parsing' }]);
}

/** A list of names, or null for all. */
export function nullableNames(example: readonly string[] | null) {
  return nullable(Type.Array(Type.String()), example);
}

/** Headers of an answer with a secret. Source: RFC 6749 section 5.1. */
export const NOT_STORED: readonly string[] = ['Cache-Control', 'no-store'];

/** The documented header of a 201. */
export const LOCATION = { Location: 'Path of the created resource' } as const;

/** The number with at most so many decimal places. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
