// The headers of a request as Node gives them. What each of them means is known where it is read.

/** Lower-case names. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A header without the white space around it, one that came twice with both values; undefined when it is not there. */
export function headerOf(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  if (value === undefined) return undefined;
  return withoutSpaceAround(typeof value === 'string' ? value : value.join(', '));
}

/** Optional white space is no part of a value. A pattern would take quadratic time. Source: RFC 9110 section 5.5. */
function withoutSpaceAround(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isSpace(value.charCodeAt(start))) start += 1;
  while (end > start && isSpace(value.charCodeAt(end - 1))) end -= 1;
  return start === 0 && end === value.length ? value : value.slice(start, end);
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
