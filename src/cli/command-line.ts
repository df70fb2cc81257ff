// Reads a command line. cac splits the options; this file adds what it lacks: commands of two words, values that stay text, and
// errors for unknown words.

import { cac } from 'cac';
import { messageOf } from '../domain/errors/errors.ts';
import { nearMiss } from '../domain/nearest.ts';
import { ownCommand } from '../domain/version.ts';
import {
  type Command,
  CommandInput,
  type OptionValue,
  optionFlag,
  optionName,
  optionsOf,
} from './command.ts';
import { UsageError } from './failures.ts';
import { withPresentNames } from './former-names.ts';

/** The parsed command line. `isRequested` is false when help is shown because no command was named. */
export type CommandLine =
  | { readonly kind: 'run'; readonly command: Command; readonly input: CommandInput }
  | { readonly kind: 'help'; readonly command: Command }
  | { readonly kind: 'overview'; readonly group: string | undefined; readonly isRequested: boolean }
  | { readonly kind: 'version' };

const HELP_WORDS: readonly string[] = ['--help', '-h', 'help'];
const VERSION_WORDS: readonly string[] = ['--version', '-v', 'version'];

/** Finds the command of the words in the table and reads its options. Throws UsageError naming the nearest match. */
export function readCommandLine(commands: readonly Command[], typed: readonly string[]): CommandLine {
  // Users also write `help gateway start`, `gateway help` and `version`.
  if (typed[0] === 'help') return readCommandLine(commands, [...typed.slice(1), '--help']);
  const argv = withPresentNames(typed);
  const [first, ...afterFirst] = argv;
  const group = commands.some(({ name }) => name.startsWith(`${first} `)) ? first : undefined;
  const [word, ...rest] = group === undefined ? argv : afterFirst;

  if (word === undefined) return { kind: 'overview', group, isRequested: false };
  if (HELP_WORDS.includes(word)) return { kind: 'overview', group, isRequested: true };
  if (VERSION_WORDS.includes(word)) return { kind: 'version' };
  const name = group === undefined ? word : `${group} ${word}`;
  const command = commands.find((candidate) => candidate.name === name || candidate.alias === name);
  if (command === undefined) throw unknownWord(word, group, commands);
  return readOptions(command, rest);
}

function readOptions(command: Command, all: readonly string[]): CommandLine {
  const end = command.hasProgram ? all.indexOf('--') : -1;
  const [typed, program] = end === -1 ? [all] : [all.slice(0, end), all.slice(end + 1)];
  const definitions = optionsOf(command);
  const words = typed.map((word) => plainWord(command, word));
  // The options as typed: cac would fold, convert or drop some of them.
  const given = words
    .filter((word) => /^-./.test(word) && !isNumeric(word))
    .map((word) => word.replace(/=.*$/s, ''));
  if (given.some((word) => HELP_WORDS.includes(word))) return { kind: 'help', command };
  if (given.some((word) => VERSION_WORDS.includes(word))) return { kind: 'version' };
  const flags = definitions.map(optionFlag);
  const unknown = given.find((word) => !flags.includes(word));
  if (unknown !== undefined) {
    const advice = adviceOn(nearMiss(unknown, flags), (flag) => flag, `${command.name} --help`);
    throw new UsageError(`unknown option ${unknown} for "stagedoor ${command.name}"; ${advice}`);
  }

  const denied = given.find((flag) => given.includes(flag.replace(/^--/, '--no-')));
  if (denied !== undefined)
    throw new UsageError(`${denied} cannot be combined with ${denied.replace('--', '--no-')}`);

  const parsed = parseWithCac(command, words);
  const options = new Map<string, OptionValue>();
  for (const definition of definitions) {
    const name = optionName(definition);
    // As cac names it: `workingDir`.
    const value = parsed.options[name.replace(/-[a-z]/g, ([, letter = '']) => letter.toUpperCase())];
    if (value !== undefined) options.set(name, unprotect(value));
  }
  const positionals = parsed.args.map((word) => String(unprotect(word)));
  return { kind: 'run', command, input: new CommandInput(positionals, options, program) };
}

/** A short option by its long name; any other word as it is. Throws UsageError for a switch with a value. */
function plainWord(command: Command, word: string): string {
  const options = optionsOf(command);
  const abbreviated = options.find(({ short }) => short !== undefined && word === `-${short}`);
  if (abbreviated !== undefined) return optionFlag(abbreviated);
  const [, flag] = /^(--[^=]+)=/.exec(word) ?? [];
  if (options.some(({ flags }) => flags === flag)) throw misuse(command.name, `${flag} takes no value`);
  return word;
}

