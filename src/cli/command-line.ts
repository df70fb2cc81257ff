// Reads the words of a command line: which command is meant, with which options, or which help is wanted.
// cac does the splitting; its traps (multi-word commands, values that become numbers, silence about unknown words) are
// closed here. The command decides what to do with its input.

import { cac } from 'cac';
import { nearMiss } from '../config/nearest.ts';
import { ownCommand } from '../domain/version.ts';
import {
  type CommandDefinition,
  CommandInput,
  type OptionDefinition,
  type OptionValue,
  optionName,
} from './command.ts';
import { UsageError } from './failures.ts';

/** What the command line asks for. `asked` is false when help is shown because no command was named. */
export type CommandLine =
  | { readonly kind: 'run'; readonly command: CommandDefinition; readonly input: CommandInput }
  | { readonly kind: 'help'; readonly command: CommandDefinition }
  | { readonly kind: 'overview'; readonly group: string | undefined; readonly asked: boolean }
  | { readonly kind: 'version' };

/** Finds the command of `argv` in the table and reads its options. Throws UsageError naming the nearest match. */
export function readCommandLine(
  commands: readonly CommandDefinition[],
  argv: readonly string[],
): CommandLine {
  const [first, ...afterFirst] = argv;
  const group = commands.some(({ name }) => name.startsWith(`${first} `)) ? first : undefined;
  const [word, ...rest] = group === undefined ? argv : afterFirst;

  if (word === undefined) return { kind: 'overview', group, asked: false };
  if (isHelp(word)) return { kind: 'overview', group, asked: true };
  if (isVersion(word)) return { kind: 'version' };
  // Words that people try, where the dashes are meant.
  if (group === undefined && word === 'help') return { kind: 'overview', group, asked: true };
  if (group === undefined && word === 'version') return { kind: 'version' };
  const name = group === undefined ? word : `${group} ${word}`;
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) throw unknownWord(word, group, commands);
  return readOptions(command, rest);
}

function readOptions(command: CommandDefinition, typed: readonly string[]): CommandLine {
  const words = withPlainSwitches(command, withLongNames(command, typed));
  const { known, unknown } = sortOptions(command, words);
  if (known.some(isHelp)) return { kind: 'help', command };
  if (known.some(isVersion)) return { kind: 'version' };
  if (unknown.length > 0) throw unknownOptions(unknown, command);

  const denied = known.find((flag) => known.includes(flag.replace(/^--/, '--no-')));
  if (denied !== undefined)
    throw new UsageError(`${denied} cannot be combined with ${denied.replace('--', '--no-')}`);

  const parsed = parseWithCac(command, words);
  const options = new Map<string, OptionValue>();
  for (const definition of command.options) {
    const name = optionName(definition);
    const value = parsed.options[camelCase(name)];
    if (value === undefined) continue;
    options.set(name, unprotect(value));
  }
  for (const definition of command.options) checkUse(definition, known, options);
  const positionals = parsed.args.map((word) => String(unprotect(word)));
  return { kind: 'run', command, input: new CommandInput(positionals, options) };
}

/** Options by their long names. */
function withLongNames({ options }: CommandDefinition, words: readonly string[]): readonly string[] {
  const end = words.indexOf('--');
  return words.map((word, index) => {
    const option = options.find(({ short }) => short !== undefined && word === `-${short}`);
    return option === undefined || (end !== -1 && index > end) ? word : option.flags.replace(/ .*$/, '');
  });
}

/** A switch that was given a value: `--auth=false` is `--no-auth`, `--json=true` is `--json`. */
function withPlainSwitches(
  { name, options }: CommandDefinition,
  words: readonly string[],
): readonly string[] {
  const switches = new Set(options.map(({ flags }) => flags).filter((flags) => !flags.includes(' ')));
  const end = words.indexOf('--');
  return words.map((word, index) => {
    const [, flag = '', value = ''] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
    if (!switches.has(flag) || (end !== -1 && index > end)) return word;
    const negation = flag.replace('--', '--no-');
    if (/^(true|yes|on|1)$/i.test(value)) return flag;
    if (/^(false|no|off|0)$/i.test(value) && switches.has(negation)) return negation;
    throw new UsageError(`${flag} takes no value, not "${value}"; see ${ownCommand(`${name} --help`)}`);
  });
}

/** The option words before `--`, as they were typed: cac would fold, convert or drop some of them. */
function sortOptions(
  command: CommandDefinition,
  words: readonly string[],
): { known: string[]; unknown: string[] } {
  const end = words.indexOf('--');
  const typed = words
    .slice(0, end === -1 ? words.length : end)
    .filter((word) => /^-./.test(word) && !isNumeric(word))
    .map((word) => word.replace(/=.*$/s, ''));
  const declared = new Set(command.options.map(({ flags }) => flags.replace(/ .*$/, '')));
  const unknown = typed.filter((word) => !declared.has(word) && !isHelp(word) && !isVersion(word));
  return { known: typed, unknown: [...new Set(unknown)] };
}

