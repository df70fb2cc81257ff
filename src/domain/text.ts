// Rules for texts: valid Unicode, invisible characters, length, the encoding in HTTP headers, timestamps as people
// write them, and the last output of a failed program.

import { timingSafeEqual } from 'node:crypto';
import { LIMITS } from './limits.ts';

/** The words of these lines: a list of names that would take a line for each. */
export function wordsIn(...lines: readonly string[]): readonly string[] {
  return lines.join(' ').split(' ');
}

/** True for text without NUL characters and lone surrogates, which no database, backend or log must get. */
export function isCleanText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/**
 * Equal for texts that readers which ignore case take for the same: for Go's encoding/json the Kelvin sign is a
 * `k`, and the long s an `s`.
 */
export function caseless(text: string): string {
  return text.toLowerCase().toUpperCase();
}

/** True for equal texts. All texts of one length take the same time, so that nobody can guess a secret part by part. */
export function isSameSecret(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** True for a form or a query with more than LIMITS.formFields. */
export function hasManyFields(text: string): boolean {
  return text.split('&', LIMITS.formFields + 1).length > LIMITS.formFields;
}

/** `1 instance`, `2 instances`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * The text of a file, without a byte order mark. Throws an error with the code `not UTF-8`: replacement characters would silently
 * change a password.
 */
export function utf8Text(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw Object.assign(new Error('not UTF-8', { cause }), { code: 'not UTF-8' });
  }
}

/**
 * Characters that move the cursor of a terminal, change the order of a text or take no place in it: controls, line
 * separators, bidi, zero width, fillers, tags. Not the two that join letters, which scripts and emoji need.
 */
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds.
  /[\u034f\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

export function hasInvisible(text: string): boolean {
  return INVISIBLE.test(text);
}

/** The text on one line: a space for each run of spaces and such characters. */
export function plainLine(text: string): string {
  return text.replace(INVISIBLE_RUNS, ' ').trim();
}

const INVISIBLE_RUNS = new RegExp(`(?:\\s|${INVISIBLE.source})+`, 'gu');

/** The text with a space for each such character, except line breaks, tabs and the colours of the command line (ESC [ ... m). */
export function withoutInvisible(text: string): string {
  return text.replace(INVISIBLE_OR_OURS, (found) =>
    found.startsWith('\u001b[') || found === '\n' || found === '\t' ? found : ' ',
  );
}

/**
 * Bold, dim, red, green and yellow, where they end again: text of others with such codes cannot hide or colour
 * what follows it.
 */
const OURS = '\\u001b\\[(?:[12]m(?=[^\\u001b]*\\u001b\\[22m)|3[123]m(?=[^\\u001b]*\\u001b\\[39m)|(?:22|39)m)';
const INVISIBLE_OR_OURS = new RegExp(`${OURS}|${INVISIBLE.source}`, 'gu');

/** Message and type of an issue about text that is not clean. */
export const NOT_UNICODE = {
  msg: 'Input should be a valid string without NUL characters or lone surrogates',
  type: 'string_unicode',
} as const;

/** A NUL character, or the three bytes that UTF-8 forbids for a surrogate, percent-encoded. */
export const HIDES_BAD_TEXT = /%00|%ed%[ab][0-9a-f]/i;

/** The first `units` UTF-16 units of the text, without half a pair of surrogates. */
export function cutText(text: string, units: number): string {
  return text.length <= units ? text : ownText(text.slice(0, units).replace(/[\ud800-\udbff]$/, ''));
}

/** An equal text in memory of its own: V8 makes a part of a text a reference to the whole one, which it keeps. */
export function ownText(part: string): string {
  return Buffer.from(part, 'utf16le').toString('utf16le');
}

/** The text of at most `most` bytes of UTF-8, cut between two characters. */
export function cutBytes(bytes: Uint8Array, most: number): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, most), { stream: true });
}

/** A text as a header value: unchanged if it is plain ASCII, else encoded. */
export function encodeHeader(text: string): string {
  return PLAIN.test(text) && !ENCODED.test(text)
    ? text
    : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/** Headers as Node gives them: lower-case names, no white space around values, repeated headers joined. */
export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The text of a header value: the decoded text of `=?base64?…?=`, else the value itself. Undefined when the
 * encoding is not canonical Base64 of UTF-8; such a value must be refused.
 */
export function decodeHeader(value: string): string | undefined {
  const encoded = ENCODED.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return undefined;
  try {
    return STRICT_UTF8.decode(bytes);
  } catch {
    return undefined; // not UTF-8
  }
}

const ENCODED = /^=\?base64\?(.*)\?=$/s;
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const FORM = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)([Zz]|[+-]\d\d:?\d\d)$/;

/**
 * RFC 3339 or ISO 8601 with `Z` or an offset, as ms since 1970; NaN for any other text, for days such as 30
 * February, and for times after the year 9999 in UTC, which databases refuse.
 */
export function timestampOf(text: string): number {
  const [, day = '', time = '', offset = ''] = FORM.exec(text) ?? [];
  const zone = offset.length === 5 ? `${offset.slice(0, 3)}:${offset.slice(3)}` : offset.toUpperCase();
  // Date.parse accepts 30 February as a day in March.
  const midnight = new Date(`${day}T00:00:00Z`);
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  const atMs = isDay ? Date.parse(`${day}T${time}${zone}`) : Number.NaN;
  return atMs < Date.UTC(10_000, 0) ? atMs : Number.NaN;
}

/** Lines that Node and npm write after an error: the stack and the version of Node, and advice of npm that names no fault. */
const STACK =
  /^\s+at .|^\s*[{}^]\s*$|^Node\.js v\d|^npm (?:error|ERR!) (?:404 *$|404 Note |404 tarball|A complete log)|^npm notice/;

/** The last `most` lines that are not part of a stack; if there are no others, the last lines of the stack. */
export function lastWords(lines: readonly string[], most: number): readonly string[] {
  const messages = lines.filter((line) => !STACK.test(line));
  return (messages.length === 0 ? lines : messages).slice(-most);
}

/** `text` as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A name such as `CloseBracketExpected` as words in lower case. */
export function asWords(name: string): string {
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}
