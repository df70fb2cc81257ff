// Checks what is new about an account before it is stored, in the words of the API. HTTP checks shapes by its own schemas;
// this is the last word, also for the command line that works on the database.

import { Check } from 'typebox/schema';
import { Email, KeyName, SCOPES, type Scope, TemplateList, Username } from '../domain/account.ts';
import type { ValidationItem } from '../domain/errors.ts';
import { validationFailed } from '../domain/request-errors.ts';
import { hasUnseen, isCleanText } from '../domain/text.ts';
import { timestampOf } from '../domain/timestamp.ts';
import type { NewApiKey, NewUser, UserUpdate } from './auth.ts';
import { passwordIssues } from './passwords.ts';

const USERNAME_RULE =
  'String should be up to 64 letters, digits, dots, hyphens, underscores and @, and start with a letter or a digit';

/** VALIDATION_ERROR with all findings. */
export function checkNewUser(input: NewUser): void {
  refuse([...nameFindings(input.username), ...fieldFindings(input)]);
}

/** VALIDATION_ERROR with all findings. */
export function checkUserUpdate(change: UserUpdate): void {
  refuse(fieldFindings(change));
}

/** VALIDATION_ERROR with all findings; gives back the moment of expiry in UTC. `nowMs`: since 1970. */
export function checkNewApiKey(input: NewApiKey, nowMs: number): string | undefined {
  const expiresAtMs = input.expiresAt === undefined ? undefined : timestampOf(input.expiresAt);
  refuse([
    ...(Check(KeyName, input.name) && isCleanText(input.name)
      ? []
      : [
          item('name', 'string_pattern_mismatch', 'String should have 1 to 128 characters, none of them NUL'),
        ]),
    ...permissionFindings(input.permissions),
    ...templateFindings(input.templates),
    ...expiryFindings(expiresAtMs, nowMs),
  ]);
  return expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
}

function fieldFindings({ email, password, templates }: UserUpdate): ValidationItem[] {
  const isEmail = email === undefined || (Check(Email, email) && isCleanText(email) && !hasUnseen(email));
  return [
    ...(isEmail ? [] : [item('email', 'value_error', 'Value error, this is no e-mail address')]),
    ...(password === undefined ? [] : passwordIssues(password)),
    ...templateFindings(templates),
  ];
}

function nameFindings(username: string): ValidationItem[] {
  if (Check(Username, username)) return [];
  return [item('username', 'string_pattern_mismatch', USERNAME_RULE)];
}

function templateFindings(templates: readonly string[] | null | undefined): ValidationItem[] {
  if (templates === undefined || templates === null || Check(TemplateList, templates)) return [];
  return [item('templates', 'value_error', 'Value error, templates are up to 1000 different template names')];
}

function permissionFindings(permissions: readonly Scope[]): ValidationItem[] {
  if (permissions.length === 0) return [item('permissions', 'too_short', 'List should have at least 1 item')];
  const known: readonly string[] = SCOPES;
  return permissions.flatMap((permission, index) =>
    known.includes(permission)
      ? []
      : [
          {
            ...item('permissions', 'enum', `Input should be ${oneOf(SCOPES)}`),
            loc: ['body', 'permissions', index],
          },
        ],
  );
}

function expiryFindings(expiresAtMs: number | undefined, nowMs: number): ValidationItem[] {
  if (expiresAtMs === undefined) return [];
  if (Number.isNaN(expiresAtMs)) {
    const msg = 'Input should be a valid datetime with an offset, such as 2030-01-31T12:00:00Z';
    return [item('expires_at', 'datetime_parsing', msg)];
  }
  return expiresAtMs > nowMs ? [] : [item('expires_at', 'datetime_future', 'Input should be in the future')];
}

function refuse(items: readonly ValidationItem[]): void {
  if (items.length > 0) throw validationFailed(items);
}

function item(field: string, type: string, msg: string): ValidationItem {
  return { loc: ['body', field], msg, type };
}

function oneOf(words: readonly string[]): string {
  const quoted = words.map((word) => `'${word}'`);
  return `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}
