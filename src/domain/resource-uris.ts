// Maps updates of resources to subscriptions. A server may report a part of a subscribed resource, and does not say how
// parts are named: the structure of URIs decides. For clients of both eras, however their conversation is shared.
// Source: MCP 2025-11-25 and 2026-07-28 schema, ResourceUpdatedNotification: "a sub-resource of the one that the client
// actually subscribed to".

/** The URIs of a subscription. */
type UriLookup = Pick<ReadonlySet<string>, 'has'>;

/** Marks at which a URI is cut, and how far into it; a client that subscribes to more is refused (protocol/client-bounds.ts). */
const MOST_CUTS = 64;
const MOST_UNITS = 8 * 1024;

/** True for the URI of one of these resources, or of a part of one. */
export function isAboutOneOf(uri: unknown, uris: UriLookup): uri is string {
  return typeof uri === 'string' && (uris.has(uri) || wholesOf(uri).some((whole) => uris.has(whole)));
}

/**
 * The resource itself, then those that it may be a part of, from the outside in: what stands before a `/`, `?` or `#`, with the
 * mark and without. Of a URI with very many of them the inner ones are left out.
 */
export function wholesOf(uri: string): string[] {
  const wholes = [uri];
  const end = Math.min(uri.length, MOST_UNITS + 1);
  for (let at = 1, cuts = 0; at < end && cuts < MOST_CUTS; at += 1) {
    if (!MARKS.has(uri.charAt(at))) continue;
    cuts += 1;
    wholes.push(uri.slice(0, at));
    if (at + 1 < uri.length) wholes.push(uri.slice(0, at + 1));
  }
  return wholes;
}

const MARKS: ReadonlySet<string> = new Set(['/', '?', '#']);
