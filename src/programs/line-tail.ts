// Keeps the last lines that a program wrote, for operators.

import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { cutWithoutSecrets, longestOf, withoutSecrets } from '../domain/instances/hidden-secrets.ts';
import { ownText } from '../domain/text.ts';

/** Lines kept of a child's standard error. */
export const STDERR_LINES = 100;
/** Characters kept of each line of standard error. */
export const STDERR_LINE_CHARACTERS = 2_048;

/**
 * The last lines of a text stream, bounded by LIMITS, without empty ones and without the secrets of the program:
 * for operators, no decision depends on them.
 */
export class LineTail {
  readonly #secrets: () => readonly string[];
  readonly #decoder = new StringDecoder('utf8');
  /** Lines as they were written: made readable when they are read, because most never are. */
  #finished: string[] = [];
  #unfinished = '';

  constructor(secrets: () => readonly string[] = () => []) {
    this.#secrets = secrets;
  }

  write(chunk: Buffer): void {
    const lines = (this.#unfinished + this.#decoder.write(chunk)).split('\n');
    this.#unfinished = this.#head(lines.pop() ?? '');
    for (const line of lines.filter(hasText).slice(-STDERR_LINES)) this.#keep(line);
  }

  /** Takes a whole line of another stream, which comes before an incomplete line of this one. */
  add(line: Buffer): void {
    const text = line.toString('utf8', 0, this.#mostUnits() * MAX_CHARACTER_BYTES);
    if (hasText(text)) this.#keep(text);
  }

  #keep(line: string): void {
    this.#finished.push(ownText(line.length > STDERR_LINE_CHARACTERS ? this.#cut(line) : line)); // a part of a chunk
    if (this.#finished.length > 2 * STDERR_LINES) this.#finished.splice(0, STDERR_LINES);
  }

  /** The lines, oldest first, including an incomplete last line. */
  get lines(): readonly string[] {
    const lines = [...this.#finished, this.#cut(this.#unfinished)];
    const shown = lines.map((line) => withoutSecrets(readable(line), this.#secrets()));
    return shown.filter((line) => line !== '').slice(-STDERR_LINES);
  }

  #cut(line: string): string {
    return cutWithoutSecrets(readable(this.#head(line)), STDERR_LINE_CHARACTERS, this.#secrets());
  }

  /** The beginning of a line, long enough to find the secrets in its shown part. */
  #head(line: string): string {
    return line.length > STDERR_LINE_CHARACTERS ? line.slice(0, this.#mostUnits()) : line;
  }

  #mostUnits(): number {
    return STDERR_LINE_CHARACTERS + longestOf(this.#secrets());
  }
}

function hasText(line: string): boolean {
  return /\S/.test(line) && (!line.startsWith('\u001b') || readable(line) !== '');
}

/** The most bytes of a character in UTF-8. */
const MAX_CHARACTER_BYTES = 4;

/** Removes colours, which some programs write without a terminal, and half a character at the cut. */
function readable(line: string): string {
  return stripVTControlCharacters(line).trimEnd().toWellFormed();
}
