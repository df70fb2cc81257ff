// What is wrong with a YAML document, without its text, which may be a secret: a password without quotes that begins
// with `*`, `!` or `|` is such a fault.

import { codeOf, messageOf } from '../domain/errors/errors.ts';

/** Codes of the parser whose messages have text of the document in their midst, or name no fault of it. */
const FAULTS: Readonly<Record<string, string>> = {
  TAG_RESOLVE_FAILED: 'Unresolved tag',
  BAD_DIRECTIVE: 'Invalid directive',
  BAD_DQ_ESCAPE: 'Invalid escape sequence',
  RESOURCE_EXHAUSTION: 'Nested too deeply',
};

/** One clause, with the place if the parser names it. */
export function yamlFault(thrown: unknown): string {
  const [line = ''] = messageOf(thrown).split(/:?\n/);
  const place = / at line \d+, column \d+$/.exec(line)?.[0] ?? '';
  // Other messages have such text only at the end, behind a colon that follows a word: `The : indicator` has none.
  const [said] = line.slice(0, line.length - place.length).split(/(?<=\S): /);
  return `${FAULTS[codeOf(thrown) ?? ''] ?? said}${place}`;
}
