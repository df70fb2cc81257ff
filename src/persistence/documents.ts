// Values as JSON in a column. The text is ASCII without a quote: no database, character set or mode of quoting can read it
// as anything else, and no collation can change it.

/** One value as JSON of printable ASCII characters, without `'` and `$` (see literals.ts). */
export function toDocument(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]|['$]/g, escapeOf);
}

/** The value of `toDocument`; its shape is that of what was written. */
export function fromDocument(text: string): unknown {
  return JSON.parse(text);
}

/** One UTF-16 unit: the pattern has no u flag, so a pair of surrogates comes as two. */
function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
