// Reads a password from the hidden prompt, from standard input, or from the command line, where every user of the machine can
// read it.

import { type PasswordFault, passwordFault } from '../../domain/account.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { CommandInput, OptionTable } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import type { Terminal } from '../terminal.ts';

export const PASSWORD_OPTION: OptionTable = {
  '--password <value>':
    'Password; "-" reads standard input, default a hidden prompt. Other users can read a value given here',
};

export interface PasswordQuestion {
  /** `Password of ada`; a colon is added. */
  readonly question: string;
  /** A new password is asked twice and must follow the rules of the gateway. */
  readonly isNew: boolean;
}

/** Throws UsageError when there is no terminal to ask or the password cannot be used, CommandFailure when cancelled. */
export async function readPassword(
  input: CommandInput,
  terminal: Terminal,
  { question, isNew }: PasswordQuestion,
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
