// What the user gave to one command: positional words and option values, exactly as they were typed.
// Reading argv into this is command-line.ts; nothing here decides what a value means, number ranges aside.

import { UsageError } from './failures.ts';

/** An option's value as parsed: text, a switch, or several of one kind. */
export type OptionValue = string | boolean | readonly (string | boolean)[];

/** Words and options of one command. Names are written as on the command line, without dashes: `working-dir`. */
export class CommandInput {
  readonly positionals: readonly string[];
  readonly #options: ReadonlyMap<string, OptionValue>;

  constructor(positionals: readonly string[], options: ReadonlyMap<string, OptionValue>) {
    this.positionals = positionals;
    this.#options = options;
  }

  /** The positional at `index`; the parser has made sure of the required ones. */
  positional(index: number): string {
    const word = this.positionals[index];
    if (word === undefined) throw new UsageError('a word is missing');
    return word;
  }

  /** True when a switch was given, false when `--no-…` was, undefined when neither. */
  switch(name: string): boolean | undefined {
    const value = [this.#options.get(name)].flat().at(-1);
    return typeof value === 'boolean' ? value : undefined;
  }

  /** The text of an option that may be given once. */
  text(name: string): string | undefined {
    const [value, second] = this.texts(name);
    if (second !== undefined) throw new UsageError(`--${name} is given twice`);
    return value;
  }

  /** Every text of a repeatable option, in order. */
  texts(name: string): readonly string[] {
    return [this.#options.get(name)].flat().filter((value) => typeof value === 'string');
  }

  /** A number within bounds, both included. Decimals only when `decimals` says so. */
  number(name: string, bounds: { minimum: number; maximum: number; decimals?: boolean }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = text.trim() === '' ? Number.NaN : Number(text);
    const { minimum, maximum, decimals = false } = bounds;
    const isFine = value >= minimum && value <= maximum && (decimals || Number.isInteger(value));
    if (isFine) return value;
    const kind = decimals ? 'a number' : 'a whole number';
    throw new UsageError(`--${name} must be ${kind} from ${minimum} to ${maximum}, not "${text}"`);
  }
}
