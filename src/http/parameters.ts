// Parameters of paths and queries. An invalid name in a path is answered like an unknown one, with 404; values of a query are
// converted to the types that the route declares.

import Type, { type TSchema } from 'typebox';
import {
  apiKeyNotFound,
  routeNotFound,
  serverNotFound,
  sessionUnknown,
  templateNotFound,
  userNotFound,
  validationFailed,
} from '../domain/error-catalogue.ts';
import { type GatewayError, internalError, type ValidationItem } from '../domain/errors.ts';
import { InstanceId } from '../domain/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import { TemplateId } from '../domain/template.ts';
import { isCleanText, NOT_UNICODE } from '../domain/text.ts';
import type { Shape } from '../domain/validation.ts';

export const TemplateParams = Type.Object({ template: TemplateId });
/** An instance id, alone or behind its template: see domain/registration.ts. */
export const ServerParams = Type.Object({
  server_id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._~-]{0,299}$', examples: ['everything-1'] }),
});
const accountId = (example: string) => Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$', examples: [example] });
export const UserParams = Type.Object({ user_id: accountId('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10') });
export const ApiKeyParams = Type.Object({ key_id: accountId('00112233445566ff') });
export const SessionParams = Type.Object({
  session_id: Type.String({ pattern: '^[0-9a-f]{12}$', examples: ['0123456789ab'] }),
});
export const InstanceParams = Type.Object({ template: TemplateId, instance_id: InstanceId });

const NOT_FOUND: Readonly<Record<string, (name: string) => GatewayError>> = {
  template: templateNotFound,
  instance_id: serverNotFound,
  server_id: serverNotFound,
  user_id: userNotFound,
  key_id: apiKeyNotFound,
  session_id: sessionUnknown,
  file: (name) => routeNotFound('GET', name),
  path: (name) => routeNotFound('GET', name),
};

/** The error for params that a shape refused: 422 for invalid text, else the not-found error of the first invalid name. */
export function pathRefused(params: Readonly<Record<string, string>>, shape: Shape<unknown>): GatewayError {
  // The router leaves a segment unchanged that it cannot decode.
  const unreadable = Object.entries(params).filter(
    ([, value]) => !isCleanText(value) || HIDES_BAD_TEXT.test(value),
  );
  if (unreadable.length > 0)
    return validationFailed(unreadable.map(([field]) => ({ loc: ['path', field], ...NOT_UNICODE })));
  const field = String(shape.issues(params)[0]?.loc[1]);
  const name = (params[field] ?? '').slice(0, LIMITS.locCharacters);
  return NOT_FOUND[field]?.(name) ?? internalError(new Error(`the path name "${field}" has no not-found`));
}

/** Turns a query string (without `?`) into an object. Of a repeated field the last value is used. */
type ReadQuery = (raw: string) => Readonly<Record<string, unknown>>;

/**
 * Makes a reader that converts numbers and booleans. Text that cannot be converted stays text, which validation refuses:
 * TypeBox's Convert would turn "5.5" into 5 and "" into 0. VALIDATION_ERROR for NUL characters and encoded surrogates.
 */
export function queryReader(schema: TSchema | undefined): ReadQuery {
  const types = fieldTypes(schema);
  return (raw) => {
    if (raw === '') return {};
    if (HIDES_BAD_TEXT.test(raw)) throw validationFailed([BAD_QUERY]);
    const fields = new Map(new URLSearchParams(raw));
    return Object.fromEntries([...fields].map(([field, text]) => [field, convert(text, types.get(field))]));
  };
}

/** A NUL character, or the three bytes that UTF-8 forbids for a surrogate, percent-encoded. */
const HIDES_BAD_TEXT = /%00|%ed%[ab][0-9a-f]/i;

const BAD_QUERY: ValidationItem = { loc: ['query'], ...NOT_UNICODE };

function convert(text: string, type: unknown): unknown {
  if (type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === 'number' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  if (type === 'boolean') return BOOLEANS.get(text.toLowerCase()) ?? text;
  return text;
}

/** As pydantic reads them. */
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['true', '1', 'yes', 'on', 't', 'y'].map((word) => [word, true] as const),
  ...['false', '0', 'no', 'off', 'f', 'n'].map((word) => [word, false] as const),
]);

function fieldTypes(schema: TSchema | undefined): ReadonlyMap<string, unknown> {
  const properties: unknown = schema !== undefined && 'properties' in schema ? schema.properties : {};
  return new Map(
    Object.entries(properties ?? {}).map(([field, fieldSchema]: [string, unknown]) => [
      field,
      typeof fieldSchema === 'object' && fieldSchema !== null && 'type' in fieldSchema
        ? fieldSchema.type
        : undefined,
    ]),
  );
}
