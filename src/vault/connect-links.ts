// The addresses at which accounts are connected in the middle of a call.

import { hash, randomBytes } from 'node:crypto';
import { Subject } from 'rxjs';
import Type from 'typebox';
import { type DefinedRoles, roleRights, scopesOfUser, type User } from '../domain/accounts/account.ts';
import { commonRights, mayUse } from '../domain/accounts/rights.ts';
import { CONNECT_LINK_MS, type ConnectLink } from '../domain/calls/connection-required.ts';
import { hasCode } from '../domain/errors/errors.ts';
import { SHARED } from '../domain/instances/account-connection.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import type { Clock } from '../domain/time/clock.ts';
import { oauthKey, rowReader } from '../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../persistence/oauth-store.ts';

/** The account that is to be connected, and its owner. */
export interface ConnectGoal {
  readonly template: string;
  readonly instanceId: string;
  /** SHARED, which an admin connects, or the id of a user. */
  readonly owner: string;
}

const readGoal: (row: OAuthRow) => ConnectGoal = rowReader(
  Type.Object({ template: Type.String(), instanceId: Type.String(), owner: Type.String() }),
);

interface ConnectLinksOptions {
  readonly store: Pick<OAuthStore, 'find' | 'save'>;
  readonly clock: Clock;
  /** Whether there is a connection with all scopes that calls have wanted. */
  readonly isConnected: (goal: ConnectGoal) => Promise<boolean>;
  /** The address at which browsers reach the gateway. */
  readonly base: () => string;
}

interface Awaited extends ConnectGoal {
  readonly link: ConnectLink;
  readonly beganAtMs: number;
  /** The ids of the elicitations of this address, and of earlier ones. */
  readonly elicitationIds: readonly string[];
  readonly waiting: Set<() => void>;
}

export interface Connected extends ConnectGoal {
  readonly elicitationIds: readonly string[];
}

/** The part of its life that an address must have left to be given again, in ms. */
const LEFT_MS = 5 * 60_000;
/** The interval in ms at which the database is asked, because another node may have made the connection. */
const CHECK_MS = 2_000;
const MAX_AWAITED = 1_000;
const MAX_IDS = 8;
const ID = /^[\w-]{43}$/;

/**
 * Makes the addresses for connecting in the middle of a call, and waits for the connections. An address is for one
 * owner and one instance, for ten minutes; no other user can use it. A call that waits for a connection goes on when
 * its owner has made it, at any node. Source: ADR 221.
 */
export class ConnectLinks {
  /** The connections that clients of this node wait for. Hot, no replay. */
  readonly connected$ = new Subject<Connected>();
  readonly #options: ConnectLinksOptions;
  readonly #awaited = new LruMap<Awaited>(MAX_AWAITED, ({ waiting }) => release(waiting));
  readonly #making = new Map<string, Promise<Awaited>>();
  #stopChecks: (() => void) | undefined;
  #isChecking = false;
  #isClosed = false;

  constructor(options: ConnectLinksOptions) {
    this.#options = options;
  }

