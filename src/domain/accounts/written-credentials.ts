// Keys and tokens that callers write where names belong, such as in a path: found by their shape, for what is logged or recorded.

import { cutText } from '../text.ts';

/** An API key, whole or cut, of which its id is not a secret; a JSON Web Token. */
const CREDENTIAL = /(?<=sd_[0-9a-f]{16}_)[\w-]+|(?<=eyJ)[\w-]{8,}\.[\w.-]+/g;

/**
 * The first `units` UTF-16 units of the text, without credentials. It is cut first: for the repeated beginning of a token the
 * expression takes the square of its length. Of every call some ten texts, nearly all without any: finding a few letters is
 * much faster than the expression.
 */
export function withoutCredentials(text: string, units: number): string {
  const cut = cutText(text, units);
  return cut.includes('sd_') || cut.includes('eyJ') ? cutText(cut.replace(CREDENTIAL, '...'), units) : cut;
}
