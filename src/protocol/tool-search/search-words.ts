// The words by which tools are found: texts become stems without endings and function words, and words of one meaning share a
// concept. The rules are for English, the language of nearly all definitions; other words are compared as they are.

import { CONCEPTS, FUNCTION_WORDS } from './search-concepts.ts';

/** A token of a concept begins with it. No word does. */
const CONCEPT = '~';
export function isConcept(token: string): boolean {
  return token.startsWith(CONCEPT);
}

/** Words in a row that may have one meaning, as in "pull request". */
const MAX_PHRASE_WORDS = 3;
/** The most UTF-16 units of a word that are compared; the rest is cut. */
const MAX_WORD_UNITS = 40;

/** A word of a text. */
export interface Word {
  /** The stem of the word. Undefined for a word that says nothing about a tool. */
  readonly stem: string | undefined;
  /** The tokens of the concepts that the word, or the phrase beginning with it, means. */
  readonly concepts: readonly string[];
}

/** The words of a text in their order. camelCase and snake_case are split. */
export function wordsOf(text: string): Word[] {
  const stems = stemsOf(text);
  return stems.map((stem, index) => ({
    stem: NO_WORDS.has(stem) ? undefined : stem,
    concepts: conceptsAt(stems, index),
  }));
}

/** The tokens of a text, which are compared: the stem of each word, and the concepts that it means. */
export function tokensOf(text: string): string[] {
  return wordsOf(text).flatMap(({ stem, concepts }) => (stem === undefined ? concepts : [stem, ...concepts]));
}

function conceptsAt(stems: readonly string[], index: number): readonly string[] {
  let phrase = stems[index] ?? '';
  let found = BY_PHRASE.get(phrase) ?? [];
  for (let length = 1; length < MAX_PHRASE_WORDS && index + length < stems.length; length++) {
    phrase += ` ${stems[index + length]}`;
    const longer = BY_PHRASE.get(phrase);
    if (longer !== undefined) found = [...found, ...longer];
  }
  return found;
}

function stemsOf(text: string): string[] {
  const split = text.replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2');
  const words =
    split
      .toLowerCase()
      .replaceAll('e-mail', 'email')
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.map((word) => stemOf(word.slice(0, MAX_WORD_UNITS)));
}

/**
 * Removes the endings of plurals, participles and actions, so that `issues`, `merging` and `merged` equal `issue`
 * and `merge`.
 */
function stemOf(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  for (const [ending, replacement, least] of ENDINGS)
    if (word.endsWith(ending) && word.length - ending.length >= least)
      return withoutLastE(word.slice(0, word.length - ending.length) + replacement);
  return withoutLastE(word);
}

/** `merge` and `merg-ing`, `stop` and `stopp-ed` become one stem. */
function withoutLastE(stem: string): string {
  if (stem.length > 3 && stem.endsWith('e')) return stem.slice(0, -1);
  return stem.length > 3 && DOUBLED.test(stem) ? stem.slice(0, -1) : stem;
}

const DOUBLED = /([bdgmnprt])\1$/;
/** Each row is an ending, its replacement, and the fewest letters before it. The first row that fits is used. */
const ENDINGS: readonly (readonly [string, string, number])[] = [
  ['ies', 'y', 2],
  ['sses', 'ss', 1],
  ['xes', 'x', 2],
  ['ches', 'ch', 2],
  ['shes', 'sh', 2],
  ['ss', 'ss', 1],
  ['us', 'us', 1],
  ['is', 'is', 1],
  ['s', '', 3],
  ['ations', 'at', 3],
  ['ation', 'at', 3],
  ['ings', '', 3],
  ['ing', '', 3],
  ['ied', 'y', 2],
  ['ed', '', 3],
  ['ment', '', 4],
];

const NO_WORDS: ReadonlySet<string> = new Set(stemsOf(FUNCTION_WORDS));
/** The tokens of the concepts of a phrase, by its stems. */
const BY_PHRASE: ReadonlyMap<string, readonly string[]> = conceptsByPhrase();

function conceptsByPhrase(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [number, concept] of CONCEPTS.entries())
    for (const phrase of concept.split(', ')) {
      const key = stemsOf(phrase).join(' ');
      const known = found.get(key);
      if (known === undefined) found.set(key, [CONCEPT + number]);
      else if (!known.includes(CONCEPT + number)) known.push(CONCEPT + number);
    }
  return found;
}