function parseWithCac(
  definition: Command,
  words: readonly string[],
): { args: readonly string[]; options: Record<string, OptionValue | undefined> } {
  const { name, positionals = '' } = definition;
  // Only the last word of the name: cac never matches two words.
  const word = name.replace(/^.* /, '');
  const program = cac('stagedoor');
  const command = program.command(`${word} ${positionals}`.trim(), '').ignoreOptionDefaultValue();
  for (const { flags } of optionsOf(definition)) command.option(flags, '');
  try {
    const parsed = program.parse(['node', 'stagedoor', word, ...words.map(protect)], { run: false });
    command.checkOptionValue();
    const missing = (positionals.match(/<[^>]+>/g) ?? []).slice(parsed.args.length);
    if (missing.length > 0) throw new Error(`missing required argument ${missing[0]}`);
    const beyond = parsed.args[command.args.length];
    if (beyond !== undefined && !positionals.includes('[...'))
      throw new Error(`unexpected argument "${beyond}"`);
    return parsed;
  } catch (error) {
    const reason = messageOf(error);
    throw misuse(name, reason.replaceAll(SHIELD, ''), error);
  }
}

function misuse(name: string, reason: string, cause?: unknown): UsageError {
  return new UsageError(`${reason}; see ${ownCommand(`${name} --help`)}`, { cause });
}

// --- values stay text: a word that looks like a number gets a character that is removed afterwards ---------

const SHIELD = '\u0001';

function protect(word: string): string {
  const assignment = /^(--?[^=]+=)(.*)$/s.exec(word);
  if (assignment?.[1] !== undefined) return assignment[1] + SHIELD + assignment[2];
  return isNumeric(word) || word === '-' || word.startsWith(SHIELD) ? SHIELD + word : word;
}

function unprotect(value: OptionValue): OptionValue {
  if (typeof value === 'string') return value.startsWith(SHIELD) ? value.slice(SHIELD.length) : value;
  return typeof value === 'boolean' ? value : value.map((each) => unprotect(each) as string | boolean);
}

function isNumeric(word: string): boolean {
  return Number.isFinite(Number(word));
}

// --- unknown words -------------------------------------------------------------------------------------

function unknownWord(word: string, group: string | undefined, commands: readonly Command[]): UsageError {
  const where = group === undefined ? '' : `${group} `;
  const names = commands.map(({ name }) => name);
  const found = nearestCommand(word, group, names);
  const advice = adviceOn(found, (name) => `"${ownCommand(name)}"`, `${where}--help`);
  return new UsageError(`unknown command "stagedoor ${where}${word}"; ${advice}`);
}

/** Verbs that other programs have for what a command does. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['list', 'ls'],
  ['show', 'get', 'describe', 'info', 'inspect'],
  ['create', 'register', 'add', 'set', 'new', 'put'],
  ['delete', 'deregister', 'revoke', 'remove', 'end', 'rm', 'unregister', 'close', 'kill'],
];

/** The nearest command of the group; of commands with the same last word it is the first. */
function nearestCommand(
  word: string,
  group: string | undefined,
  names: readonly string[],
): string | undefined {
  const inGroup = names.filter((name) => group === undefined || name.startsWith(`${group} `));
  // The last words are compared: with their group, all commands of a group would be alike.
  const byLastWord = new Map<string, string>();
  for (const name of inGroup) {
    const lastWord = name.replace(/^.* /, '');
    if (!byLastWord.has(lastWord)) byLastWord.set(lastWord, name);
  }
  // `stagedoor start` means `stagedoor gateway start`, and so does `db start`: no other group has it.
  const ofAnyGroup = names.filter((name) => name.endsWith(` ${word}`));
  const synonyms = (group !== undefined && SYNONYMS.find((row) => row.includes(word))) || [];
  const verb = [word, ...synonyms].find((each) => byLastWord.has(each)) ?? word;
  const found = byLastWord.get(verb) ?? (ofAnyGroup.length === 1 ? ofAnyGroup[0] : undefined);
  if (found !== undefined) return found;
  const groups = names.filter((name) => name.includes(' ')).map((name) => name.replace(/ .*$/, ''));
  if (group === undefined) for (const each of groups) byLastWord.set(each, each);
  return byLastWord.get(nearMiss(word, [...byLastWord.keys()]) ?? '');
}

function adviceOn(nearest: string | undefined, shown: (nearest: string) => string, help: string): string {
  return nearest === undefined ? `see ${ownCommand(help)}` : `did you mean ${shown(nearest)}?`;
}
