// A terminal that records the output of a command, for specs of commands.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cancelled } from '../../src/cli/failures.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

export interface RecordingTerminal extends Terminal {
  /** Everything printed, in order. */
  readonly printed: string[];
  /** All lines of standard error, in order. */
  readonly complaints: string[];
  /** The hidden questions that were asked, in order. */
  readonly questions: string[];
  /** The messages beside a spinner, in order. */
  readonly progress: string[];
}

export interface RecordingOptions {
  readonly env?: Record<string, string>;
  readonly folder?: string;
  /** Marks painted text as `<green>…</green>` instead of leaving it as it is. */
  readonly colours?: boolean;
  /** The width of a terminal; undefined: a pipe. */
  readonly columns?: number;
  /** The answers to hidden questions, in order; without further answers a question is cancelled. Undefined: no terminal. */
  readonly answers?: readonly string[];
  /** The first line of standard input. */
  readonly line?: string;
  /** Is called with everything printed or drawn, at once. */
  readonly onPrint?: (text: string) => void;
  /** The same for standard error. */
  readonly onComplaint?: (text: string) => void;
}

const NOWHERE = join(tmpdir(), 'stagedoor-nobody-is-logged-in');

export function recordingTerminal(options: RecordingOptions = {}): RecordingTerminal {
  const printed: string[] = [];
  const complaints: string[] = [];
  const questions: string[] = [];
  const progress: string[] = [];
  const answers = [...(options.answers ?? [])];
  const print = (text: string) => {
    printed.push(text);
    options.onPrint?.(text);
  };
  const complain = (text: string) => {
    complaints.push(text);
    options.onComplaint?.(text);
  };
  return {
    printed,
    complaints,
    questions,
    progress,
    print,
    written: async () => {},
    complain,
    note: complain,
    redraw: print,
    busy: (what, work) => {
      progress.push(what);
      return work((text) => void progress.push(text));
    },
    paint: (colour, text) => (options.colours ? `<${colour}>${text}</${colour}>` : text),
    columns: options.columns,
    // No login of the person who runs the specs is used.
    env: { XDG_CONFIG_HOME: NOWHERE, APPDATA: NOWHERE, ...options.env },
    folder: options.folder ?? process.cwd(),
    canAsk: options.answers !== undefined,
    askHidden: async (question) => {
      questions.push(question);
      const answer = answers.shift();
      if (answer === undefined) throw new Cancelled();
      return answer;
    },
    readLine: async () => options.line,
  };
}
