// What a command is: the data that help and parsing are made from, and the function that runs it.
// A command's file must be cheap to import, since `--help` imports all of them: heavy things are loaded inside `run`.

import type { CommandInput } from './command-input.ts';
import type { Terminal } from './terminal.ts';

/** One option of a command. */
export interface OptionDefinition {
  /** As cac writes it: `--port <number>` takes a value, `--json` is a switch, `--no-auth` turns `auth` off. */
  readonly flags: string;
  /** One letter that stands for it: `-f`. */
  readonly short?: string;
  /** For help; names the default. */
  readonly description: string;
  /** May be given several times. Default: giving it twice is a usage error. */
  readonly repeatable?: boolean;
}

/** One row of the table in commands/index.ts. */
export interface CommandDefinition {
  /** One word, or a group and a word: `gateway start`. */
  readonly name: string;
  /** Positional arguments as cac writes them: `<template> <id>`, or an empty string. */
  readonly positionals: string;
  /** One line for help. */
  readonly summary: string;
  readonly options: readonly OptionDefinition[];
  /** Lines for help, without the program's name. */
  readonly examples?: readonly string[];
  /** Resolves with the exit code; throws UsageError or CommandFailure. */
  readonly run: (input: CommandInput, terminal: Terminal) => Promise<number>;
}

/** An option without its value: `--port` of `--port <number>`. */
export function optionFlag({ flags }: OptionDefinition): string {
  return flags.replace(/ .*$/, '');
}

/** The name of an option without its dashes: `port` of `--port <number>`, `auth` of `--no-auth`. */
export function optionName({ flags }: OptionDefinition): string {
  return flags.replace(/^--(no-)?/, '').replace(/ .*$/, '');
}
