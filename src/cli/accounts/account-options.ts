// Reads options about accounts, and passwords from the hidden prompt, standard input or the command line.

import {
  isBuiltIn,
  ROLE_PATTERN,
  ROLE_SCOPES,
  type Role,
  SCOPES,
  type Scope,
} from '../../domain/accounts/account.ts';
import { TOOL_ENTRY } from '../../domain/accounts/rights.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/clock.ts';
import type { CommandInput, OptionTable } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import type { Terminal } from '../terminal.ts';

export function roleOf(input: CommandInput): Role | undefined {
  const written = input.text('role');
  if (written === undefined || new RegExp(ROLE_PATTERN).test(written)) return written;
  throw new UsageError(`--role must be admin, user or the name of a role of the settings, not "${written}"`);
}

/**
 * `--role` and the permissions of `--permissions`, within a built-in role if both are given. Those of a role of
 * the settings are known to the gateway only. Without both options, the permissions of the role `user`.
 */
export function keyRightsOf(input: CommandInput): {
  readonly role: Role | undefined;
  readonly permissions: readonly Scope[] | undefined;
} {
  const role = roleOf(input);
  const known = role !== undefined && isBuiltIn(role) ? ROLE_SCOPES[role] : SCOPES;
  const words = wordsOption(input, 'permissions')?.map((word) => oneOf('permissions', known, word));
  return { role, permissions: words ?? (role === undefined ? ROLE_SCOPES.user : undefined) };
}

function oneOf<T extends string>(option: string, known: readonly T[], written: string): T {
  const found = known.find((each) => each === written);
  if (found !== undefined) return found;
  throw new UsageError(`--${option} must be ${known.join(' or ')}, not "${written}"`);
}

/** The option of `scopesOption`. */
export const SCOPES_OPTION: OptionTable = {
  '--scopes <list>': `Scopes of the role to which the user is limited: ${SCOPES.join(', ')}; "all" for all of the role`,
};

/** Scopes in `--scopes`; null for all of the role, undefined without the option. */
export function scopesOption(input: CommandInput): readonly Scope[] | null | undefined {
  const words = wordsOption(input, 'scopes');
  if (words?.join() === 'all') return null;
  return words?.map((word) => oneOf('scopes', SCOPES, word));
}

/** The words of an option, which commas separate; undefined without the option. */
export function wordsOption(input: CommandInput, option: string): readonly string[] | undefined {
  return input
    .text(option)
    ?.split(',')
    .map((word) => word.trim());
}

/** The options of `listsOf`. `whose`: the owner of the lists, such as "the user" or "the key". */
export function rightsOptions(whose: string, otherwise = 'default all'): OptionTable {
  return {
    '--templates <list>': `Templates ${whose}; ${otherwise}`,
    '--views <list>': `Views ${whose}; ${otherwise}, but none with --templates`,
    '--tools <list>': `Tools ${whose}, as <template>/<glob>, such as "github/issues_*,!github/issues_delete"; ${otherwise}`,
  };
}

export interface WrittenRights {
  /** The templates that may be used. Null for all; undefined without the option. */
  readonly templates?: readonly string[] | null | undefined;
  readonly views?: readonly string[] | null | undefined;
  readonly tools?: readonly string[] | null | undefined;
}

/** The lists that the options of `rightsOptions` gave: "all" removes a list, and "none" is an empty one. */
export function rightsOf(input: CommandInput): WrittenRights {
  const listOption = (option: string) => {
    const words = wordsOption(input, option);
    if (words?.join() === 'all') return null;
    return words?.join() === 'none' ? [] : words;
  };
  const tools = listOption('tools');
  for (const entry of tools ?? [])
    if (!new RegExp(TOOL_ENTRY).test(entry))
      throw new UsageError(`--tools must name <template>/<glob>, such as github/issues_*, not "${entry}"`);
  return { templates: listOption('templates'), views: listOption('views'), tools };
}

/** The spans of `--expires`. */
export const LIFETIME_MS = { h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS };

/** Reads a password. `question`: `Password of ada`; a colon is added. A new password is asked for twice. */
export async function readPassword(
  input: CommandInput,
  terminal: Terminal,
  { question, isNew }: { readonly question: string; readonly isNew: boolean },
): Promise<string> {
  const written = input.text('password');
  let password = written;
  if (written === undefined) password = await askPassword(terminal, question, isNew);
  else if (written === '-') password = await terminal.readLine();
  else {
    terminal.note(
      'warning: every user of this machine can read a command line; --password - reads standard input',
    );
  }
  if (password === undefined)
    throw new UsageError('standard input must hold the password: one line of UTF-8 text');
  if (password === '') throw new UsageError('the password is empty');
  return password;
}

async function askPassword(terminal: Terminal, question: string, isNew: boolean): Promise<string> {
  if (!terminal.canAsk) {
    throw new UsageError(
      'there is no terminal to ask for the password; --password - reads it from standard input',
    );
  }
  const password = await terminal.askHidden(`${question}: `);
  if (isNew && (await terminal.askHidden('Repeat the password: ')) !== password)
    throw new CommandFailure('the two passwords differ; nothing was changed');
  return password;
}
