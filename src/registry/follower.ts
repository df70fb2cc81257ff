// Decides when the registry is read again: after a change of the store, after a change with an unknown outcome, and until it
// succeeds. registry.ts reads and applies it.

import { firstValueFrom, type Observable, ReplaySubject, race, retry, Subject, takeUntil, timer } from 'rxjs';
import { asGatewayError } from '../domain/errors.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';

export interface FollowerDeps {
  readonly reload: () => Promise<void>;
  readonly emit: (event: GatewayEvent) => void;
}

/** Shortest time between the end of a reload and the next one, in ms: a thousand changes are a few reloads. */
const GAP_MS = 500;
/** Longest wait after a reload that failed, in ms; a change ends it. */
const RETRY_MS = 5_000;

export class Follower {
  readonly #deps: FollowerDeps;
  readonly #closed$ = new ReplaySubject<void>(1);
  readonly #wake$ = new Subject<void>();
  #isBehind = false;
  /** Changes may have been missed: the store was unavailable, or `follow` was not called yet. */
  #mayHaveMissed = true;
  #isReloading = false;
  #isClosed = false;
  #hasFailed = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
  }

  /** Subscribes until `close`, and again after an error. Hot or cold. The first change except `away` causes a reload. */
  follow(storeChanges$: Observable<RevisionChange>): void {
    storeChanges$
      .pipe(retry({ delay: RETRY_MS }), takeUntil(this.#closed$))
      .subscribe(({ kind }) => this.#onChange(kind));
  }

  /** Requests a reload, after a change that failed and may be stored all the same. */
  requestReload(): void {
    this.#isBehind = true;
    this.#catchUp();
  }

  close(): void {
    this.#isClosed = true;
    this.#closed$.next();
  }

  #onChange(kind: RevisionChange['kind']): void {
    if (kind === 'away') {
      this.#mayHaveMissed = true;
      return;
    }
    if (kind === 'changed' || this.#mayHaveMissed || this.#hasFailed) this.#isBehind = true;
    this.#wake$.next();
    this.#catchUp();
  }

  #catchUp(): void {
    if (!this.#isReloading) void this.#work();
  }

  /** Changes during a reload cause one more reload, and only one. Never rejects. */
  async #work(): Promise<void> {
    this.#isReloading = true;
    while (this.#isBehind && !this.#isClosed) {
      this.#isBehind = false;
      const isDone = await this.#isReloaded();
      await this.#pause(timer(GAP_MS));
      if (isDone) continue;
      if (!this.#isBehind) await this.#pause(race(timer(RETRY_MS), this.#wake$));
      this.#isBehind = true;
    }
    this.#isReloading = false;
  }

  async #isReloaded(): Promise<boolean> {
    const { reload, emit } = this.#deps;
    this.#mayHaveMissed = false;
    try {
      await reload();
      if (this.#hasFailed) emit({ type: 'registry.current', atMs: Date.now() });
      this.#hasFailed = false;
      return true;
    } catch (thrown) {
      const { code } = asGatewayError(thrown);
      if (!this.#hasFailed && !this.#isClosed) emit({ type: 'registry.behind', atMs: Date.now(), code });
      this.#hasFailed = true;
      return false;
    }
  }

  async #pause(wait$: Observable<unknown>): Promise<void> {
    await firstValueFrom(race(wait$, this.#closed$));
  }
}
