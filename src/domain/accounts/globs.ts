// Lists of globs, which choose tools by their names. In a glob `*` is any text, `/` included, `?` is one
// character, and nothing else is special; case counts. A list that begins with `!` starts from all, every other
// one from none; the last glob that matches decides. The rules for the globs of rights, which name a template
// first, are in domain/accounts/rights.ts.

import { isCleanText, NOT_UNICODE } from '../text.ts';
import { type GlobMatcher, patternOf } from './glob-pattern.ts';

/** Bounds of what is compiled. Names without wildcards cost one look-up. */
export const GLOB_LIMITS = {
  /** Globs of one list. */
  count: 128,
  /** UTF-16 units of one glob. */
  units: 256,
  /** UTF-16 units of a text that a list with wildcards may match; a longer text is not in any list. */
  textUnits: 4_096,
} as const;

export type { GlobMatcher };

/** Some globs of a list, in its order. */
export class IndexedGlobs {
  /** The last index of each name without wildcards. */
  readonly #names = new Map<string, number>();
  /** The patterns of the globs with wildcards, the last one first. */
  readonly #patterns: { readonly index: number; readonly matches: GlobMatcher }[] = [];

  constructor(globs: Iterable<{ readonly glob: string; readonly index: number }>) {
    for (const { glob, index } of globs)
      if (WILDCARD.test(glob)) this.#patterns.unshift({ index, matches: patternOf(glob) });
      else this.#names.set(glob, index);
  }

  /** The index of the last glob that matches, if it is behind `above`; else `above`. */
  lastOf(text: string, above = -1): number {
    const last = Math.max(this.#names.get(text) ?? -1, above);
    // From the last pattern on: the first that matches decides, unless something stands behind it.
    const pattern = this.#patterns.find(({ index, matches }) => index < last || matches(text));
    return Math.max(last, pattern?.index ?? -1);
  }
}

/** Compiles a list once, for any number of texts. */
export function compileGlobs(globs: readonly string[]): GlobMatcher {
  const startsFromAll = globs[0]?.startsWith('!') ?? false;
  const indexed = new IndexedGlobs(globs.map((glob, index) => ({ glob: withoutNegation(glob), index })));
  return (text) => {
    if (text.length > GLOB_LIMITS.textUnits) return false;
    const last = indexed.lastOf(text);
    return last < 0 ? startsFromAll : !globs[last]?.startsWith('!');
  };
}

/** The matcher of one glob, with or without `!`, to find globs that match no name. */
export function compileGlob(glob: string): GlobMatcher {
  const matches = patternOf(withoutNegation(glob));
  return (text) => text.length <= GLOB_LIMITS.textUnits && matches(text);
}

/** UTF-16 units of the texts of one group. */
const GROUP_UNITS = 1_024;

/** The items in groups. Lists of globs match one group in a few ms; thousands of items in one turn would block the event loop. */
export function* groupsToMatch<T>(items: Iterable<T>, textOf: (item: T) => string): Generator<readonly T[]> {
  let group: T[] = [];
  let units = 0;
  for (const item of items) {
    group.push(item);
    units += textOf(item).length + 1;
    if (units < GROUP_UNITS) continue;
    yield group;
    group = [];
    units = 0;
  }
  if (group.length > 0) yield group;
}

/** The rule that a glob breaks, if any. */
export function globIssue(glob: string): { readonly msg: string; readonly type: string } | undefined {
  if (!isCleanText(glob)) return NOT_UNICODE;
  if (withoutNegation(glob) === '')
    return { msg: 'Glob should have at least 1 character', type: 'string_too_short' };
  if (glob.length <= GLOB_LIMITS.units) return undefined;
  return { msg: `Glob should have at most ${GLOB_LIMITS.units} characters`, type: 'string_too_long' };
}

const WILDCARD = /[*?]/;

function withoutNegation(glob: string): string {
  return glob.startsWith('!') ? glob.slice(1) : glob;
}
