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
} from '../domain/accounts/account.ts';
import { hasCode } from '../domain/errors/errors.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { AccountStore } from '../persistence/store.ts';
import type { Identity } from './credential-verifier.ts';
import { type Grants, usersOf } from './grants/grants.ts';
import { type AccountStatus, isActive, statusOf } from './principals.ts';

/** Interval of the checks: the longest time until an expiry, or an unreported change, takes effect. */
const CHECK_MS = 2_000;
const MAX_STATUSES = 10_000;

interface SessionRevalidatorOptions {
  readonly accounts: Pick<AccountStore, 'findUsers' | 'findApiKeys'>;
  /** The grants of MCP clients; undefined where there are none. */
  readonly grants?: Pick<Grants, 'find'> | undefined;
  readonly wall: Clock['wall'];
  readonly every: Clock['every'];
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

  constructor(options: SessionRevalidatorOptions) {
    this.#options = options;
  }

  /** Checks the principals that `open` names by id, until `close`. */
  watch(open: () => Iterable<string>): void {
    this.#open = open;
    this.#stopChecks ??= this.#options.every(CHECK_MS, () => void this.#check());
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

  /** Revokes expired principals and, unless a query is running, those whose account changed. Never rejects. */
  async #check(): Promise<void> {
    const ids = this.#unexpired();
    const stale = ids.filter((id) => this.#isDue || !this.#statuses.has(id));
    if (this.#isChecking || stale.length === 0) return;
    this.#isChecking = true;
    this.#isDue = false;
    try {
      await this.#query(stale);
    } catch (thrown) {
      this.#isDue = true;
      // The store logs its unavailability elsewhere.
      if (!hasCode(thrown, 'DATABASE_UNAVAILABLE'))
        this.#options.log.warn({ err: thrown }, 'the accounts of open sessions cannot be checked');
    } finally {
      this.#isChecking = false;
    }
  }

  /** The open principals with an account, without expired ones, which are revoked. */
  #unexpired(): string[] {
    const nowMs = this.#options.wall();
    return [...this.#open()].filter((id) => {
      let { endsAtMs = nowMs + 1 } = this.#statuses.get(id) ?? {};
      if (endsAtMs <= nowMs && grantIdIn(id) !== undefined) {
        // Queried: another node may have prolonged the grant.
        this.#statuses.delete(id);
        endsAtMs = nowMs + 1;
      }
      if (endsAtMs <= nowMs) this.#revoke(id);
      return endsAtMs > nowMs && isStoredPrincipal(id);
    });
  }

  async #query(ids: readonly string[]): Promise<void> {
    const before = new Map(ids.map((id) => [id, this.#statuses.get(id)]));
    const found = await this.#statusesOf(ids);
    for (const [id, known] of before) {
      if (this.#statuses.get(id) !== known) continue; // changed meanwhile: left to the next check
      const status = found.get(id);
      if (status === undefined || (known !== undefined && known.stamp !== status.stamp)) this.#revoke(id);
      if (status !== undefined) this.#statuses.set(id, status);
    }
  }

  /** The statuses of the principals that may still authenticate. */
  async #statusesOf(ids: readonly string[]): Promise<ReadonlyMap<string, AccountStatus>> {
    const { accounts, wall } = this.#options;
    const grants = (await this.#options.grants?.find(ids.flatMap((id) => grantIdIn(id) ?? []))) ?? [];
    const keys = await accounts.findApiKeys(keyIdsOf(ids));
    const named = [...userIdsOf(ids), ...keys.flatMap(({ ownerId }) => ownerId ?? [])];
    named.push(...usersOf(grants));
    const users = await accounts.findUsers([...new Set(named)]);
    const active = new Map(users.filter(isActive).map((user) => [user.id, user]));
    const ofUsers = [...active.values()].map((user) => [userPrincipalId(user.id), statusOf(user)] as const);
    const ofKeys = keys
      .filter(({ ownerId }) => ownerId === undefined || active.has(ownerId))
      .map((key) => [keyPrincipalId(key.id), statusOf(active.get(key.ownerId ?? ''), key)] as const)
      .filter(([, { endsAtMs }]) => endsAtMs > wall());
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
