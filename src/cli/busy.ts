// Shows a person that something goes on: a spinner on standard error, with the latest news of the work beside it.

import type { Spinner } from 'yocto-spinner';
import { withoutUnseen } from '../domain/text.ts';

/** Replaces the words beside the spinner; shows it at once if it was not there yet. */
export type Progress = (text: string) => void;

/** Runs the work. `what` is a clause: "waiting for http://127.0.0.1:8080". */
export type Busy = <T>(what: string, work: (progress: Progress) => Promise<T>) => Promise<T>;

/** Work that is done sooner shows nothing, in ms. */
const PATIENCE_MS = 500;

/** One spinner at a time: work within work, and beside it, shows none of its own. */
export function showBusy(stream: NodeJS.WriteStream = process.stderr): Busy {
  let isTaken = false;
  return async (what, work) => {
    if (isTaken) return work(() => {});
    isTaken = true;
    const line = new BusyLine(what, stream);
    try {
      return await work((text) => line.say(text));
    } finally {
      line.end();
      isTaken = false;
    }
  };
}

class BusyLine {
  readonly #stream: NodeJS.WriteStream;
  readonly #timer: NodeJS.Timeout;
  #text: string;
  #spinner: Spinner | undefined;
  #isOver = false;

  constructor(what: string, stream: NodeJS.WriteStream) {
    this.#text = what;
    this.#stream = stream;
    this.#timer = setTimeout(() => void this.#show(), PATIENCE_MS);
  }

  say(text: string): void {
    // One line of the screen: a spinner that wraps flickers.
    this.#text = withoutUnseen(text)
      .replace(/\s+/g, ' ')
      .slice(0, Math.max(20, this.#stream.columns - 4));
    if (this.#spinner === undefined) void this.#show();
    else this.#spinner.text = this.#text;
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#spinner?.stop();
  }

  async #show(): Promise<void> {
    clearTimeout(this.#timer);
    const { default: yoctoSpinner } = await import('yocto-spinner');
    if (this.#isOver || this.#spinner !== undefined) return;
    this.#spinner = yoctoSpinner({ stream: this.#stream, text: this.#text }).start();
  }
}
