// Splits a command line into words. It is never given to a shell: nothing is expanded, substituted or redirected.
// What the words mean (program, arguments, which are allowed) is decided elsewhere.

/** The words, or why there are none: a quote that is never closed. */
export type CommandWords = { readonly words: readonly string[] } | { readonly problem: string };

const BACKSLASH = '\\';
const OUTSIDE_QUOTES = ' \t\r\n\'"\\';
const INSIDE_DOUBLE_QUOTES = '"\\';
/** How a network path of Windows starts: `\\server`, `\\?\C:`, `\\.\pipe`. */
const NETWORK_PATH = /^\\\\[A-Za-z0-9?.]/;

/**
 * Splits `text` the way POSIX shells do, with one difference that lets Windows paths survive on every platform.
 *
 * - Words are separated by spaces, tabs and line breaks.
 * - `'...'` keeps everything as it is; `"..."` keeps everything but `\"` and `\\`.
 * - Outside quotes a backslash takes the meaning from a following space, quote or backslash, and joins lines. Before
 *   anything else it is an ordinary character, so `C:\tools\run.exe` stays whole (a shell would drop it there).
 * - Two backslashes at the start of a word both stay: `\\server\share` is a network path of Windows.
 *
 * Hence quote a path that ends in a backslash or holds spaces: `'C:\My Tools\'`. Source: ADR 20.
 */
export function splitCommand(text: string): CommandWords {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < text.length) {
    const letter = text.charAt(at);
    const joined = letter === BACKSLASH ? lineBreakLength(text, at + 1) : 0;
    if (isSpace(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
    } else if (joined > 0) {
      at += 1 + joined;
    } else {
      const before = word ?? '';
      const part = isQuote(letter)
        ? readQuoted(text, at, before)
        : readPlain(text, at, before, OUTSIDE_QUOTES);
      if (part === undefined) return { problem: `the ${letter} at character ${at + 1} is never closed` };
      word = before + part.content;
      at += part.length;
    }
  }
  if (word !== undefined) words.push(word);
  return { words };
}

/** A part of a word: what it contributes, and how many characters of the text it took. */
interface Part {
  readonly content: string;
  readonly length: number;
}

/** The quoted part that opens at `start`; undefined when it is never closed. */
function readQuoted(text: string, start: number, before: string): Part | undefined {
  const quote = text.charAt(start);
  let content = '';
  let at = start + 1;
  while (at < text.length) {
    if (text.charAt(at) === quote) return { content, length: at + 1 - start };
    const part = readPlain(text, at, before + content, quote === '"' ? INSIDE_DOUBLE_QUOTES : '');
    content += part.content;
    at += part.length;
  }
  return undefined;
}

/** One character, or a backslash with the character that it frees from its meaning. */
function readPlain(text: string, at: number, before: string, escapable: string): Part {
  const letter = text.charAt(at);
  if (letter !== BACKSLASH || escapable === '') return { content: letter, length: 1 };
  if (before === '' && NETWORK_PATH.test(text.slice(at, at + 3))) {
    return { content: BACKSLASH + BACKSLASH, length: 2 };
  }
  const next = text.charAt(at + 1);
  return next !== '' && escapable.includes(next)
    ? { content: next, length: 2 }
    : { content: letter, length: 1 };
}

function lineBreakLength(text: string, at: number): number {
  if (text.startsWith('\r\n', at)) return 2;
  return text.charAt(at) === '\n' ? 1 : 0;
}

function isSpace(letter: string): boolean {
  return letter === ' ' || letter === '\t' || letter === '\n' || letter === '\r';
}

function isQuote(letter: string): boolean {
  return letter === '"' || letter === "'";
}
