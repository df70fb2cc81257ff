// Remembers the last lines of a text stream, for the question "what did it say before it died?".
// It holds text for people: nothing is decided by what stands in it.

import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { LIMITS } from '../../domain/limits.ts';

/** Keeps LIMITS.stderrLines lines, each cut at LIMITS.stderrLineCharacters characters; empty lines are left out. */
export class LineTail {
  readonly #decoder = new StringDecoder('utf8');
  #finished: string[] = [];
  #unfinished = '';

  /** Takes the next bytes of the stream. */
  write(chunk: Buffer): void {
    const pieces = this.#decoder.write(chunk).split('\n');
    const unfinished = pieces.pop() ?? '';
    for (const piece of pieces) {
      const line = readable(cut(this.#unfinished + piece));
      this.#unfinished = '';
      if (line !== '') this.#finished.push(line);
    }
    this.#finished = this.#finished.slice(-LIMITS.stderrLines);
    this.#unfinished = cut(this.#unfinished + unfinished);
  }

  /** Takes a whole line of another stream; a line of this one that is not finished yet stays behind it. */
  add(line: Buffer): void {
    const text = readable(cut(line.toString('utf8', 0, LIMITS.stderrLineCharacters * LONGEST_CHARACTER)));
    if (text !== '') this.#finished = [...this.#finished, text].slice(-LIMITS.stderrLines);
  }

  /** Oldest first; a last line that is not finished yet is among them. */
  get lines(): readonly string[] {
    const last = readable(this.#unfinished);
    return last === '' ? this.#finished : [...this.#finished, last].slice(-LIMITS.stderrLines);
  }
}

/** Bytes of a character in UTF-8. */
const LONGEST_CHARACTER = 4;

function cut(line: string): string {
  return line.slice(0, LIMITS.stderrLineCharacters);
}

/** Programs write colours even when nobody sees them, and the cut may have split a character. */
function readable(line: string): string {
  return stripVTControlCharacters(line).trimEnd().toWellFormed();
}
