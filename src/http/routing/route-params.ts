// The parameters of routes: an invalid name in a path is answered like an unknown one, with 404, but for PUT; values of a
// query are converted to their declared types.

import Type, { type TObject, type TSchema } from 'typebox';
import { TemplateId } from '../../domain/accounts/input-schemas.ts';
import {
  apiKeyNotFound,
  clientNotFound,
  grantNotFound,
  userNotFound,
} from '../../domain/errors/account-errors.ts';
import type { GatewayError, ValidationItem } from '../../domain/errors/errors.ts';
import { nodeNotFound } from '../../domain/errors/node-errors.ts';
import { serverNotFound, templateNotFound, viewNotFound } from '../../domain/errors/registry-errors.ts';
import { routeNotFound, validationFailed } from '../../domain/errors/request-errors.ts';
import { sessionUnknown } from '../../domain/errors/session-errors.ts';
import type { Shape } from '../../domain/errors/validation.ts';
import { InstanceId } from '../../domain/instances/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import { cutText, HIDES_BAD_TEXT, isCleanText, NOT_UNICODE } from '../../domain/text.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export const TemplateParams = Type.Object({ template: TemplateId });
export const ViewParams = Type.Object({ view: Type.String({ ...TemplateId, examples: ['support'] }) });
/** An instance id, alone or after its template: see domain/registration/registration.ts. */
export const ServerParams = Type.Object({
  server_id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._~-]{0,299}$', examples: ['everything-1'] }),
});
const accountId = (example: string) => Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$', examples: [example] });
export const UserParams = Type.Object({ user_id: accountId('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10') });
export const ApiKeyParams = Type.Object({ key_id: accountId('00112233445566ff') });
export const ConnectionParams = Type.Object({
  connection_id: Type.String({
    pattern: '^[A-Za-z0-9_-]{1,64}$',
    examples: ['5d41402abc4b2a76b9719d911017c592'],
  }),
});
export const GrantParams = Type.Object({
  grant_id: Type.String({
    pattern: '^[A-Za-z0-9_-]{1,64}$',
    examples: ['8c0e7f64-35a5-4a0e-9f43-8a3d9d2f6a11'],
  }),
});
export const SessionParams = Type.Object({
  session_id: Type.String({ pattern: '^[0-9a-f]{12}$', examples: ['0123456789ab'] }),
});
export const NodeParams = Type.Object({
  node_id: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,299}(?:/[0-9]{1,2})?$',
    examples: ['local'],
  }),
});
export const InstanceParams = Type.Object({ template: TemplateId, instance_id: InstanceId });

export const NOT_FOUND: Readonly<Record<string, (name: string) => GatewayError>> = {
  template: templateNotFound,
  view: viewNotFound,
  instance_id: serverNotFound,
  server_id: serverNotFound,
  user_id: userNotFound,
  key_id: apiKeyNotFound,
  grant_id: grantNotFound,
  client_id: clientNotFound,
  session_id: sessionUnknown,
  node_id: nodeNotFound,
};

/**
 * The error for params that a shape refused: 422 for invalid text, and for a name that PUT would create, else the
 * not-found error of the first invalid name.
 */
export function pathRefused(
  method: Method,
  path: string,
  params: Readonly<Record<string, string>>,
  shape: Shape<unknown>,
): GatewayError {
  // The router leaves a segment unchanged when it cannot decode it.
  const unreadable = Object.entries(params).filter(
    ([, value]) => !isCleanText(value) || HIDES_BAD_TEXT.test(value),
  );
  if (unreadable.length > 0)
    return validationFailed(unreadable.map(([field]) => ({ loc: ['path', field], ...NOT_UNICODE })));
  const issues = shape.issues(params);
  if (method === 'PUT') return validationFailed(issues);
  const field = String(issues[0]?.loc[1]);
  const name = cutText(params[field] ?? '', LIMITS.locCharacters);
  // Other parameters are names of files.
  return NOT_FOUND[field]?.(name) ?? routeNotFound('GET', path.slice(0, path.search(/[:*]/)) + name);
}

/**
 * Makes a reader that turns a query string (without `?`) into an object, and converts numbers and booleans. The
 * last value of a repeated field counts. Text that cannot be converted stays text, which validation refuses:
 * TypeBox's Convert would turn "5.5" into 5 and "" into 0. Throws VALIDATION_ERROR for NUL characters and encoded
 * surrogates.
 */
export function queryReader(schema: TObject | undefined): (raw: string) => Readonly<Record<string, unknown>> {
  const fields = Object.entries(schema?.properties ?? {});
  const types = new Map(
    fields.map(([field, { type }]: [string, TSchema & { readonly type?: unknown }]) => [field, type]),
  );
  return (raw) => {
    if (raw === '') return {};
    if (HIDES_BAD_TEXT.test(raw)) throw validationFailed([BAD_QUERY]);
    const texts = new Map(new URLSearchParams(raw));
    return Object.fromEntries([...texts].map(([field, text]) => [field, convert(text, types.get(field))]));
  };
}

const BAD_QUERY: ValidationItem = { loc: ['query'], ...NOT_UNICODE };

function convert(text: string, type: unknown): unknown {
  if (type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === 'boolean' && /^(?:true|1)$/i.test(text)) return true;
  if (type === 'boolean' && /^(?:false|0)$/i.test(text)) return false;
  return text;
}
