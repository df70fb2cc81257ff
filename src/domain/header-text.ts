// Texts as values of HTTP headers: as they are when they are plain ASCII, else as `=?base64?…?=`.
// Source: MCP 2026-07-28 basic/transports/streamable-http#value-encoding.

/** A text as a header value: as it is when it is plain ASCII, else encoded. */
export function encodeHeader(text: string): string {
  return PLAIN.test(text) && !isEncoded(text)
    ? text
    : `${ENCODED_HEAD}${Buffer.from(text, 'utf8').toString('base64')}${ENCODED_TAIL}`;
}

/**
 * What a header value stands for: the text in `=?base64?…?=`, else the value itself. Undefined when the encoding is
 * not canonical Base64 of UTF-8, which must be refused.
 */
export function decodeHeader(value: string): string | undefined {
  if (!isEncoded(value)) return value;
  const encoded = value.slice(ENCODED_HEAD.length, -ENCODED_TAIL.length);
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return undefined;
  try {
    return STRICT_UTF8.decode(bytes);
  } catch {
    return undefined; // not UTF-8
  }
}

function isEncoded(value: string): boolean {
  const isLongEnough = value.length >= ENCODED_HEAD.length + ENCODED_TAIL.length;
  return isLongEnough && value.startsWith(ENCODED_HEAD) && value.endsWith(ENCODED_TAIL);
}

const ENCODED_HEAD = '=?base64?';
const ENCODED_TAIL = '?=';
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
