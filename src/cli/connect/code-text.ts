// Values as they are written in the languages of snippets.

/** One word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A string of JavaScript. */
export function jsString(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

/** The string, list or map of strings in JavaScript, on one line. */
export function jsList(texts: readonly string[]): string {
  return `[${texts.map(jsString).join(', ')}]`;
}
