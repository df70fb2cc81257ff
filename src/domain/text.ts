// What every text that is kept or passed on has to be: proper Unicode, and no longer than its place.

/** True for text without NUL characters and lone surrogates: no database, backend or log should ever get those. */
export function isCleanText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Message and type of a finding about text that is not clean. */
export const NOT_UNICODE = {
  msg: 'Input should be a valid string without NUL characters and lone surrogates',
  type: 'string_unicode',
} as const;

/** At most so many UTF-16 units of the text, never half a pair of surrogates. */
export function cutText(text: string, units: number): string {
  return text.length <= units ? text : text.slice(0, units).replace(/[\ud800-\udbff]$/, '');
}
