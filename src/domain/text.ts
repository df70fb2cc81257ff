// Rules for every text that is kept or passed on: valid Unicode, and a bounded length.

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
