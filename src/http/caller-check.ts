// Whether a caller may come in, and whether one who came in still might: asked again while an event stream of theirs is
// open. Who somebody is, is src/auth's to say.

import type { IncomingMessage } from 'node:http';
import type { Auth, Credentials } from '../auth/auth.ts';
import { mayDo, mayUse, type Principal, type Scope } from '../domain/account.ts';
import {
  accountsNeedAllTemplates,
  insufficientPermissions,
  invalidCredentials,
} from '../domain/account-errors.ts';
import { asGatewayError, type GatewayError, hasCode } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { templateNotFound } from '../domain/registry-errors.ts';
import type { HttpContext } from './context.ts';

/** Why a caller may not go on; undefined when they may. */
export type Refusal = GatewayError | undefined;

/** Asks it for one request. Never throws or rejects; without a promise when the caller was verified lately. */
export type CallerCheck = (context: HttpContext) => Refusal | Promise<Refusal>;

/** What a request says of who sends it. */
export function credentialsOf({ headers }: Pick<IncomingMessage, 'headers'>): Credentials {
  const { authorization, 'x-api-key': key } = headers;
  // Node joins what is sent twice: only a few headers ever come as a list, and this is none of them.
  return { authorization, apiKey: typeof key === 'string' ? key : undefined };
}

/** True for routes that anybody with one of these scopes may use for templates and instances; accounts are an admin's. */
export function readsRegistry(anyOf: readonly Scope[]): boolean {
  return !anyOf.includes('admin');
}

/** INSUFFICIENT_PERMISSIONS, or TEMPLATE_NOT_FOUND for a template that is not theirs. */
export function refusalOf(principal: Principal, anyOf: readonly Scope[], template?: string): Refusal {
  if (!mayDo(principal, anyOf)) return insufficientPermissions(anyOf);
  // With an account of its own making it would be limited no more.
  if (principal.templates !== undefined && anyOf.every((scope) => scope === 'admin'))
    return accountsNeedAllTemplates();
  if (template !== undefined && !mayUse(principal, template))
    return templateNotFound(template.slice(0, LIMITS.locCharacters));
  return undefined;
}

/**
 * Makes the check of a route that needs one of these scopes. A caller is refused whose credentials are void, or belong to
 * somebody else by now, and where no template is named also one who may use others than before, or is no admin any more: what
 * they hear was chosen by that. A database that does not answer refuses nobody.
 */
export function callerCheck(anyOf: readonly Scope[], auth: Pick<Auth, 'authenticate'>): CallerCheck {
  return ({ req: request, state: { principal: before, template } }) => {
    const judge = (now: Principal): Refusal => {
      if (now === before || before === undefined) return undefined;
      if (now.id !== before.id) return invalidCredentials();
      const isOther =
        template === undefined && (!hasSameTemplates(now, before) || (isAdmin(before) && !isAdmin(now)));
      return isOther ? insufficientPermissions(anyOf) : refusalOf(now, anyOf, template);
    };
    try {
      const principal = auth.authenticate(credentialsOf(request));
      return principal instanceof Promise ? principal.then(judge).catch(lossOf) : judge(principal);
    } catch (thrown) {
      return lossOf(thrown);
    }
  };
}

function isAdmin(principal: Principal): boolean {
  return mayDo(principal, ['admin']);
}

function lossOf(thrown: unknown): Refusal {
  return hasCode(thrown, 'DATABASE_UNAVAILABLE') ? undefined : asGatewayError(thrown);
}

function hasSameTemplates({ templates: now }: Principal, { templates: before }: Principal): boolean {
  if (now === undefined || before === undefined) return now === before;
  return now.size === before.size && [...now].every((template) => before.has(template));
}
