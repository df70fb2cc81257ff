// Rules for texts: valid Unicode and a bounded length for each that is kept or passed on, the encoding of those in HTTP headers,
// timestamps as people write them, and the last output of a failed program, for an operator who looks for the reason.

/** True for text without NUL characters and lone surrogates: no database, backend or log should ever get those. */
export function isCleanText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** What moves the cursor of a terminal, or changes the order in which a text is read: controls, line separators, bidi. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** True for text with invisible characters that change how the rest is shown. */
export function hasUnseen(text: string): boolean {
  return UNSEEN.test(text);
}

/** The text with a space for each such character, but for line breaks, tabs and our own colours (ESC [ ... m). */
export function withoutUnseen(text: string): string {
  return text.replace(UNSEEN_OR_OURS, (found) =>
    found.length > 1 || found === '\n' || found === '\t' ? found : ' ',
  );
}

const UNSEEN_OR_OURS = new RegExp(`\\u001b\\[\\d{1,2}m|${UNSEEN.source}`, 'g');

/** Message and type of an issue about text that is not clean. */
export const NOT_UNICODE = {
  msg: 'Input should be a valid string without NUL characters and lone surrogates',
  type: 'string_unicode',
} as const;

/** At most so many UTF-16 units of the text, never half a pair of surrogates. */
export function cutText(text: string, units: number): string {
  return text.length <= units ? text : text.slice(0, units).replace(/[\ud800-\udbff]$/, '');
}

/** A text as a header value: as it is when it is plain ASCII, else encoded. */
export function encodeHeader(text: string): string {
  return PLAIN.test(text) && !isEncoded(text)
    ? text
    : `${ENCODED_HEAD}${Buffer.from(text, 'utf8').toString('base64')}${ENCODED_TAIL}`;
}

/**
 * What a header value stands for: the text in `=?base64?…?=`, else the value itself. Undefined when the encoding is
 * not canonical Base64 of UTF-8, which must be refused.
 */
export function decodeHeader(value: string): string | undefined {
  if (!isEncoded(value)) return value;
  const encoded = value.slice(ENCODED_HEAD.length, -ENCODED_TAIL.length);
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return undefined;
  try {
    return STRICT_UTF8.decode(bytes);
  } catch {
    return undefined; // not UTF-8
  }
}

function isEncoded(value: string): boolean {
  const isLongEnough = value.length >= ENCODED_HEAD.length + ENCODED_TAIL.length;
  return isLongEnough && value.startsWith(ENCODED_HEAD) && value.endsWith(ENCODED_TAIL);
}

const ENCODED_HEAD = '=?base64?';
const ENCODED_TAIL = '?=';
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const FORM = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)([Zz]|[+-]\d\d:?\d\d)$/;

/** RFC 3339 or ISO 8601 with `Z` or an offset, as ms since 1970; NaN for everything else, also for the 30th of February. */
export function timestampOf(text: string): number {
  const [, day = '', time = '', offset = ''] = FORM.exec(text) ?? [];
  const zone = offset.length === 5 ? `${offset.slice(0, 3)}:${offset.slice(3)}` : offset.toUpperCase();
  // Date.parse takes the 30th of February for a day in March.
  const midnight = new Date(`${day}T00:00:00Z`);
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  return isDay ? Date.parse(`${day}T${time}${zone}`) : Number.NaN;
}

/** Lines that Node writes after the error: places in code, and its version. */
const STACK = /^\s+at .|^\s*[{}^]\s*$|^Node\.js v\d/;

/** The last `most` lines outside a stack, because the error is above its stack. Stack lines only when there are no others. */
export function lastWords(lines: readonly string[], most: number): readonly string[] {
  const said = lines.filter((line) => !STACK.test(line));
  return (said.length === 0 ? lines : said).slice(-most);
}
