// Periodically checks that the principals with open sessions and streams may keep them, because an idle session sends
// no requests that would be checked.

import type { Logger } from 'pino';
import { Subject } from 'rxjs';
import {
  grantIdIn,
  grantPrincipalId,
  isOfIssuer,
  isStoredPrincipal,
  keyIdsOf,
  keyPrincipalId,
  userIdsOf,
  userPrincipalId,
} from '../domain/accounts/principal.ts';
import { hasCode } from '../domain/errors/errors.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { type Clock, clockSteps, MAX_SKEW_MS } from '../domain/time/clock.ts';
import type { AccountStore, Store } from '../persistence/store.ts';
import type { Identity } from './credential-verifier.ts';
import { type Grants, usersOf } from './grants/grants.ts';
import { type AccountStatus, isActive, statusOf } from './principals.ts';

/** Interval of the checks: the longest time until an expiry, or an unreported change, takes effect. */
const CHECK_MS = 2_000;
/** Nothing ends by the wall clock for this time after it was in doubt, in ms: one that is right again has ended nothing. */
const DOUBTED_MS = 15 * 60_000;
const MAX_STATUSES = 10_000;

interface SessionRevalidatorOptions {
  readonly accounts: Pick<AccountStore, 'findUsers' | 'findApiKeys'>;
  /** The grants of MCP clients; undefined where there are none. */
  readonly grants?: Pick<Grants, 'stored'> | undefined;
  readonly clock: Clock;
  readonly serverTimeMs: Store['serverTimeMs'];
  readonly log: Pick<Logger, 'warn'>;
}

