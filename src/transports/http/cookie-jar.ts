// The cookies of one conversation with a backend, such as those by which a balancer finds the server of a session. They go back to the
// origin that set them and nowhere else, and end with the conversation. undici parses the header; it is loaded for the first cookie,
// because few backends set any. Source: RFC 6265; ADR 110.

import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import type { Cookie } from 'undici';
import { systemClock } from '../../domain/clock.ts';

/** Bounds of one jar. Over them the oldest cookies are removed; a larger cookie is not kept. */
export const COOKIES = { most: 50, bytes: 8 * 1024 } as const;
const load = createRequire(import.meta.url);
/** `set-cookie` lines of one answer that are read. */
const MOST_LINES = 100;

/** The request whose answer sets cookies. */
interface Setter {
  readonly host: string;
  /** With its query. */
  readonly path: string;
  /** Cookies that require a secure connection are kept. */
  readonly isSecure: boolean;
}

interface Kept {
  readonly name: string;
  /** As in the header: `name=value`. */
  readonly pair: string;
  readonly path: string;
  /** Monotonic, in ms. */
  readonly expiresAtMs: number;
}

/** Small while it is empty, because every session has one. */
export class CookieJar {
  /** By name and path, oldest first. */
  #kept: Map<string, Kept> | undefined;

  /** Keeps the cookies of a `set-cookie` header, and removes the expired ones. Those of other hosts are ignored. */
  keep(header: string | readonly string[], setter: Setter): void {
    const { parseCookie }: typeof import('undici') = load('undici');
    for (const line of [header].flat().slice(0, MOST_LINES)) {
      const cookie = parseCookie(line);
      if (cookie === null || !isAccepted(cookie, setter)) continue;
      const expiresAtMs = NEGATIVE_AGE.test(line) ? 0 : expiryOf(cookie);
      this.#set(cookie, pathFor(cookie, setter.path), expiresAtMs);
    }
  }

  /**
   * The `cookie` header of a request to a path; undefined when none of the jar belongs there. `own`: the header of the definition,
   * whose cookies the backend may replace.
   */
  headerFor(target: string, own = ''): string | undefined {
    if (this.#kept === undefined) return undefined;
    const path = pathOf(target);
    const nowMs = systemClock.now();
    const matching = [...this.#kept.values()]
      .filter((kept) => kept.expiresAtMs > nowMs && isBelow(path, kept.path))
      .sort((one, other) => other.path.length - one.path.length);
    if (matching.length === 0) return undefined;
    const replaced = new Set(matching.map(({ name }) => name));
    const others = own.split(';').map((pair) => pair.trim());
    const staying = others.filter((pair) => pair !== '' && !replaced.has(pair.split('=', 1)[0] ?? ''));
    return [...staying, ...matching.map(({ pair }) => pair)].join('; ');
  }

  #set({ name, value }: Cookie, path: string, expiresAtMs: number): void {
    this.#kept ??= new Map();
    const key = `${name}\n${path}`;
    this.#kept.delete(key);
    if (expiresAtMs > systemClock.now())
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

function isAccepted({ name, value, domain, secure }: Cookie, { host, isSecure }: Setter): boolean {
  if (name === '' && value === '') return false;
  // Node writes headers as Latin-1; a value with other characters cannot have come from one.
  if (!HEADER_TEXT.test(name) || !HEADER_TEXT.test(value)) return false;
  if (secure === true && !isSecure) return false;
  const wanted = (domain ?? '').toLowerCase().replace(/^\./, '');
  const isParent = host.endsWith(`.${wanted}`) && wanted.includes('.') && isIP(host) === 0;
  return wanted === '' || wanted === host || isParent;
}

const HEADER_TEXT = /^[\x20-\x7e\x80-\xff]*$/;

/** undici ignores it. */
const NEGATIVE_AGE = /;\s*max-age\s*=\s*-/i;

/** Monotonic, in ms. */
function expiryOf({ maxAge, expires }: Cookie): number {
  const leftMs =
    typeof maxAge === 'number' ? maxAge * 1_000 : Number(expires ?? Number.NaN) - systemClock.wall();
  return Number.isNaN(leftMs) ? Number.POSITIVE_INFINITY : systemClock.now() + leftMs;
}

/** The path of a cookie, else the folder of the request. Source: RFC 6265, 5.1.4. */
function pathFor({ path }: Cookie, target: string): string {
  if (path?.startsWith('/')) return path;
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
