// The cookies of one conversation with a backend, such as those by which a balancer finds the server of a session.
// They go back to the origin that set them and nowhere else, and end with the conversation. Source: RFC 6265; ADR
// 110.

import { isIP } from 'node:net';
import { ownText } from '../../../domain/text.ts';
import type { Clock } from '../../../domain/time/clock.ts';

/** Bounds of one jar. Over them the oldest cookies are removed; a larger cookie is not kept. */
export const COOKIES = { most: 50, bytes: 8 * 1024 } as const;
/** `set-cookie` lines of one answer that are read. */
const MAX_LINES = 100;
/** Characters of the name and the value of a cookie, and of one attribute. Over them the cookie, or the attribute, is ignored. */
const MAX_CHARACTERS = 4_096;
const MAX_ATTRIBUTE_CHARACTERS = 1_024;

/** A line of `set-cookie`. */
interface Cookie {
  readonly name: string;
  readonly value: string;
  /** The attributes by name in lower case, the last one of each name. */
  readonly attributes: ReadonlyMap<string, string>;
}

/** The request whose answer sets cookies. */
interface Setter {
  readonly host: string;
  /** The path of the request, with its query. */
  readonly path: string;
  /** True when cookies that require a secure connection are kept. */
  readonly isSecure: boolean;
}

interface Kept {
  readonly name: string;
  /** `name=value`, as in the header. */
  readonly pair: string;
  readonly path: string;
  /** The expiry by the monotonic clock. */
  readonly expiresAtMs: number;
}

/** Small while it is empty, because every session has one. */
export class CookieJar {
  /** The cookies by name and path, oldest first. */
  #kept: Map<string, Kept> | undefined;

  /** Keeps the cookies of a `set-cookie` header, and removes the expired ones. Those of other hosts are ignored. */
  keep(header: string | readonly string[], setter: Setter, clock: Clock): void {
    for (const line of [header].flat().slice(0, MAX_LINES)) {
      const cookie = parseCookie(line);
      if (isAccepted(cookie, setter))
        this.#set(cookie, ownText(pathFor(cookie, setter.path)), expiryOf(cookie, clock), clock.now());
    }
  }

  /**
   * The `cookie` header of a request to a path; undefined when none of the jar belongs there. `own`: the header of
   * the definition, whose cookies the backend may replace.
   */
  headerFor(target: string, { now }: Clock, own = ''): string | undefined {
    if (this.#kept === undefined) return undefined;
    const path = pathOf(target);
    const nowMs = now();
    const matching = [...this.#kept.values()]
      .filter((kept) => kept.expiresAtMs > nowMs && isBelow(path, kept.path))
      .sort((one, other) => other.path.length - one.path.length);
    if (matching.length === 0) return undefined;
    const replaced = new Set(matching.map(({ name }) => name));
    const others = own.split(';').map((pair) => pair.trim());
    const staying = others.filter((pair) => pair !== '' && !replaced.has(pair.split('=', 1)[0] ?? ''));
    return [...staying, ...matching.map(({ pair }) => pair)].join('; ');
  }

  #set(cookie: Cookie, path: string, expiresAtMs: number, nowMs: number): void {
    this.#kept ??= new Map();
    const [name, value] = [ownText(cookie.name), ownText(cookie.value)]; // parts of a header of any length
    const key = `${name}\n${path}`;
    this.#kept.delete(key);
    if (expiresAtMs > nowMs)
      this.#kept.set(key, { name, pair: name === '' ? value : `${name}=${value}`, path, expiresAtMs });
    let bytes = 0;
    for (const kept of this.#kept.values()) bytes += kept.pair.length + kept.path.length;
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= COOKIES.most && bytes <= COOKIES.bytes) break;
      bytes -= kept.pair.length + kept.path.length;
      this.#kept.delete(oldest);
    }
  }
}

function parseCookie(line: string): Cookie {
  const [pair = '', ...rest] = line.split(';');
  const [name, value] = halvesOf(pair);
  const attributes = rest.map(halvesOf).filter(([, text]) => text.length <= MAX_ATTRIBUTE_CHARACTERS);
  return {
    // A cookie without `=` is a value without a name.
    ...(pair.includes('=') ? { name, value } : { name: '', value: name }),
    attributes: new Map(attributes.map(([word, text]) => [word.toLowerCase(), text])),
  };
}

function halvesOf(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  return at === -1 ? [text.trim(), ''] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

function isAccepted({ name, value, attributes }: Cookie, { host, isSecure }: Setter): boolean {
  const length = name.length + value.length;
  if (length === 0 || length > MAX_CHARACTERS) return false;
  // Node writes headers as Latin-1; a value with other characters cannot have come from one.
  if (!HEADER_TEXT.test(name) || !HEADER_TEXT.test(value)) return false;
  if (attributes.has('secure') && !isSecure) return false;
  const wanted = (attributes.get('domain') ?? '').toLowerCase().replace(/^\./, '');
  const isParent = host.endsWith(`.${wanted}`) && wanted.includes('.') && isIP(host) === 0;
  return wanted === '' || wanted === host || isParent;
}

const HEADER_TEXT = /^[\x20-\x7e\x80-\xff]*$/;

/** Monotonic, in ms. `max-age` counts before `expires`. */
function expiryOf({ attributes }: Cookie, { now, wall }: Clock): number {
  const age = attributes.get('max-age') ?? '';
  const leftMs = /^-?\d+$/.test(age)
    ? Number(age) * 1_000
    : Date.parse(attributes.get('expires') ?? '') - wall();
  return Number.isNaN(leftMs) ? Number.POSITIVE_INFINITY : now() + leftMs;
}

/** The path of a cookie, '/' for an invalid one; without one the folder of the request. Source: RFC 6265, 5.1.4. */
function pathFor({ attributes }: Cookie, target: string): string {
  const path = attributes.get('path');
  if (path !== undefined) return path.startsWith('/') ? path : '/';
  const own = pathOf(target);
  return own.slice(0, Math.max(1, own.lastIndexOf('/')));
}

function pathOf(target: string): string {
  return target.split('?', 1)[0] ?? '';
}

function isBelow(path: string, folder: string): boolean {
  return (
    path === folder || (path.startsWith(folder) && (folder.endsWith('/') || path[folder.length] === '/'))
  );
}
