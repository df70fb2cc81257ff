// The changes of one registry, in their order: those of this node, which note the revision of the store, and those of other
// nodes, which are read when another revision is found. registry.ts says what is read and put in force. The store bounds the time
// of each query. Source: ADR 53.

import { filter, type Observable, pairwise, retry, Subject, Subscription, startWith } from 'rxjs';
import { asGatewayError, hasCode } from '../domain/errors/errors.ts';
import { databaseUnavailable, shuttingDown } from '../domain/errors/gateway-errors.ts';
import type { GatewayEvent } from '../domain/events/events.ts';
import { timer$ } from '../domain/time/clock-streams.ts';
import { SerialQueue } from '../domain/time/serial-queue.ts';
import type { Timing } from '../domain/time/task-scheduler.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import { repeatUntilDone } from './repeat-until-done.ts';

interface RegistryChangesDeps extends Timing {
  readonly store: Pick<Store, 'revision'>;
  readonly emit: (event: GatewayEvent) => void;
  /** Reads the store, and puts in force what is not yet. */
  readonly apply: () => Promise<void>;
}

/** The shortest time between the end of a reload and the next one, in ms. */
const GAP_MS = 500;
/** Wait before changes of the store that ended with an error are followed again, in ms. */
const RETRY_MS = 5_000;
/** The longest wait behind changes that fail because the database is unavailable, in ms. */
const MAX_WAIT_MS = 1_000;
const AWAY: RevisionChange = { kind: 'away' };

/** Runs the changes of one registry, from `load` to `close`. */
export class RegistryChanges {
  readonly #deps: RegistryChangesDeps;
  readonly #queue = new SerialQueue();
  /** Start of the first of the changes that failed since the last success because the database was unavailable. */
  #failingSinceMs = Number.POSITIVE_INFINITY;
  /** Requests to read the store again, which is repeated until it succeeds. */
  readonly #reloads$ = new Subject<void>();
  readonly #subscriptions = new Subscription();
  /** Revision of the store that is in force here: from right before the last read, or of a later change of this node alone. */
  #revision = Number.NaN;
  /** Those of changes that have no place in the queue yet. */
  readonly #preparations = new Set<Promise<unknown>>();
  #isLoading = false;
  #isClosed = false;

  constructor(deps: RegistryChangesDeps) {
    this.#deps = deps;
    const { emit, clock } = deps;
    const { wall } = clock;
    const onFailure = (thrown: unknown) =>
      emit({ type: 'registry.behind', atMs: wall(), code: asGatewayError(thrown).code });
    const onCaughtUp = () => emit({ type: 'registry.current', atMs: wall() });
    const work = () => this.catchUp();
    this.#subscriptions.add(
      repeatUntilDone(this.#reloads$, { clock, work, gapMs: GAP_MS, onFailure, onCaughtUp }),
    );
  }

  /** True while `load` reads the store. */
  get isLoading(): boolean {
    return this.#isLoading;
  }

  /** True once no change begins any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Runs one change after the other. `preparation`: what the change waits for before it takes its place, so that no other
   * waits for it; bounded in time. Throws SHUTTING_DOWN; DATABASE_UNAVAILABLE, after which the store is read again.
   */
  async run<T>(work: () => Promise<T>, preparation?: () => Promise<unknown>): Promise<T> {
    if (this.#isClosed) throw shuttingDown();
    if (preparation !== undefined) await this.#prepared(preparation());
    try {
      return await this.#take(work);
    } catch (thrown) {
      // The change may have been stored all the same, or in part: the reload shows whether it was.
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) {
        if (asGatewayError(thrown).delivered === 'unknown') this.#revision = Number.NaN;
        this.#reloads$.next();
      }
      throw thrown;
    }
  }

  async #prepared(preparation: Promise<unknown>): Promise<void> {
    this.#preparations.add(preparation);
    try {
      await preparation;
    } finally {
      this.#preparations.delete(preparation);
    }
  }

  /** Within a change: applies the changes of other nodes. Costs one query when there are none. */
  async reload(): Promise<void> {
    const revision = await this.#deps.store.revision();
    if (revision === this.#revision) return;
    await this.#deps.apply();
    this.#revision = revision;
  }

  /** Reloads as `reload` does, also when the revision has not changed. */
  forceReload(): Promise<void> {
    this.#revision = Number.NaN;
    return this.reload();
  }

  /**
   * Within a change: notes its revision, or that of the last of several: if it follows the one in force, there is nothing to
   * read. False without a change.
   */
  advance(revision: number | undefined, count = 1): boolean {
    if (revision === this.#revision + count) this.#revision = revision;
    return revision !== undefined;
  }

  /** See Registry.catchUp. */
  catchUp(): Promise<void> {
    return this.#take(() => this.reload(), 'read');
  }

  /** Reads the store for the first time, and applies the changes of other nodes from now on. */
  async load(storeChanges$: Observable<RevisionChange> | undefined): Promise<void> {
    await this.#take(async () => {
      this.#isLoading = true;
      try {
        await this.reload();
      } finally {
        this.#isLoading = false;
      }
    });
    if (storeChanges$ !== undefined) this.#follow(storeChanges$);
  }

  /** Refuses changes from now on; resolves when earlier ones have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#subscriptions.unsubscribe();
    await Promise.allSettled(this.#preparations);
    await this.#queue.take(async () => {});
  }

  /**
   * Runs `work` when earlier changes have ended, and settles like it. While the database is unavailable, a queued
   * change that waited for MAX_WAIT_MS fails with DATABASE_UNAVAILABLE before it begins. The failure of a
   * `read` does not mean that the database is unavailable, because a read may wait for an old connection.
   */
  #take<T>(work: () => Promise<T>, kind: 'change' | 'read' = 'change'): Promise<T> {
    const { scheduler, clock } = this.#deps;
    const askedAtMs = clock.now();
    return this.#queue.take(async () => {
      // A file database answers within the same turn of the event loop: without it, thousands of changes would be one turn.
      await scheduler.turn();
      const beganAtMs = clock.now();
      if (beganAtMs - Math.max(askedAtMs, this.#failingSinceMs) >= MAX_WAIT_MS)
        throw databaseUnavailable(new Error('the database did not answer in time'), 'no');
      const failingSinceMs = Math.min(beganAtMs, this.#failingSinceMs);
      this.#failingSinceMs = Number.POSITIVE_INFINITY;
      try {
        return await work();
      } catch (thrown) {
        if (kind === 'change' && hasCode(thrown, 'DATABASE_UNAVAILABLE'))
          this.#failingSinceMs = failingSinceMs;
        throw thrown;
      }
    });
  }

  /** Subscribes until `close`, and again after an error. Hot or cold. The first answer causes a reload, as after each outage. */
  #follow(storeChanges$: Observable<RevisionChange>): void {
    const changes$ = storeChanges$.pipe(
      retry({ delay: () => timer$(this.#deps.clock, RETRY_MS) }),
      startWith(AWAY),
      pairwise(),
      filter(([before, { kind }]) => kind === 'changed' || (kind === 'answered' && before.kind === 'away')),
    );
    this.#subscriptions.add(changes$.subscribe(() => this.#reloads$.next()));
  }
}
