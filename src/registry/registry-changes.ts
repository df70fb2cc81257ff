// The changes of one registry, in their order: those of this node, which note the revision of the store, and those of other
// nodes, which are read when another revision is found. registry.ts says what is read and put in force.

import type { Observable } from 'rxjs';
import { asGatewayError, hasCode } from '../domain/errors/errors.ts';
import { shuttingDown } from '../domain/errors/gateway-errors.ts';
import type { GatewayEvent } from '../domain/events/events.ts';
import type { Timing } from '../domain/time/task-scheduler.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import { ChangeQueue } from './change-queue.ts';
import { Follower } from './follower.ts';

interface RegistryChangesDeps extends Timing {
  readonly store: Pick<Store, 'revision'>;
  readonly emit: (event: GatewayEvent) => void;
  /** Reads the store, and puts in force what is not yet. */
  readonly apply: () => Promise<void>;
}

/** Runs the changes of one registry, from `load` to `close`. */
export class RegistryChanges {
  readonly #deps: RegistryChangesDeps;
  readonly #queue: ChangeQueue;
  readonly #follower: Follower;
  /** Revision of the store that is in force here: from right before the last read, or of a later change of this node alone. */
  #revision = Number.NaN;
  /** Those of changes that have no place in the queue yet. */
  readonly #preparations = new Set<Promise<unknown>>();
  #isLoading = false;
  #isClosed = false;

  constructor(deps: RegistryChangesDeps) {
    this.#deps = deps;
    this.#queue = new ChangeQueue(deps.scheduler, deps.clock.now);
    this.#follower = new Follower(() => this.catchUp(), deps.emit, deps.clock);
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
   * waits for it; bounded in time. SHUTTING_DOWN; DATABASE_UNAVAILABLE, after which the store is read again.
   */
  async run<T>(work: () => Promise<T>, preparation?: () => Promise<unknown>): Promise<T> {
    if (this.#isClosed) throw shuttingDown();
    if (preparation !== undefined) await this.#prepared(preparation());
    try {
      return await this.#queue.take(work);
    } catch (thrown) {
      // The change may have been stored all the same, or in part: the reload shows whether it was.
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) {
        if (asGatewayError(thrown).delivered === 'unknown') this.#revision = Number.NaN;
        this.#follower.requestReload();
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
    return this.#queue.take(() => this.reload(), 'read');
  }

  /** Reads the store for the first time, and applies the changes of other nodes from now on. */
  async load(storeChanges$: Observable<RevisionChange> | undefined): Promise<void> {
    await this.#queue.take(async () => {
      this.#isLoading = true;
      try {
        await this.reload();
      } finally {
        this.#isLoading = false;
      }
    });
    if (storeChanges$ !== undefined) this.#follower.follow(storeChanges$);
  }

  /** Refuses changes from now on; resolves when earlier ones have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#follower.close();
    await Promise.allSettled(this.#preparations);
    await this.#queue.idle();
  }
}