/** The accounts of the principals that have something open, checked from `watch` to `close`. Source: ADR 35. */
export class SessionRevalidator {
  /** Ids of principals that lost permissions, or may have lost some: `changed$` of Auth. */
  readonly changed$ = new Subject<string>();
  readonly #options: SessionRevalidatorOptions;
  /** The accounts of verified principals, by id. A principal without one is queried at each check. */
  readonly #statuses = new LruMap<AccountStatus>(MAX_STATUSES);
  #open: () => Iterable<string> = () => [];
  #stopChecks: (() => void) | undefined;
  #isChecking = false;
  /** True when statuses may be older than the last change: the next check queries all principals. */
  #isDue = false;
  readonly #wasSet: () => boolean;
  /** The last time at which the wall clock was in doubt, by the monotonic one. */
  #doubtedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: SessionRevalidatorOptions) {
    this.#options = options;
    this.#wasSet = clockSteps(options.clock);
  }

  /** Checks the principals that `open` names by id, until `close`. */
  watch(open: () => Iterable<string>): void {
    this.#open = open;
    this.#stopChecks ??= this.#options.clock.background.every(CHECK_MS, () => void this.#check());
  }

  /**
   * Records a verified principal; `isLate` when the accounts changed during the query. Revokes a principal
   * whose status differs from the previous one: its sessions were opened under that one.
   */
  track({ principal: { id }, status }: Identity, isLate: boolean): void {
    const before = this.#statuses.get(id);
    // Of several tokens of another issuer the last to expire counts: a client renews them.
    const isShorter = isOfIssuer(id) && before !== undefined && before.endsAtMs > status.endsAtMs;
    if (!isShorter) this.#statuses.set(id, status);
    this.#isDue ||= isLate;
    if (before !== undefined && before.stamp !== status.stamp) this.changed$.next(id);
  }

  /** An account was changed on this node: revokes its principal, and the tracked keys of a user. */
  changed(principalId: string): void {
    const concerned = new Set([principalId]);
    const [changedUser] = userIdsOf([principalId]);
    for (const [id, { userId }] of this.#statuses.entries())
      if (changedUser !== undefined && userId === changedUser) concerned.add(id);
    for (const id of concerned) this.#revoke(id);
  }

  /** Accounts may have changed on another node. */
  storeChanged(): void {
    this.#isDue = true;
    void this.#check();
  }

  close(): void {
    this.#stopChecks?.();
    this.changed$.complete();
  }

  /** Revokes, unless a check is running, expired principals and those whose account changed. Never rejects. */
  async #check(): Promise<void> {
    const { now } = this.#options.clock;
    if (this.#wasSet()) this.#doubtedAtMs = now();
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      const open = [...this.#open()];
      const isSure = open.some((id) => this.#isOver(id)) && (await this.#isClockSure());
      const ids = isSure ? this.#unexpired(open) : open;
      // What is over is a grant: another node may have prolonged it.
      const isStale = (id: string) => this.#isDue || !this.#statuses.has(id) || (isSure && this.#isOver(id));
      const stale = ids.filter((id) => isStoredPrincipal(id) && isStale(id));
      if (stale.length === 0) return;
      this.#isDue = false;
      await this.#query(stale, isSure);
    } catch (thrown) {
      this.#isDue = true;
      // The store logs its unavailability elsewhere.
      if (!hasCode(thrown, 'DATABASE_UNAVAILABLE'))
        this.#options.log.warn({ err: thrown }, 'the accounts of open sessions cannot be checked');
    } finally {
      this.#isChecking = false;
    }
  }

  /** The principals without expired ones, which are revoked; with those of expired grants. */
  #unexpired(open: readonly string[]): readonly string[] {
    return open.filter((id) => {
      const isExpired = this.#isOver(id) && grantIdIn(id) === undefined;
      if (isExpired) this.#revoke(id);
      return !isExpired;
    });
  }

  #isOver(id: string): boolean {
    const { endsAtMs = Number.POSITIVE_INFINITY } = this.#statuses.get(id) ?? {};
    return endsAtMs <= this.#options.clock.wall();
  }

  /** False while the wall clock may be wrong, and for some time after it. */
  async #isClockSure(): Promise<boolean> {
    const { clock, serverTimeMs } = this.#options;
    const wasDoubted = (): boolean => clock.now() - this.#doubtedAtMs < DOUBTED_MS;
    if (wasDoubted()) return false;
    const skewMs = Math.abs(((await serverTimeMs()) ?? clock.wall()) - clock.wall());
    if (skewMs > MAX_SKEW_MS) this.#doubtedAtMs = clock.now();
    return !wasDoubted();
  }

  /** `isSure`: also what is over is revoked. */
  async #query(ids: readonly string[], isSure: boolean): Promise<void> {
    const before = new Map(ids.map((id) => [id, this.#statuses.get(id)]));
    const found = await this.#statusesOf(ids);
    for (const [id, known] of before) {
      if (this.#statuses.get(id) !== known) continue; // changed meanwhile: left to the next check
      const status = found.get(id);
      const isChanged = known !== undefined && known.stamp !== status?.stamp;
      if (status === undefined || isChanged) this.#revoke(id);
      if (status !== undefined) this.#statuses.set(id, status);
      if (isSure && this.#isOver(id)) this.#revoke(id);
    }
  }

  /** The statuses of the principals that may still authenticate, unless they have expired. */
  async #statusesOf(ids: readonly string[]): Promise<ReadonlyMap<string, AccountStatus>> {
    const { accounts } = this.#options;
    const grants = (await this.#options.grants?.stored(ids.flatMap((id) => grantIdIn(id) ?? []))) ?? [];
    const keys = await accounts.findApiKeys(keyIdsOf(ids));
    const named = [...userIdsOf(ids), ...keys.flatMap(({ ownerId }) => ownerId ?? [])];
    named.push(...usersOf(grants));
    const users = await accounts.findUsers([...new Set(named)]);
    const active = new Map(users.filter(isActive).map((user) => [user.id, user]));
    const ofUsers = [...active.values()].map((user) => [userPrincipalId(user.id), statusOf(user)] as const);
    const ofKeys = keys
      .filter(({ ownerId }) => ownerId === undefined || active.has(ownerId))
      .map((key) => [keyPrincipalId(key.id), statusOf(active.get(key.ownerId ?? ''), key)] as const);
    const ofGrants = grants.flatMap((grant) => {
      const user = active.get(grant.userId);
      if (user === undefined && grant.subject === undefined) return [];
      return [[grantPrincipalId(grant.id, grant.userId), statusOf(user, undefined, grant)] as const];
    });
    return new Map([...ofUsers, ...ofKeys, ...ofGrants]);
  }

  #revoke(id: string): void {
    this.#statuses.delete(id);
    this.changed$.next(id);
  }
}
