// Where a command reads its surroundings and writes its words: standard output for results and progress, standard error
// for what went wrong. Commands get it as an argument, so that specs can read what they say.

import { styleText } from 'node:util';

/** The outside world of one command. */
export interface Terminal {
  /** A result or progress: one line or more, the line end is added. */
  print(text: string): void;
  /** What went wrong or is risky: one line, the line end is added. */
  complain(text: string): void;
  /** Colours the text when a person with a colour terminal reads `print`, else returns it as it is. */
  paint(colour: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string): string;
  /** Characters per line where a person reads `print`; undefined when a program or a file does. */
  readonly columns: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder relative paths of the command line start from. */
  readonly folder: string;
}

/**
 * The real one. A reader that goes away (`stagedoor gateway list | head -1`), a terminal that is closed or a disk that is
 * full ends nothing: the calls that a gateway is working on are worth more than the words about them.
 */
export function processTerminal(): Terminal {
  process.stdout.on('error', ignore);
  process.stderr.on('error', ignore);
  const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR;
  return {
    print: (text) => void process.stdout.write(`${text}\n`),
    complain: (text) => void process.stderr.write(`${text}\n`),
    paint: (colour, text) => (isColoured ? styleText(colour, text, { validateStream: false }) : text),
    columns: process.stdout.isTTY === true ? process.stdout.columns : undefined,
    env: process.env,
    folder: process.cwd(),
  };
}

/** Whatever it is (EPIPE, EIO, ENOSPC): there is nobody left to tell, and telling would fail in the same way. */
function ignore(): void {}
