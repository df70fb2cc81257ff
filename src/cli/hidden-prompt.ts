// Asks a person for something that must not be seen while it is typed. Only for terminals; piped input is first-line.ts.

import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { Writable } from 'node:stream';
import { Interrupted } from './failures.ts';

/** Where a person types and reads. */
export interface PromptStreams {
  readonly input: Readable;
  /** Gets the question and the line end; never what is typed. */
  readonly output: Pick<Writable, 'write'>;
}

/**
 * The line that was typed; undefined when it was cancelled with Ctrl-D. Rejects with Interrupted after Ctrl-C. Backspace,
 * Ctrl-U and the like work. The terminal is as before when the promise settles; a signal that ends the process puts it back as well (Node does).
 */
export function askHidden(question: string, { input, output }: PromptStreams): Promise<string | undefined> {
  // A line editor that draws into nothing: it knows all keys, and sets and resets the raw mode.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const editor = createInterface({ input, output: nowhere, terminal: true, historySize: 0 });
  // From here on nothing is echoed, not even what is typed before the question is read.
  output.write(question);
  return new Promise((resolve, reject) => {
    let answer: string | undefined;
    let isInterrupted = false;
    editor.once('line', (line) => {
      answer = line;
      editor.close();
    });
    editor.once('SIGINT', () => {
      isInterrupted = true;
      editor.close();
    });
    editor.once('close', () => {
      output.write('\n');
      input.pause(); // otherwise it would keep the process alive
      if (isInterrupted) reject(new Interrupted());
      else resolve(answer);
    });
  });
}
