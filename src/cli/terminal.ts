// The surroundings of a command: standard output for results, standard error for errors, questions and a spinner, standard input
// for one line or a hidden answer.

import { createInterface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';
import type { Spinner } from 'yocto-spinner';
import { codeOf } from '../domain/errors/errors.ts';
import { utf8Text, withoutInvisible } from '../domain/text.ts';
import { Cancelled, CommandFailure, writeFailure } from './failures.ts';

export interface Terminal {
  /** Prints a result or progress; the line end is added, here and below. */
  print(text: string): void;
  complain(text: string): void;
  /** Prints a warning or progress to the stream of errors; --quiet drops it. */
  note(text: string): void;
  /**
   * Resolves when everything printed is written. Throws CommandFailure when it could not be; a reader that went
   * away is not a failure.
   */
  written(): Promise<void>;
  /** Replaces everything on the screen. Only where a person reads `print`. */
  redraw(text: string): void;
  readonly busy: Busy;
  /** Colours the text when a person with a colour terminal reads `print`. */
  paint(colour: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string): string;
  /** Characters per line where a person reads `print`; undefined when a program or a file does. */
  readonly columns: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where the key in `env.STAGEDOOR_API_KEY` comes from, for messages. Default: the variable. */
  readonly keySource?: string | undefined;
  /** The folder at which relative paths of the command line start. */
  readonly folder: string;
  readonly canAsk: boolean;
  /** Asks a person for a text, which is not shown. Throws Cancelled after Ctrl-C and Ctrl-D. Only when `canAsk`. */
  askHidden(question: string): Promise<string>;
  /** The first line of standard input, without its end; undefined when it is too long or no UTF-8. */
  readLine(): Promise<string | undefined>;
}

/** Asks a question that is answered with yes or no, on standard input. Resolves with true for yes. */
export async function isAgreed(
  terminal: Pick<Terminal, 'complain' | 'readLine'>,
  question: string,
): Promise<boolean> {
  terminal.complain(`${question} [y/N]`);
  return /^\s*y(es)?\s*$/i.test((await terminal.readLine()) ?? '');
}

/** The same terminal for `--quiet`: results and errors only. */
export function quietTerminal(terminal: Terminal): Terminal {
  return terminalWith(terminal, { note: () => {}, busy: withoutSpinner });
}

/** The terminal with some of it changed. Its getters stay: to ask for a folder that was removed throws. */
export function terminalWith(terminal: Terminal, changes: Partial<Terminal>): Terminal {
  const members: Readonly<Record<string, PropertyDescriptor>> = {
    ...Object.getOwnPropertyDescriptors(terminal),
    ...Object.getOwnPropertyDescriptors(changes),
  };
  return Object.create(null, members);
}

const withoutSpinner: Busy = (_what, work) => work(() => {});

const [USUAL_COLUMNS, USUAL_ROWS] = [80, 24];

/**
 * The terminal of the process. No text that it writes moves the cursor or changes the order of letters, whatever its origin.
 * A reader that goes away (`stagedoor instance list | head -1`), a closed terminal or a full disk ends nothing: the calls of
 * a gateway are worth more than its output.
 */
export function processTerminal(): Terminal {
  let failure: unknown;
  process.stdout.on('error', (error) => {
    if (codeOf(error) !== 'EPIPE') failure ??= error;
  });
  process.stderr.on('error', () => {}); // a report would fail in the same way
  const { NO_COLOR: noColour, TERM: kind } = process.env;
  const isColoured = process.stdout.isTTY === true && !noColour && kind !== 'dumb';
  return {
    print: (text) => {
      process.stdout.write(withoutInvisible(text));
      // Apart: Node does not notice when a full disk takes only a part of a write, but the next write fails.
      process.stdout.write('\n');
    },
    written: async () => {
      await new Promise((resolve) => process.stdout.write('', resolve));
      if (failure !== undefined) throw writeFailure('standard output', failure);
    },
    complain,
    note: complain,
    redraw: (text) => {
      // Moves the cursor home, overwrites each line to its end, and clears the rest; lines that would scroll are omitted.
      const lines = withoutInvisible(text)
        .split('\n')
        .slice(0, Math.max(1, (process.stdout.rows || USUAL_ROWS) - 1));
      process.stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`);
    },
    // With a pipe at either end another program, such as a pager, may be drawing on the terminal.
    busy: process.stdout.isTTY === true && process.stderr.isTTY === true ? showBusy() : withoutSpinner,
    paint: (colour, text) => (isColoured ? styleText(colour, text, { validateStream: false }) : text),
    get columns() {
      return process.stdout.isTTY === true ? process.stdout.columns || USUAL_COLUMNS : undefined;
    },
    env: process.env,
    get folder() {
      try {
        return process.cwd();
      } catch (error) {
        throw new CommandFailure('the current folder was removed; change to another one', { cause: error });
      }
    },
    canAsk: process.stdin.isTTY === true,
    // The question goes to standard error: standard output may be a file.
    askHidden: (question) => askHidden(question, { input: process.stdin, output: process.stderr }),
    readLine: () => readFirstLine(process.stdin),
  };
}

function complain(text: string): void {
  process.stderr.write(`${withoutInvisible(text)}\n`);
}

// --- the spinner on standard error -------------------------------------------------------------------------

/** Runs the work beside a spinner with the text `what`, a clause; `progress` replaces the text. */
type Busy = <T>(what: string, work: (progress: (text: string) => void) => Promise<T>) => Promise<T>;

/** The time in ms after which work shows a spinner. */
const SPINNER_AFTER_MS = 500;

/** Shows one spinner at a time: nested and concurrent work shows none. */
export function showBusy(stream: NodeJS.WriteStream = process.stderr): Busy {
  let isTaken = false;
  return async (what, work) => {
    if (isTaken) return work(() => {});
    isTaken = true;
    let text = what;
    let isOver = false;
    let spinner: Spinner | undefined;
    const timer = setTimeout(async () => {
      const { default: yoctoSpinner } = await import('yocto-spinner');
      // Of a command that takes signals itself, the spinner must not end the process.
      const handleSignals = process.listenerCount('SIGINT') === 0;
      if (!isOver) spinner = yoctoSpinner({ stream, text, handleSignals }).start();
    }, SPINNER_AFTER_MS);
    try {
      return await work((progress) => {
        // One line of the screen: a spinner that wraps flickers.
        const line = progress.replace(/\s+/g, ' ').slice(0, Math.max(20, stream.columns - 4));
        text = withoutInvisible(line); // last: a colour that no longer ends would stay
        if (spinner !== undefined) spinner.text = text;
      });
    } finally {
      isOver = true;
      isTaken = false;
      clearTimeout(timer);
      spinner?.stop();
    }
  };
}

// --- standard input: without a deadline, since the program at the other end of a pipe may ask a question itself

const MAX_LINE_LENGTH = 64 * 1024;

/**
 * The text up to the first line end; undefined when it is longer than 64 KiB or no UTF-8. Only a terminal can be read again: a
 * pipe that stays open would keep the process alive.
 */
export async function readFirstLine(
  input: Readable & { readonly isTTY?: boolean },
): Promise<string | undefined> {
  let read = Buffer.alloc(0);
  for await (const chunk of input.iterator({ destroyOnReturn: input.isTTY !== true })) {
    read = Buffer.concat([read, Buffer.from(chunk)]);
    if (read.includes('\n') || read.length > MAX_LINE_LENGTH) break;
  }
  input.pause();
  if (read.length > MAX_LINE_LENGTH && !read.includes('\n')) return undefined;
  try {
    return utf8Text(read).split(/\r?\n/, 1)[0];
  } catch {
    return undefined; // a password that could not be typed elsewhere
  }
}

/** The line that was typed. Throws Cancelled after Ctrl-C, Ctrl-D and the end of the input; restores the terminal. */
export function askHidden(
  question: string,
  { input, output }: { readonly input: Readable; readonly output: Pick<Writable, 'write'> },
): Promise<string> {
  // The line editor knows all keys, and sets and resets the raw mode; it must not echo.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const editor = createInterface({ input, output: nowhere, terminal: true, historySize: 0 });
  // From here on nothing is echoed, even text that is typed before the question appears.
  output.write(withoutInvisible(question).replaceAll('\n', ' '));
  return new Promise((resolve, reject) => {
    let answer: string | undefined;
    editor.once('line', (line) => {
      answer = line;
      editor.close();
    });
    editor.once('SIGINT', () => editor.close());
    editor.once('close', () => {
      output.write('\n');
      input.pause(); // otherwise it would keep the process alive
      if (answer === undefined) reject(new Cancelled());
      else resolve(answer);
    });
  });
}
