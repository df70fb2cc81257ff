// Words and options about accounts, checked before anything is asked or sent: names, roles, permissions, templates.
// The rules are those of the domain; the gateway checks again.

import type { TSchema } from 'typebox';
import { Check } from 'typebox/schema';
import { nearMiss } from '../../config/nearest.ts';
import {
  Email,
  KeyName,
  ROLE_SCOPES,
  ROLES,
  type Role,
  SCOPES,
  type Scope,
  TemplateList,
  Username,
} from '../../domain/account.ts';
import { isCleanText } from '../../domain/text.ts';
import type { CommandInput } from '../command-input.ts';
import { UsageError } from '../failures.ts';

export function usernameOf(input: CommandInput): string {
  const rule =
    'letters, digits, dots, hyphens, underscores and "@", starting with a letter or a digit, at most 64';
  return checked(Username, input.positional(0), `a user name is ${rule}`);
}

/** Default `<username>@localhost`. Source: decisions, "Command line". */
export function emailOf(input: CommandInput, username: string): string {
  // The part before the "@" has at most 64 characters, and a user name may be an address already.
  const fallback = username.includes('@') ? username : `${username}@localhost`;
  return checked(Email, input.text('email') ?? fallback, '--email must be an address such as ada@localhost');
}

export function keyNameOf(input: CommandInput): string {
  return checked(KeyName, input.positional(0), 'the name of a key has 1 to 128 characters');
}

export function roleOf(input: CommandInput): Role | undefined {
  const written = input.text('role');
  if (written === undefined) return undefined;
  const role = ROLES.find((each) => each === written);
  if (role === undefined) throw new UsageError(`--role must be ${ROLES.join(' or ')}, not "${written}"`);
  return role;
}

/** Those of `--permissions`, else all of the role; default role `user`. Together the first must lie within the second. */
export function permissionsOf(input: CommandInput): readonly Scope[] {
  const role = roleOf(input);
  const words = wordsOf(input, 'permissions');
  if (words === undefined) return ROLE_SCOPES[role ?? 'user'];
  const permissions = words.map((word) => {
    const scope = SCOPES.find((each) => each === word);
    if (scope !== undefined) return scope;
    const meant = nearMiss(word, SCOPES);
    const advice = meant === undefined ? `there are ${SCOPES.join(', ')}` : `did you mean "${meant}"?`;
    throw new UsageError(`there is no permission "${word}"; ${advice}`);
  });
  const beyond = permissions.find((scope) => role !== undefined && !ROLE_SCOPES[role].includes(scope));
  if (beyond !== undefined) throw new UsageError(`the role ${role} does not have the permission "${beyond}"`);
  return [...new Set(permissions)];
}

/** Undefined = all templates. */
export function templatesOf(input: CommandInput): readonly string[] | undefined {
  const words = wordsOf(input, 'templates');
  if (words === undefined) return undefined;
  const rule =
    '--templates takes names of templates with commas in between: lower-case letters, digits, hyphens';
  return checked(TemplateList, [...new Set(words)], rule);
}

function wordsOf(input: CommandInput, option: string): readonly string[] | undefined {
  const words = input
    .text(option)
    ?.split(',')
    .map((word) => word.trim());
  if (words?.some((word) => word === ''))
    throw new UsageError(`--${option} takes words with commas in between`);
  return words;
}

function checked<T>(schema: TSchema, value: T, rule: string): T {
  const isText = typeof value !== 'string' || isCleanText(value);
  if (isText && Check(schema, value)) return value;
  throw new UsageError(rule);
}
