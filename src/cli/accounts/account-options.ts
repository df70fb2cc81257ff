// Reads arguments and options about accounts, before anything is sent: names, roles, permissions, templates, expiry, and passwords
// from the hidden prompt, standard input or the command line. The rules are those of the domain; the gateway checks again.

import type { TSchema } from 'typebox';
import { Check } from 'typebox/schema';
import { didYouMean } from '../../config/nearest.ts';
import {
  Email,
  KeyName,
  type PasswordFault,
  passwordFault,
  ROLE_SCOPES,
  ROLES,
  type Role,
  SCOPES,
  type Scope,
  TemplateList,
  Username,
} from '../../domain/account.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isCleanText } from '../../domain/text.ts';
import { type CommandInput, timeOf } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import type { Terminal } from '../terminal.ts';

export function usernameOf(input: CommandInput): string {
  const rule =
    'letters, digits, dots, hyphens, underscores and "@", starting with a letter or a digit, at most 64';
  return checked(Username, input.positional(0), `a user name is ${rule}`);
}

/** Default `<username>@localhost`. */
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

/** The permissions of `--permissions`, within `--role` if both are given, else all of the role; default `user`. */
export function permissionsOf(input: CommandInput): readonly Scope[] {
  const role = roleOf(input);
  const words = wordsOf(input, 'permissions');
  if (words === undefined) return ROLE_SCOPES[role ?? 'user'];
  const permissions = words.map((word) => {
    const scope = SCOPES.find((each) => each === word);
    if (scope !== undefined) return scope;
    const advice = didYouMean(word, SCOPES) ?? `permissions are ${SCOPES.join(', ')}`;
    throw new UsageError(`unknown permission "${word}"; ${advice}`);
  });
  const beyond = permissions.find((scope) => role !== undefined && !ROLE_SCOPES[role].includes(scope));
  if (beyond !== undefined) throw new UsageError(`the role ${role} does not have the permission "${beyond}"`);
  return permissions;
}

/** Undefined = all templates. */
export function templatesOf(input: CommandInput): readonly string[] | undefined {
  const words = wordsOf(input, 'templates');
  if (words === undefined) return undefined;
  const rule = '--templates takes template names separated by commas: lower-case letters, digits, hyphens';
  return checked(TemplateList, words, rule);
}

function wordsOf(input: CommandInput, option: string): readonly string[] | undefined {
  const words = input
    .text(option)
    ?.split(',')
    .map((word) => word.trim());
  if (words?.some((word) => word === '')) throw new UsageError(`--${option} takes words separated by commas`);
  return words && [...new Set(words)];
}

function checked<T>(schema: TSchema, value: T, rule: string): T {
  const isText = typeof value !== 'string' || isCleanText(value);
  if (isText && Check(schema, value)) return value;
  throw new UsageError(rule);
}

const HOUR_MS = 3_600_000;
const UNIT_MS: Readonly<Record<string, number>> = { h: HOUR_MS, d: 24 * HOUR_MS, w: 7 * 24 * HOUR_MS };

/**
 * Reads `2027-01-31T00:00:00Z` as it is, `2027-01-31` as the start of that day in UTC, and `12h`, `30d` and
 * `8w` as spans from now. Returns ISO 8601 in UTC. Throws UsageError.
 */
export function readExpiry(written: string, nowMs: number = Date.now()): string {
  const atMs = timeOf(written, nowMs, UNIT_MS);
  if (Number.isNaN(atMs)) {
    throw new UsageError(
      `--expires takes a time such as 2027-01-31T00:00:00Z, a day such as 2027-01-31, or a span such as 12h, 30d or 8w, not "${written}"`,
    );
  }
  if (atMs <= nowMs) throw new UsageError(`--expires must be in the future, not "${written}"`);
  return new Date(atMs).toISOString();
}

// --- passwords -------------------------------------------------------------------------------------------------------------

/**
 * `question`: `Password of ada`; a colon is added. A new password is asked for twice and must follow the rules of the
 * gateway. Throws UsageError when there is no terminal to ask or the password cannot be used, CommandFailure when cancelled.
 */
export async function readPassword(
  input: CommandInput,
  terminal: Terminal,
  { question, isNew }: { readonly question: string; readonly isNew: boolean },
): Promise<string> {
  const written = input.text('password');
  const password =
    written === undefined
      ? await askPassword(terminal, question, isNew)
      : await readWritten(written, terminal);
  if (password === '') throw new UsageError('the password is empty');
  if (isNew) refuseUnusable(password);
  return password;
}

async function readWritten(written: string, terminal: Terminal): Promise<string> {
  if (written !== '-') {
    terminal.note(
      'warning: every user of this machine can read a command line; --password - reads standard input',
    );
    return written;
  }
  const line = await terminal.readLine();
  if (line === undefined)
    throw new UsageError('standard input must hold the password: one line of UTF-8 text');
  return line;
}

async function askPassword(terminal: Terminal, question: string, isNew: boolean): Promise<string> {
  if (!terminal.canAsk) {
    throw new UsageError(
      'there is no terminal to ask for the password; --password - reads it from standard input',
    );
  }
  const password = await askHidden(terminal, `${question}: `);
  if (isNew) {
    refuseUnusable(password); // before it is typed a second time
    if ((await askHidden(terminal, 'Repeat the password: ')) !== password) {
      throw new CommandFailure('the two passwords differ; nothing was changed');
    }
  }
  return password;
}

async function askHidden(terminal: Terminal, question: string): Promise<string> {
  const answer = await terminal.askHidden(question);
  if (answer === undefined) throw new CommandFailure('cancelled');
  return answer;
}

/** Checks the gateway's rule before anything is sent. */
function refuseUnusable(password: string): void {
  const fault = passwordFault(password);
  if (fault !== undefined) throw new UsageError(`a password must have ${RULES[fault]}`);
}

const RULES: Readonly<Record<PasswordFault, string>> = {
  'not text': 'no NUL characters and no halves of surrogate pairs',
  'too long': `at most ${LIMITS.passwordBytes} bytes of UTF-8`,
  'too short': `at least ${LIMITS.passwordCharacters} characters`,
};
