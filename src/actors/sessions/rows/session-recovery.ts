// Recovers sessions of lives that are over, of this node or of others. The first request with the id of such a session
// reads its row, claims the row, and makes the session again. Reads and claims of many sessions are grouped, since after
// a restart all clients come at once. Source: ADR 143.

import { hasCode } from '../../../domain/errors/errors.ts';
import { nodeDraining, nodeUnavailable } from '../../../domain/errors/node-errors.ts';
import { tooMany } from '../../../domain/errors/request-errors.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { UserShares } from '../../../domain/memory/user-shares.ts';
import { NotHolder } from '../../../domain/nodes/forwarding.ts';
import { lifeOf } from '../../../domain/nodes/life.ts';
import type { RecoverySteps } from '../../../domain/sessions/all-sessions.ts';
import { decideSession } from '../../../domain/sessions/session-holder.ts';
import {
  type AnySessionValue,
  readSession,
  SessionValueError,
} from '../../../domain/sessions/session-value.ts';
import type { StoredSession } from '../../../persistence/store.ts';
import type { SessionDeps } from '../session-deps.ts';
import { batched } from './row-batches.ts';
import type { SessionKeeper } from './session-keeper.ts';
import { rowKeyOf } from './stored-row.ts';

/** The most remembered ids that cannot be recovered; these cost no further query. */
const MAX_MISSING = 10_000;
/** The most sessions that are recovered concurrently. Each owner has a share of them: see LIMITS.ownerShare. */
const MAX_UNDER_WAY = 25_000;
/** The most reads of one row for one request: other nodes may claim it between a read and the claim. */
const MAX_READS = 4;
/** Recovers stored sessions of lives that are over. */
export class SessionRecovery {
  readonly #keeper: SessionKeeper;
  readonly #deps: Pick<SessionDeps, 'isDraining'>;
  readonly #missing = new LruMap<true>(MAX_MISSING);
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #shares = new UserShares(MAX_UNDER_WAY);
  readonly #read: (key: string) => Promise<StoredSession | undefined>;
  readonly #claim: (row: StoredSession) => Promise<StoredSession | undefined>;

