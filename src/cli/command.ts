// A command: its data for help and parsing, the function that runs it, and its input as the user typed it. The
// file of a command must be cheap to import, since `--help` imports all of them: `run` loads heavy modules.

import { timestampOf } from '../domain/text.ts';
import { DAY_MS, HOUR_MS } from '../domain/time/clock.ts';
import { UsageError } from './failures.ts';
import type { Terminal } from './terminal.ts';

export interface OptionDefinition {
  /** The option in the notation of cac: `--port <number>` takes a value, `--json` is a switch, `--no-auth` turns `auth` off. */
  readonly flags: string;
  /** The letter of `-f`. */
  readonly short?: string | undefined;
  readonly description: string;
  /** The heading under which help shows it. Default: `Options`. */
  readonly group?: string | undefined;
}

/**
 * The descriptions of options by their flags: `'-f, --follow': 'Keep printing new lines'`. Flags that end in `...`
 * may be repeated.
 */
export type OptionTable = Readonly<Record<string, string | Pick<OptionDefinition, 'description' | 'group'>>>;

/** The option of every command that prints a record. */
export const JSON_OPTION: OptionTable = { '--json': 'Print the result as JSON' };

const COMMON: OptionTable = { '-q, --quiet': 'Show results and errors only: no warnings, no progress' };

/** The options of a command, and those of every command. */
export function optionsOf({ options }: Pick<Command, 'options'>): readonly OptionDefinition[] {
  return Object.entries({ ...options, ...COMMON }).map(([written, about]) => {
    const [, short, flags = '', repeated] = /^(?:-(\w), )?(.*?)(\.{3})?$/.exec(written) ?? [];
    const { description, group } = typeof about === 'string' ? { description: about } : about;
    return { flags, short, description: repeated ? `${description}; repeatable` : description, group };
  });
}

export interface Command {
  /** A noun and a verb, `instance list`, or the one word of a command that is about no single thing. Source: ADR 378. */
  readonly name: string;
  /** A second name, which stays: of one word, or with a group, whose help shows it, too. */
  readonly alias?: string;
  /** The positional arguments in the notation of cac: `<template> <id>`. Default: none. */
  readonly positionals?: string;
  /** The command whose settings are options of this one, too: its help names that command in place of them. */
  readonly settingsOf?: string;
  /** True when words after `--` are a command of another program, and no options. */
  readonly hasProgram?: true;
  readonly summary: string;
  readonly options: OptionTable;
  /** The lines of examples for help, without the program's name. */
  readonly examples?: readonly string[];
  /** Runs the command. Resolves with the exit code; throws UsageError or CommandFailure. */
  readonly run: (input: CommandInput, terminal: Terminal) => Promise<number>;
}

/** `--port` of `--port <number>`. */
export function optionFlag({ flags }: OptionDefinition): string {
  return flags.replace(/ .*$/, '');
}

/** `port` of `--port <number>`, `auth` of `--no-auth`. */
export function optionName(option: OptionDefinition): string {
  return optionFlag(option).replace(/^--(no-)?/, '');
}

export type OptionValue = string | boolean | readonly (string | boolean)[];

/** The words and options of one command line. Names have no dashes at their start: `working-dir`. */
export class CommandInput {
  readonly positionals: readonly string[];
  /** The words after `--`; undefined without it. */
  readonly program: readonly string[] | undefined;
  readonly #options: ReadonlyMap<string, OptionValue>;

  constructor(
    positionals: readonly string[],
    options: ReadonlyMap<string, OptionValue>,
    program?: readonly string[],
  ) {
    this.positionals = positionals;
    this.program = program;
    this.#options = options;
  }

  /** The positional at `index`; the parser has checked the required ones. */
  positional(index: number): string {
    const word = this.positionals[index];
    if (word === undefined) throw new UsageError('missing required argument');
    return word;
  }

  /** True for a given switch, false for its `--no-…` form, undefined for neither. */
  switch(name: string): boolean | undefined {
    const value = [this.#options.get(name)].flat().at(-1);
    return typeof value === 'boolean' ? value : undefined;
  }

  /** Whether an option was given; for a switch in its own form, not `--no-…`. */
  has(name: string): boolean {
    return this.switch(name) ?? this.#options.has(name);
  }

  refuseBoth(one: string, other: string): void {
    if (this.has(one) && this.has(other)) throw new UsageError(`--${one} cannot be combined with --${other}`);
  }

  /** The value of an option. Throws UsageError for an option that was given twice. */
  text(name: string): string | undefined {
    const [value, second] = this.texts(name);
    if (second !== undefined) throw new UsageError(`--${name} can be given only once`);
    return value;
  }

  texts(name: string): readonly string[] {
    return [this.#options.get(name)].flat().filter((value) => typeof value === 'string');
  }

  /** The value of an option as a whole number; both bounds are included. */
  number(name: string, { minimum, maximum }: { minimum: number; maximum: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (value >= minimum && value <= maximum && Number.isInteger(value)) return value;
    throw new UsageError(`--${name} must be a whole number from ${minimum} to ${maximum}, not "${text}"`);
  }
}

/** The pairs in the words, each name once. `what`: what the words are, such as `--env`. */
export function pairsOf(
  what: string,
  words: readonly string[],
  { form = 'KEY=VALUE', pattern = /^([^=]+)=(.*)$/s } = {},
): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  for (const word of words) {
    const [, name, value] = pattern.exec(word) ?? [];
    if (name === undefined || value === undefined)
      throw new UsageError(`${what} must be ${form}, not "${word}"`);
    if (pairs.has(name)) throw new UsageError(`${what} ${name} can be given only once`);
    pairs.set(name, value);
  }
  return pairs;
}

/** The letters of a span that counts back from now, for `timeOf`. */
export const AGE_MS = { s: -1_000, m: -60_000, h: -HOUR_MS, d: -DAY_MS, w: -7 * DAY_MS };

/** What an option says that takes a time in the past. */
export const PAST_TIME =
  '2027-01-31T00:00:00Z; 2027-01-31, when that day begins in UTC; or an age such as 90s, 15m, 2h, 7d, 4w';

const ISO_DAY = /^\d{4}-\d{2}-\d{2}$/;

/**
 * ISO 8601 in UTC of a time, of a day (its start in UTC) or of a span from now on, such as `2h`. `unitMs`: the letters of a
 * span; a negative value counts back. Throws UsageError.
 */
export function timeOf(
  option: string,
  text: string,
  unitMs: Readonly<Record<string, number>>,
  nowMs: number = Date.now(),
): string {
  const [, count, letter = ''] = /^(\d{1,6})([a-z])$/.exec(text) ?? [];
  const unit = unitMs[letter];
  const written = ISO_DAY.test(text) ? `${text}T00:00Z` : text;
  const atMs = unit === undefined ? timestampOf(written) : nowMs + Number(count) * unit;
  if (!Number.isNaN(atMs)) return new Date(atMs).toISOString();
  const spans = Object.keys(unitMs).map((each) => `12${each}`);
  throw new UsageError(
    `--${option} takes a time such as 2027-01-31T00:00:00Z, a day such as 2027-01-31, or a span such as ${spans.join(', ')}, not "${text}"`,
  );
}
