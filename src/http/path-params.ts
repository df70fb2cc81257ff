// Names in paths: which template, which instance, which account. A name that cannot be one is not found, like any other
// unknown name.

import Type from 'typebox';
import { apiKeyNotFound, userNotFound } from '../domain/account-errors.ts';
import { type GatewayError, internalError } from '../domain/errors.ts';
import { InstanceId } from '../domain/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import { serverNotFound, templateNotFound } from '../domain/registry-errors.ts';
import { routeNotFound, validationFailed } from '../domain/request-errors.ts';
import { TemplateId } from '../domain/template.ts';
import { isCleanText, NOT_UNICODE } from '../domain/text.ts';
import type { Shape } from '../domain/validation.ts';
import { HIDES_BAD_TEXT } from './query.ts';

export const TemplateParams = Type.Object({ template: TemplateId });
/** A server id is an instance id, or a template and one: see domain/registration.ts. */
export const ServerParams = Type.Object({
  server_id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._~-]{0,299}$' }),
});
const AccountId = Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' });
export const UserParams = Type.Object({ user_id: AccountId });
export const ApiKeyParams = Type.Object({ key_id: AccountId });
export const InstanceParams = Type.Object({ template: TemplateId, instance_id: InstanceId });

/** How each name of a path is missed. */
const NOT_FOUND: Readonly<Record<string, (name: string) => GatewayError>> = {
  template: templateNotFound,
  instance_id: serverNotFound,
  server_id: serverNotFound,
  user_id: userNotFound,
  key_id: apiKeyNotFound,
  file: (name) => routeNotFound('GET', name),
};

/** The error for params that a shape refused: 422 for text no name may hold, else the not-found of the first bad name. */
export function pathRefused(params: Readonly<Record<string, string>>, shape: Shape<unknown>): GatewayError {
  // The router leaves a segment as it was when it cannot be decoded.
  const unreadable = Object.entries(params).filter(
    ([, value]) => !isCleanText(value) || HIDES_BAD_TEXT.test(value),
  );
  if (unreadable.length > 0) {
    return validationFailed(unreadable.map(([field]) => ({ loc: ['path', field], ...NOT_UNICODE })));
  }
  const field = String(shape.findings(params)[0]?.loc[1]);
  const name = (params[field] ?? '').slice(0, LIMITS.locCharacters);
  // A route that declares another name has to say here how it is missed.
  return NOT_FOUND[field]?.(name) ?? internalError(new Error(`the path name "${field}" has no not-found`));
}
