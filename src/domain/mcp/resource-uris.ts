// The URIs of resources: what servers may read one as, and which subscriptions of clients an update belongs to. A
// server may report a part of a subscribed resource; the structure of the URIs determines the parts of a resource.
// Source: MCP 2025-11-25 and 2026-07-28 schema, ResourceUpdatedNotification: "a sub-resource of the one that the
// client actually subscribed to".

/** Bounds of the cuts of a URI; a subscription beyond them is refused (protocol/client-bounds.ts). */
const MAX_CUTS = 64;
const MAX_UNITS = 8 * 1024;

/** True for the URI of one of these resources, or of a part of one. */
export function isAboutOneOf(uri: unknown, uris: Pick<ReadonlySet<string>, 'has'>): uri is string {
  return (
    typeof uri === 'string' && (uris.has(uri) || enclosingUris(uri).some((candidate) => uris.has(candidate)))
  );
}

/**
 * The URI itself, then those of the resources that it may be a part of, from the outside in: the URI cut at each `/`, `?` or `#`,
 * with and without that character. Beyond MAX_CUTS the inner ones are omitted.
 */
export function enclosingUris(uri: string): string[] {
  const uris = [uri];
  const end = Math.min(uri.length, MAX_UNITS + 1);
  for (let at = 1, cuts = 0; at < end && cuts < MAX_CUTS; at += 1) {
    if (!MARKS.has(uri.charAt(at))) continue;
    cuts += 1;
    uris.push(uri.slice(0, at));
    if (at + 1 < uri.length) uris.push(uri.slice(0, at + 1));
  }
  return uris;
}

const MARKS: ReadonlySet<string> = new Set(['/', '?', '#']);

/**
 * The forms in which servers may read a URI, each plain: those with a parser of URLs, as the SDKs have, remove `..`
 * and spaces at the ends, others read escapes first. Source: WHATWG URL.
 */
export function readingsOf(uri: string): readonly string[] {
  return [uri, withoutEscapes(uri)].map((each) => {
    const parsed = URL.parse(each)?.href ?? each;
    return plainUri(parsed === `${each}/` ? each : parsed);
  });
}

/** A URI, or a glob for URIs, without escapes, and with scheme and authority in lower case. */
export function plainUri(text: string): string {
  return withoutEscapes(text).replace(AUTHORITY, (beginning) => beginning.toLowerCase());
}

const AUTHORITY = /^[a-z][a-z0-9+.-]*:(?:\/\/[^/?#]*)?/i;

function withoutEscapes(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}
