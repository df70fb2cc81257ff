// The access tokens that one node has in memory, and until when each may be used without a look at its row.

import { LruMap } from '../domain/memory/lru-map.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { ReadAccountConnection, StoredAccountConnection } from './account-connections.ts';

/** The time after which a row is read again, in ms: another node may have ended the connection. */
const FRESH_MS = 10_000;
/** The longest use of a token in memory while the database does not answer, in ms. */
const MAX_UNREAD_MS = 15 * 60_000;
const MAX_KNOWN = 10_000;
/** The most characters of a token that counts as one: an authorization server may name tokens of 60 kB. */
const USUAL_TOKEN = 4_096;

export interface KnownToken extends Pick<StoredAccountConnection, 'expiresAtMs' | 'dueAtMs'> {
  readonly token: string;
  readonly connectedAt: string;
  /** The time at which the row was read, by the monotonic clock. */
  readonly readAtMs: number;
  /** The time at which the row was read, or could not be read, by the monotonic clock. */
  readonly checkedAtMs: number;
  /** The token is of no use any more: kept to know the account that is connected next from this one. */
  readonly isUsedUp?: true;
}

/** The tokens by the keys of their connections; the least recently used one is forgotten. */
export class KnownTokens {
  readonly #clock: Clock;
  readonly #known = new LruMap<KnownToken>(MAX_KNOWN, undefined, ({ token }) =>
    Math.max(1, Math.ceil(token.length / USUAL_TOKEN)),
  );

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The token, if its row need not be read and it need not be renewed now. Until it ends, if the row could not be read a short
   * time ago, or `isNewer`: the row does not have it yet.
   */
  current(key: string, isNewer: boolean): string | undefined {
    const known = this.#known.get(key);
    if (known === undefined || known.isUsedUp) return undefined;
    const { token, readAtMs, checkedAtMs } = known;
    const { now, wall } = this.#clock;
    const isUnread = checkedAtMs > readAtMs;
    if (!isNewer && now() - checkedAtMs > FRESH_MS) return undefined;
    if (!isNewer && isUnread && now() - readAtMs >= MAX_UNREAD_MS) return undefined;
    return (isNewer || isUnread ? isOver : isDue)(known, wall()) ? undefined : token;
  }

  /** The token that the next reading may replace. While the database is silent, one call waits for it, and the others go on. */
  toRead(key: string): KnownToken | undefined {
    const known = this.#known.get(key);
    if (known !== undefined && known.checkedAtMs > known.readAtMs) this.#check(key, known);
    return known;
  }

  /** The token that was known before the database gave no answer, if it may still be used. */
  withoutRow(key: string, before: KnownToken | undefined): string | undefined {
    if (before === undefined || before.isUsedUp) return undefined;
    const { now, wall } = this.#clock;
    if (now() - before.readAtMs >= MAX_UNREAD_MS || isOver(before, wall())) return undefined;
    const known = this.#known.get(key);
    if (known?.token !== before.token) return before.token;
    if (known.isUsedUp) return undefined; // refused while the row was being read
    this.#check(key, known);
    return before.token;
  }

  keep({ key, connectedAt, value }: ReadAccountConnection): void {
    const { accessToken: token, expiresAtMs, dueAtMs } = value;
    const nowMs = this.#clock.now();
    const times = { expiresAtMs, dueAtMs, readAtMs: nowMs, checkedAtMs: nowMs };
    this.#known.set(key, { token, connectedAt, ...times });
  }

  /** The token is not used any more. `token`: only this one. */
  useUp(key: string, token?: string): void {
    const known = this.#known.get(key);
    if (known === undefined || (token !== undefined && known.token !== token)) return;
    this.#known.set(key, { ...known, isUsedUp: true });
  }

  forget(key: string): void {
    this.#known.delete(key);
  }

  #check(key: string, known: KnownToken): void {
    this.#known.set(key, { ...known, checkedAtMs: this.#clock.now() });
  }
}

export function isOver(
  { expiresAtMs }: Pick<StoredAccountConnection, 'expiresAtMs'>,
  nowMs: number,
): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= nowMs;
}

/** True for a token that is to be renewed before it is sent. */
export function isDue({ dueAtMs }: Pick<StoredAccountConnection, 'dueAtMs'>, nowMs: number): boolean {
  return dueAtMs !== undefined && dueAtMs <= nowMs;
}
