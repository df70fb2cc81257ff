// Decides when the registry is read anew: after news of the store, after a change nobody knows the outcome of, and again
// until it succeeds. Reading and taking in is registry.ts.

import { firstValueFrom, type Observable, ReplaySubject, race, retry, Subject, takeUntil, timer } from 'rxjs';
import { asGatewayError } from '../domain/errors.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';

export interface FollowerDeps {
  /** Brings this node in step with the store. */
  readonly reload: () => Promise<void>;
  readonly emit: (event: GatewayEvent) => void;
}

/** Shortest time between the end of a reload and the next one, in ms: a thousand changes are a few reloads. */
const GAP_MS = 500;
/** Longest wait after a reload that failed, in ms; news end it. */
const RETRY_MS = 5_000;

export class Follower {
  readonly #deps: FollowerDeps;
  readonly #closed$ = new ReplaySubject<void>(1);
  readonly #wake$ = new Subject<void>();
  /** There is something to be read. */
  #isBehind = false;
  /** Changes may have gone unheard: the store was away, or nobody listened yet. */
  #mayHaveMissed = true;
  #isAtWork = false;
  #isClosed = false;
  #hasFailed = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
  }

  /** Listens until `close`, and anew when it fails. Hot or cold; the first news but `away` are a reason to look. */
  follow(news$: Observable<RevisionChange>): void {
    news$
      .pipe(retry({ delay: RETRY_MS }), takeUntil(this.#closed$))
      .subscribe(({ kind }) => this.#hear(kind));
  }

  /** Asks for a reload: a change failed in a way that leaves open whether it was stored. */
  doubt(): void {
    this.#isBehind = true;
    this.#catchUp();
  }

  close(): void {
    this.#isClosed = true;
    this.#closed$.next();
  }

  #hear(kind: RevisionChange['kind']): void {
    if (kind === 'away') {
      this.#mayHaveMissed = true;
      return;
    }
    if (kind === 'changed' || this.#mayHaveMissed || this.#hasFailed) this.#isBehind = true;
    this.#wake$.next();
    this.#catchUp();
  }

  #catchUp(): void {
    if (!this.#isAtWork) void this.#work();
  }

  /** Whatever is heard during a reload asks for one more, and only one. Never rejects. */
  async #work(): Promise<void> {
    this.#isAtWork = true;
    while (this.#isBehind && !this.#isClosed) {
      this.#isBehind = false;
      const isDone = await this.#isReloaded();
      await this.#pause(timer(GAP_MS));
      if (isDone) continue;
      if (!this.#isBehind) await this.#pause(race(timer(RETRY_MS), this.#wake$));
      this.#isBehind = true;
    }
    this.#isAtWork = false;
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

  /** Waits, but not beyond `close`. */
  async #pause(wait$: Observable<unknown>): Promise<void> {
    await firstValueFrom(race(wait$, this.#closed$));
  }
}
