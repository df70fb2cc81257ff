// Periodically checks that the principals with open sessions and streams may keep them, because an idle session sends
// no requests that would be checked. The cache in authenticator.ts decides when to query the store. Source: ADR 35.

import type { Logger } from 'pino';
import { hasCode } from '../domain/errors.ts';
import { type AccountStore, MOST_FOUND } from '../persistence/store.ts';
import { type AccountChange, idsBehind } from './accounts.ts';
import { CredentialCache, type Identity, type StoreChange, type Verified } from './authenticator.ts';
import { type AccountStatus, isActive, keyStatus, userStatus } from './permissions.ts';

/** Interval of the checks: the longest time until an expiry, or an unreported change, takes effect. */
const CHECK_MS = 2_000;
const USER = 'user:';
const KEY = 'key:';

type Tracked = Verified & AccountStatus;

export interface SessionRevalidatorOptions {
  readonly accounts: Pick<AccountStore, 'findUsers' | 'findApiKeys'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with the id of a principal that lost permissions, or may have lost some. */
  readonly onChange: (principalId: string) => void;
  readonly log: Pick<Logger, 'warn'>;
}

export class SessionRevalidator {
  readonly #options: SessionRevalidatorOptions;
  /** By id of the principal. For a dropped principal, deletion and expiry are still detected, but not changes. */
  readonly #tracked = new CredentialCache<Tracked>();
  #open: (() => Iterable<string>) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;
  /** Number of changes: an answer to a query that began before a change may be older than the change. */
  #epoch = 0;

  constructor(options: SessionRevalidatorOptions) {
    this.#options = options;
  }

  /** Checks the principals that `open` names by id, until `close`. */
  watch(open: () => Iterable<string>): void {
    this.#open = open;
    this.#timer ??= setInterval(() => void this.check(), CHECK_MS).unref();
  }

  /**
   * Records a verified principal; `isLate` when the accounts changed during the query. Revokes a principal
   * whose status differs from the previous one: its sessions were opened under that one.
   */
  track({ principal: { id }, status }: Identity, queriedAtMs: number, isLate: boolean): void {
    const before = this.#tracked.entries.get(id);
    if (before !== undefined && before.verifiedAtMs > queriedAtMs) return;
    this.#remember(id, status, queriedAtMs, isLate);
    if (before !== undefined && before.stamp !== status.stamp) this.#options.onChange(id);
  }

  /** An account was changed on this node: revokes its principal and the tracked keys of the user. */
  changed(change: AccountChange): void {
    this.#epoch += 1;
    const concerned = new Set(['userId' in change ? `${USER}${change.userId}` : `${KEY}${change.keyId}`]);
    if ('userId' in change)
      for (const [id, { userId }] of this.#tracked.entries.entries())
        if (userId === change.userId) concerned.add(id);
    for (const id of concerned) this.#revoke(id);
  }

  onStoreChange(change: StoreChange): void {
    if (!this.#tracked.onStoreChange(change, this.#options.now())) return;
    this.#epoch += 1;
    void this.check();
  }

  /** Checks now, unless a check is running. Never rejects. */
  async check(): Promise<void> {
    if (this.#isChecking || this.#open === undefined) return;
    this.#isChecking = true;
    try {
      const stale = this.#staleOf(this.#open());
      for (let first = 0; first < stale.length; first += MOST_FOUND)
        await this.#query(stale.slice(first, first + MOST_FOUND));
    } catch (thrown) {
      // The store logs its unavailability elsewhere; the next check queries the rest.
      if (!hasCode(thrown, 'DATABASE_UNAVAILABLE'))
        this.#options.log.warn({ err: thrown }, 'the accounts of open sessions cannot be checked');
    } finally {
      this.#isChecking = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** The principals to query; expired ones are revoked at once. */
  #staleOf(open: Iterable<string>): string[] {
    const nowMs = this.#options.now();
    return [...open].filter((id) => {
      const tracked = this.#tracked.entries.get(id);
      if (tracked === undefined) return id.startsWith(USER) || id.startsWith(KEY);
      if (tracked.endsAtMs > nowMs) return this.#tracked.freshnessOf(tracked, nowMs) === 'stale';
      this.#revoke(id);
      return false;
    });
  }

  async #query(ids: readonly string[]): Promise<void> {
    const epoch = this.#epoch;
    const queriedAtMs = this.#options.now();
    const before = new Map(ids.map((id) => [id, this.#tracked.entries.get(id)]));
    const found = await this.#statusesOf(ids);
    for (const [id, tracked] of before) {
      if (this.#tracked.entries.get(id) !== tracked) continue; // changed meanwhile: left to the next check
      const status = found.get(id);
      const isOther = tracked !== undefined && tracked.stamp !== status?.stamp;
      if (status === undefined || isOther) this.#revoke(id);
      if (status !== undefined) this.#remember(id, status, queriedAtMs, epoch !== this.#epoch);
    }
  }

  /** The statuses of the principals that may still authenticate. */
  async #statusesOf(ids: readonly string[]): Promise<ReadonlyMap<string, AccountStatus>> {
    const { accounts, now } = this.#options;
    const keys = await accounts.findApiKeys(idsBehind(KEY, ids));
    const named = [...idsBehind(USER, ids), ...keys.flatMap(({ ownerId }) => ownerId ?? [])];
    const users = await accounts.findUsers([...new Set(named)]);
    const active = new Map(users.filter(isActive).map((user) => [user.id, user]));
    const ofUsers = [...active.values()].map((user) => [`${USER}${user.id}`, userStatus(user)] as const);
    const ofKeys = keys
      .filter(({ ownerId }) => ownerId === undefined || active.has(ownerId))
      .map((key) => [`${KEY}${key.id}`, keyStatus(key, active.get(key.ownerId ?? ''))] as const)
      .filter(([, { endsAtMs }]) => endsAtMs > now());
    return new Map([...ofUsers, ...ofKeys]);
  }

  #remember(id: string, status: AccountStatus, verifiedAtMs: number, isStale: boolean): void {
    const staleSinceMs = isStale ? verifiedAtMs : undefined;
    this.#tracked.entries.set(id, { ...status, verifiedAtMs, staleSinceMs, retryAtMs: 0 });
  }

  #revoke(id: string): void {
    this.#tracked.entries.delete(id);
    this.#options.onChange(id);
  }
}
