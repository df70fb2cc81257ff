// The challenge of a backend in a 401 or a 403. Source: RFC 9728 section 5.1, RFC 6750 section 3.

/** The longest header that is read. */
const MAX_CHARACTERS = 8_192;
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;
const MAX_SCOPES = 64;

/** Reads the first Bearer challenge in the header. */
export function challengeIn(header: string | null | undefined): {
  readonly resourceMetadata?: string | undefined;
  readonly scopes: readonly string[];
  readonly error?: string | undefined;
} {
  const text = /\bbearer\b(.*)/is.exec((header ?? '').slice(0, MAX_CHARACTERS))?.[1] ?? '';
  const parameter = (name: string): string | undefined => {
    const found = new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))`, 'i').exec(
      text,
    );
    return found?.[1]?.replace(/\\(.)/g, '$1') ?? found?.[2];
  };
  return {
    resourceMetadata: parameter('resource_metadata'),
    scopes: scopesIn(parameter('scope')),
    error: parameter('error'),
  };
}

/** The scopes of a text, once each. */
export function scopesIn(text: string | undefined): readonly string[] {
  const scopes = (text ?? '').split(' ').filter((scope) => SCOPE.test(scope));
  return [...new Set(scopes)].slice(0, MAX_SCOPES);
}