  constructor(keeper: SessionKeeper, deps: Pick<SessionDeps, 'isDraining'>) {
    const { store, clock } = keeper;
    this.#keeper = keeper;
    this.#deps = deps;
    this.#read = batched(clock, async (keys: readonly string[]) => {
      const rows = byKey(await store.read(keys));
      return (key) => rows.get(key);
    });
    this.#claim = batched(clock, async (rows: readonly StoredSession[]) => {
      const claimed = byKey(await store.claim(rows, keeper.ownLife));
      return ({ key }) => claimed.get(key);
    });
  }

  /**
   * Resolves when the session is open again, or cannot be recovered. Requests of one caller with one id share one
   * attempt. Undefined, without a query, for
   * - a text that is not a session id,
   * - a session that was recently not found,
   * - an id of this life, while it has released no session.
   * Throws NotHolder when another life holds the session, and DATABASE_UNAVAILABLE, NODE_UNAVAILABLE, SESSION_LIMIT
   * or SHUTTING_DOWN. Throws QUEUE_FULL.
   */
  recover<V extends AnySessionValue>(
    id: string,
    ownerId: string,
    steps: RecoverySteps<V>,
  ): Promise<void> | undefined {
    const life = lifeOf(id);
    if (life === undefined || !this.#mayBeStored(life) || this.#missing.has(id)) return undefined;
    // By owner, too: an attempt of another caller must neither reveal the session nor use the share of the owner.
    const attempt = `${id} ${ownerId}`;
    if (this.#missing.has(attempt)) return undefined;
    const known = this.#underWay.get(attempt);
    if (known !== undefined) return known;
    const exceeded = this.#shares.exceededBy(ownerId);
    if (exceeded !== undefined) throw tooMany('sessions that are being recovered', exceeded, 1);
    this.#shares.add(ownerId);
    const recovering = this.#recover(id, ownerId, steps).finally(() => {
      this.#underWay.delete(attempt);
      this.#shares.release(ownerId);
    });
    this.#underWay.set(attempt, recovering);
    return recovering;
  }

  /** Remembers that a session has ended, so that it is not recovered. */
  forget(id: string): void {
    if (this.#mayBeStored(lifeOf(id))) this.#missing.set(id, true);
  }

  /** False for sessions of the present life, which are never read, unless this life has released some. */
  #mayBeStored(life: string | undefined): boolean {
    return life !== this.#keeper.ownLife.life || this.#keeper.hasReleased;
  }

  async #recover<V extends AnySessionValue>(
    id: string,
    ownerId: string,
    steps: RecoverySteps<V>,
  ): Promise<void> {
    const { holders } = this.#keeper;
    for (let reads = 0; reads < MAX_READS; reads += 1) {
      await this.#keeper.untilReleased;
      const row = await this.#read(rowKeyOf(id));
      const value = row && sessionIn(row);
      if (row === undefined && (await this.#mayBeStoredLater(id))) throw new NotHolder(lifeOf(id));
      if (row === undefined || value === undefined) return this.forget(id);
      if (value.ownerId !== ownerId) return this.forget(`${id} ${ownerId}`);
      const decision = (await holders.decideSession?.(row)) ?? decideSession(row, this.#keeper.ownLife);
      if (decision.do === 'forward') throw new NotHolder(decision.life);
      if (decision.do === 'end') {
        // A life that has just begun: its row comes after its first sessions.
        if (decision.reason === 'unknown life') throw new NotHolder(row.life);
        return this.forget(id);
      }
      if (decision.do === 'claim' && this.#deps.isDraining?.()) {
        const successor = holders.successorOf?.(row.key);
        throw successor === undefined ? nodeDraining() : new NotHolder(successor);
      }
      if (!steps.isOwn(value) || !(await this.#checkOrDelete(id, row, () => steps.check(value)))) return;
      const generation = await this.#ownGeneration(row);
      if (generation !== undefined) {
        steps.make(value, generation);
        this.#keeper.counts.recovered += 1;
        return;
      }
    }
    throw nodeUnavailable(this.#keeper.ownLife.node, 'others claim the session', 'no');
  }

  /** True while the node of its first life may not have written the row yet, or stands still: a silent holder is not a 404. */
  async #mayBeStoredLater(id: string): Promise<boolean | undefined> {
    const opener = lifeOf(id);
    return opener !== undefined && this.#keeper.holders.mayBeStoredLater?.(opener);
  }

  /**
   * Claims the row unless this life holds it. Returns its generation, or undefined when another life claimed the
   * session, or the former holder changed it before the claim.
   */
  async #ownGeneration(row: StoredSession): Promise<number | undefined> {
    if (row.life === this.#keeper.ownLife.life) return row.generation;
    const claimed = await this.#claim(row);
    const isWon = claimed?.value === row.value && claimed.life === this.#keeper.ownLife.life;
    this.#keeper.counts.claims[isWon ? 'won' : 'lost'] += 1;
    return isWon ? claimed.generation : undefined;
  }

  /**
   * Deletes the row of a session that cannot be recovered, unless other nodes would then wait until it is stored. Resolves with
   * whether it can.
   */
  async #checkOrDelete(id: string, row: StoredSession, check: () => Promise<void>): Promise<boolean> {
    try {
      await check();
      return true;
    } catch (thrown) {
      if (!hasCode(thrown, 'SESSION_NOT_FOUND') && !hasCode(thrown, 'TEMPLATE_NOT_FOUND')) throw thrown;
      this.forget(id);
      if (!(await this.#mayBeStoredLater(id))) await this.#keeper.store.delete(row.life, [row.key]);
      return false;
    }
  }
}

/** The value of the row; undefined for a row of another release, or a damaged one. */
function sessionIn({ value }: StoredSession): AnySessionValue | undefined {
  try {
    return readSession(value);
  } catch (thrown) {
    if (thrown instanceof SessionValueError) return undefined;
    throw thrown;
  }
}

function byKey(rows: readonly StoredSession[]): ReadonlyMap<string, StoredSession> {
  return new Map(rows.map((row) => [row.key, row]));
}
