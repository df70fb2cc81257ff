// Where a command reads its surroundings and writes its words: standard output for results and progress, standard error
// for what went wrong and for questions. Commands get it as an argument, so that specs can read what they say.

import { styleText } from 'node:util';
import { withoutUnseen } from '../domain/text.ts';
import { type Busy, showBusy } from './busy.ts';
import { readFirstLine, readWhole } from './first-line.ts';
import { askHidden } from './hidden-prompt.ts';

/** The outside world of one command. */
export interface Terminal {
  /** A result or progress: one line or more, the line end is added. */
  print(text: string): void;
  /** What went wrong: one line, the line end is added. */
  complain(text: string): void;
  /** What is neither a result nor an error: warnings, what is done meanwhile. Goes where complaints go; --quiet drops it. */
  note(text: string): void;
  /** Replaces everything on the screen. Only where a person reads `print`. */
  redraw(text: string): void;
  /** Runs the work; a person sees that it goes on once it takes longer than half a second. */
  readonly busy: Busy;
  /** Colours the text when a person with a colour terminal reads `print`, else returns it as it is. */
  paint(colour: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string): string;
  /** Characters per line where a person reads `print`; undefined when a program or a file does. */
  readonly columns: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder relative paths of the command line start from. */
  readonly folder: string;
  /** True when a person can be asked. */
  readonly canAsk: boolean;
  /** What a person types without seeing it; undefined when they cancel. Rejects with Interrupted. Only when `canAsk`. */
  askHidden(question: string): Promise<string | undefined>;
  /** The first line of standard input, without its end; undefined when it cannot be one. */
  readLine(): Promise<string | undefined>;
  /** All of standard input; undefined when it is too long or no UTF-8. */
  readAll(): Promise<string | undefined>;
}

/** The same terminal for `--quiet`: results and errors only. */
export function quietTerminal(terminal: Terminal): Terminal {
  return { ...terminal, note: () => {}, busy: (_what, work) => work(() => {}) };
}

/** Of a terminal that does not say. */
const [USUAL_COLUMNS, USUAL_ROWS] = [80, 24];

/**
 * The real one. No text that it writes moves the cursor or turns the order of letters, wherever it came from. A reader that goes away (`stagedoor gateway list | head -1`), a terminal that is closed or a disk that is
 * full ends nothing: the calls that a gateway is working on are worth more than the words about them.
 */
export function processTerminal(): Terminal {
  process.stdout.on('error', ignore);
  process.stderr.on('error', ignore);
  const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR;
  return {
    print: (text) => void process.stdout.write(`${withoutUnseen(text)}\n`),
    complain,
    note: complain,
    redraw: (text) => {
      // The cursor home, each line with what is left of an older one, and what is below; lines that would scroll are left out.
      const lines = withoutUnseen(text)
        .split('\n')
        .slice(0, Math.max(1, (process.stdout.rows || USUAL_ROWS) - 1));
      process.stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`);
    },
    // With a pipe at either end another program, such as a pager, may be drawing on the terminal.
    busy:
      process.stdout.isTTY === true && process.stderr.isTTY === true
        ? showBusy()
        : (_what, work) => work(() => {}),
    paint: (colour, text) => (isColoured ? styleText(colour, text, { validateStream: false }) : text),
    get columns() {
      return process.stdout.isTTY === true ? process.stdout.columns || USUAL_COLUMNS : undefined;
    },
    env: process.env,
    folder: process.cwd(),
    canAsk: process.stdin.isTTY === true,
    // The question goes where complaints go: standard output may be a file.
    askHidden: (question) => askHidden(question, { input: process.stdin, output: process.stderr }),
    readLine: () => readFirstLine(process.stdin),
    readAll: () => readWhole(process.stdin),
  };
}

function complain(text: string): void {
  process.stderr.write(`${withoutUnseen(text)}\n`);
}

/** Whatever it is (EPIPE, EIO, ENOSPC): there is nobody left to tell, and telling would fail in the same way. */
function ignore(): void {}