  /** The address for this owner, a new one if need be. Throws DATABASE_UNAVAILABLE. */
  async linkFor(goal: ConnectGoal): Promise<ConnectLink> {
    return (await this.#awaitedFor(goal)).link;
  }

  /** The goal of an address; undefined for an unknown one, and after its life. */
  async find(id: string): Promise<ConnectGoal | undefined> {
    const { store, clock } = this.#options;
    const [row] = ID.test(id) ? await store.find('visit', [oauthKey('visit', id)]) : [];
    const isValid = row !== undefined && Date.parse(row.expiresAt ?? '') > clock.wall();
    return isValid ? readGoal(row) : undefined;
  }

  /** Resolves when the owner has connected the account, after this time, or at `close`. Never rejects. */
  async whenConnected(goal: ConnectGoal, withinMs: number): Promise<void> {
    const { clock, isConnected } = this.#options;
    try {
      const { waiting } = await this.#awaitedFor(goal);
      if (this.#isClosed) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      const disarm = clock.background.alarm(withinMs, resolve);
      try {
        if (!(await isConnected(goal))) await promise;
      } finally {
        disarm();
        waiting.delete(resolve);
      }
    } catch {
      // The database does not answer: the request that waits meets that, too.
    }
  }

  /** Notes that a connection was made here; those of other nodes are noticed within two seconds. */
  connected({ template, instanceId, owner }: ConnectGoal): void {
    const key = goalKey({ template, instanceId, owner });
    const awaited = this.#awaited.get(key);
    if (awaited === undefined) return;
    this.#awaited.delete(key);
    release(awaited.waiting);
    this.connected$.next({ template, instanceId, owner, elicitationIds: awaited.elicitationIds });
  }

  /** Calls that go on meanwhile still get addresses; nothing waits for them. */
  close(): void {
    this.#isClosed = true;
    this.#stopChecks?.();
    for (const { waiting } of this.#awaited.values()) release(waiting);
    this.connected$.complete();
  }

  /** One for all that ask at once. */
  async #awaitedFor(goal: ConnectGoal): Promise<Awaited> {
    const key = goalKey(goal);
    const known = this.#awaited.get(key);
    if (known !== undefined && this.#options.clock.now() - known.beganAtMs < CONNECT_LINK_MS - LEFT_MS)
      return known;
    const making = this.#making.get(key) ?? this.#made(goal).finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    return making;
  }

  async #made(goal: ConnectGoal): Promise<Awaited> {
    const { clock, store, base } = this.#options;
    const key = goalKey(goal);
    const id = randomBytes(32).toString('base64url');
    const nowMs = clock.wall();
    const { template, instanceId, owner } = goal;
    await store.save({
      kind: 'visit',
      key: oauthKey('visit', id),
      ...(owner === SHARED ? {} : { userId: owner }),
      createdAt: new Date(nowMs).toISOString(),
      expiresAt: new Date(nowMs + CONNECT_LINK_MS).toISOString(),
      value: JSON.stringify({ template, instanceId, owner }),
    });
    const link = {
      url: `${base()}/connections/${id}`,
      elicitationId: hash('sha256', id).slice(0, 32),
    };
    const known = this.#awaited.get(key);
    const awaited = {
      template,
      instanceId,
      owner,
      link,
      beganAtMs: clock.now(),
      elicitationIds: [link.elicitationId, ...(known?.elicitationIds ?? [])].slice(0, MAX_IDS),
      waiting: known?.waiting ?? new Set<() => void>(),
    };
    if (this.#isClosed) return awaited;
    this.#awaited.set(key, awaited);
    this.#stopChecks ??= clock.background.every(CHECK_MS, () => void this.#check());
    return awaited;
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { clock } = this.#options;
    for (const [key, awaited] of [...this.#awaited.entries()]) {
      if (this.#awaited.peek(key) !== awaited) continue; // connected or renewed while others were looked at
      if (clock.now() - awaited.beganAtMs > CONNECT_LINK_MS) this.#awaited.delete(key);
      else if (!(await this.#look(awaited))) break; // the next check asks again
    }
    this.#isChecking = false;
    if (this.#awaited.size > 0) return;
    this.#stopChecks?.();
    this.#stopChecks = undefined;
  }

  /** False when the database does not answer. A damaged row concerns its own account only. Never rejects. */
  async #look(awaited: Awaited): Promise<boolean> {
    try {
      if (await this.#options.isConnected(awaited)) this.connected(awaited);
      return true;
    } catch (thrown) {
      return !hasCode(thrown, 'DATABASE_UNAVAILABLE');
    }
  }
}

/** True for the own account of the user, and for the shared one if the user is an admin; at a template that the user may use. */
export function mayConnect(
  user: User,
  { template, owner }: ConnectGoal,
  roles: DefinedRoles | undefined,
): boolean {
  if (!mayUse(commonRights(user, roleRights(user.role, roles)), template)) return false;
  return owner === SHARED ? scopesOfUser(user, roles).includes('admin') : owner === user.id;
}

function goalKey({ template, instanceId, owner }: ConnectGoal): string {
  return JSON.stringify([template, instanceId, owner]);
}

function release(waiting: ReadonlySet<() => void>): void {
  for (const end of [...waiting]) end();
}
