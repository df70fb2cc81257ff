// Keys and tokens that callers write where names belong, such as in a path: found by their shape, for what is logged or recorded.

/** An API key, whole or cut, of which its id is no secret; a JSON Web Token. */
const CREDENTIAL = /(?<=sd_[0-9a-f]{16}_)[\w-]+|(?<=eyJ)[\w-]{8,}\.[\w.-]+/g;

/** Of every call some ten texts, nearly all without any: finding a few letters is much faster than the expression. */
export function withoutCredentials(text: string): string {
  return text.includes('sd_') || text.includes('eyJ') ? text.replace(CREDENTIAL, '...') : text;
}