function parseWithCac(
  { name, positionals = '', options }: CommandDefinition,
  words: readonly string[],
): { args: readonly string[]; options: Record<string, OptionValue | undefined> } {
  // Only the last word of the name: cac never matches a name of two words.
  const word = name.replace(/^.* /, '');
  const program = cac('stagedoor');
  const command = program.command(`${word} ${positionals}`.trim(), '').ignoreOptionDefaultValue();
  for (const { flags } of options) command.option(flags, '');
  try {
    const parsed = program.parse(['node', 'stagedoor', word, ...words.map(protect)], { run: false });
    command.checkOptionValue();
    const missing = (positionals.match(/<[^>]+>/g) ?? []).slice(parsed.args.length);
    if (missing.length > 0)
      throw new Error(`missing required argument${missing.length > 1 ? 's' : ''} ${missing.join(' and ')}`);
    const isOpen = positionals.includes('[...');
    const expected = isOpen ? parsed.args.length : (positionals.match(/[<[][^>\]]+[>\]]/g) ?? []).length;
    const beyond = parsed.args[expected];
    if (beyond !== undefined) throw new Error(`unexpected argument "${beyond}"`);
    const afterDashes: string[] = parsed.options['--'];
    if (afterDashes.length > 0) throw new Error('unexpected arguments after "--"');
    return parsed;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${unprotectAll(reason)}; see ${ownCommand(`${name} --help`)}`, { cause: error });
  }
}

function checkUse(
  definition: OptionDefinition,
  typed: readonly string[],
  options: ReadonlyMap<string, OptionValue>,
): void {
  const flag = definition.flags.replace(/ .*$/, '');
  if (!typed.includes(flag)) return;
  const takesValue = flag !== definition.flags;
  if (takesValue && !definition.repeatable && Array.isArray(options.get(optionName(definition)))) {
    throw new UsageError(`${flag} can be given only once`);
  }
}

// --- keeping values as they were typed: a word that looks like a number gets a character that is dropped afterwards ----

const shield = '\u0001';

function protect(word: string): string {
  const assignment = /^(--?[^=]+=)(.*)$/s.exec(word);
  if (assignment?.[1] !== undefined) return assignment[1] + shield + assignment[2];
  return isNumeric(word) || word === '-' || word.startsWith(shield) ? shield + word : word;
}

function unprotect(value: OptionValue): OptionValue {
  if (typeof value === 'string') return value.startsWith(shield) ? value.slice(shield.length) : value;
  return typeof value === 'boolean' ? value : value.map((each) => unprotect(each) as string | boolean);
}

function unprotectAll(text: string): string {
  return text.replaceAll(shield, '');
}

function isNumeric(word: string): boolean {
  return Number.isFinite(Number(word));
}

// --- unknown words -------------------------------------------------------------------------------------

function unknownWord(
  word: string,
  group: string | undefined,
  commands: readonly CommandDefinition[],
): UsageError {
  const where = group === undefined ? 'stagedoor' : `stagedoor ${group}`;
  if (word.startsWith('-')) {
    return new UsageError(
      `unknown option ${word} for "${where}"; options follow a command; see ${ownCommand(`${group ?? ''} --help`.trim())}`,
    );
  }
  const names = commands.map(({ name }) => name);
  const advice = adviceOn(
    meantCommand(word, group, names),
    (meant) => `"${ownCommand(meant)}"`,
    `${group ?? ''} --help`.trim(),
  );
  return new UsageError(`unknown command "${where} ${word}"; ${advice}`);
}

function meantCommand(word: string, group: string | undefined, names: readonly string[]): string | undefined {
  // `stagedoor start` means `stagedoor gateway start`.
  const whole = names.find((name) => name.endsWith(` ${word}`));
  if (whole !== undefined) return whole;
  // The words of a command are compared, not the group before them: that alone would make all of a group alike.
  const inGroup = names.filter((name) => group === undefined || name.startsWith(`${group} `));
  const lastWords = new Map(inGroup.map((name) => [name.replace(/^.* /, ''), name]));
  for (const each of group === undefined ? groupsOf(names) : []) lastWords.set(each, each);
  const meant = nearMiss(word, [...lastWords.keys()]);
  return meant === undefined ? undefined : lastWords.get(meant);
}

/** A guess only where it is a good one; else where all of it is listed. */
function adviceOn(meant: string | undefined, shown: (meant: string) => string, help: string): string {
  return meant === undefined ? `see ${ownCommand(help)}` : `did you mean ${shown(meant)}?`;
}

function groupsOf(names: readonly string[]): string[] {
  return [...new Set(names.filter((name) => name.includes(' ')).map((name) => name.replace(/ .*$/, '')))];
}

/** A line for each. */
function unknownOptions(unknown: readonly string[], { name, options }: CommandDefinition): UsageError {
  const flags = options.map((each) => each.flags.replace(/ .*$/, ''));
  const lines = unknown.map((option) => {
    const advice = adviceOn(nearMiss(option, flags), (meant) => meant, `${name} --help`);
    return `unknown option ${option} for "stagedoor ${name}"; ${advice}`;
  });
  return new UsageError(lines.join('\n'));
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h';
}

function isVersion(word: string): boolean {
  return word === '--version' || word === '-v';
}

function camelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
