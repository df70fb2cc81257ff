// The search of one session for a binding: at the instance that the strategy chooses, after a failure at the next
// one, and beside an opening that is slow over a network. binder.ts opens the binding. Source: ADR 101.

import { fromEvent, take, takeUntil } from 'rxjs';
import { asGatewayError, atInstance, type GatewayError } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import type { ExcludedIds } from '../calls/call-route.ts';
import { HEDGE_DIVISOR } from '../calls/deadline.ts';
import { hasAlternative, slowAfterMs } from '../calls/slow-opening.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { noHealthyError } from '../no-instance.ts';
import type { TemplateGroup } from '../template-group.ts';
import type { Binding } from './binding.ts';
import type { SessionDeps } from './session-deps.ts';

/** What a search is for, where it looks for a binding, and for how long. */
export interface SearchOptions {
  /**
   * `open`, `recover`: the first binding of a new session, or of a recovered one. `further`: another one of a bound session, for
   * a move or a hedge; the call that needs it is counted in the retry budget already.
   */
  readonly purpose: 'open' | 'recover' | 'further';
  /** The instance that is tried first. Default: the strategy chooses. */
  readonly first?: InstanceRef | undefined;
  /** The only instance that is tried. Default: all may be. */
  readonly only?: InstanceRef | undefined;
  /** The instance that is tried only when there is no other. */
  readonly last?: InstanceRef | undefined;
  /** Ids of instances that are not tried. They count towards the bound of tries. */
  readonly excluded?: ExcludedIds;
  /** The time limit of the whole search in ms, after which the caller aborts it. */
  readonly withinMs: number;
}

interface SearchDeps extends SearchOptions, Pick<SessionDeps, 'clock' | 'budget' | 'isAccepting'> {
  readonly group: TemplateGroup;
  readonly ownerId: string;
  /** Aborting ends the search. */
  readonly signal: AbortSignal;
  readonly open: (ref: InstanceRef, ended: AbortSignal) => Promise<Binding>;
}

/** The longest time after which an opening counts as slow, in ms. */
const SLOW_OPENING_MS = 1_000;

/** One search for a binding. `run` is called once. */
export class BindingSearch {
  readonly #deps: SearchDeps;
  readonly #endsAtMs: number;
  readonly #excluded: Set<string>;
  readonly #found = Promise.withResolvers<Binding>();
  /** Aborted as soon as a binding is found. */
  readonly #over = new AbortController();
  readonly #ended: AbortSignal;
  #underWay = 0;
  #failure: GatewayError | undefined;

  constructor(deps: SearchDeps) {
    this.#deps = deps;
    this.#excluded = new Set(deps.excluded);
    this.#endsAtMs = deps.clock.now() + deps.withinMs;
    this.#ended = AbortSignal.any([deps.signal, this.#over.signal]);
  }

  run(): Promise<Binding> {
    const { purpose, only, first, budget } = this.#deps;
    if (purpose !== 'further') budget.countCall();
    this.#continue(only ?? first ?? this.#next());
    return this.#found.promise;
  }

  #continue(ref: InstanceRef | undefined): void {
    if (ref !== undefined) void this.#try(ref);
    else if (this.#underWay > 0) return;
    else if (!this.#awaitStart()) this.#found.reject(this.#failure ?? this.#noInstance());
  }

  /** Waits for an instance that is starting, then continues the search. Returns false when none is starting. */
  #awaitStart(): boolean {
    const { group, ownerId, signal } = this.#deps;
    const started$ = this.#triesLeft > 0 ? group.untilStarted(ownerId, this.#excluded) : undefined;
    started$?.pipe(take(1), takeUntil(fromEvent(signal, 'abort'))).subscribe({
      error: (error: GatewayError) => this.#found.reject(error),
      complete: () => this.#continue(this.#next()),
    });
    return started$ !== undefined;
  }

  async #try(ref: InstanceRef): Promise<void> {
    const { signal, open, group, only } = this.#deps;
    this.#excluded.add(ref.id);
    this.#underWay += 1;
    const disarm = this.#hedge(ref);
    try {
      // A program is ended at once. A session of a backend can be deleted only when its id is known.
      const binding = await open(ref, isNetworked(ref.definition) ? signal : this.#ended);
      if (this.#over.signal.aborted) await binding.close();
      this.#over.abort();
      this.#found.resolve(binding);
    } catch (thrown) {
      this.#failure = atInstance(asGatewayError(thrown), ref.id);
      this.#underWay -= 1;
      // Its successor has the same id; where a session may not move, that is another instance.
      if (only === undefined && !group.has(ref)) this.#excluded.delete(ref.id);
      this.#continue(this.#next());
    } finally {
      disarm();
    }
  }

  /**
   * Sets a timer for the next opening beside a slow one: soon if the retry budget allows it, otherwise after half of
   * the remaining time: see slowAfterMs. Returns a function that cancels the timer.
   */
  #hedge(slow: InstanceRef): () => void {
    const { budget, withinMs, clock } = this.#deps;
    const halfMs = slowAfterMs(slow, { ...this.#others, leftMs: this.#endsAtMs - clock.now() });
    if (halfMs === undefined) return () => undefined;
    const soonMs = Math.min(SLOW_OPENING_MS, Math.ceil(withinMs / HEDGE_DIVISOR), halfMs);
    let disarm = clock.alarm(soonMs, () => {
      slow.suspect();
      if (hasAlternative(slow, this.#others) && budget.take()) this.#continue(this.#next());
      else disarm = clock.alarm(halfMs - soonMs, () => this.#continue(this.#next()));
    });
    return () => disarm();
  }

  /** The number of instances that may still be tried; zero or less also when the search is over. */
  get #triesLeft(): number {
    const { only, group, signal } = this.#deps;
    if (signal.aborted || this.#over.signal.aborted) return 0;
    return (only === undefined ? group.policy.maxRetries + 1 : 1) - this.#excluded.size;
  }

  /** Where else the search may go. */
  get #others() {
    return { group: this.#deps.group, excluded: this.#excluded, attemptsLeft: this.#triesLeft };
  }

  #next(): InstanceRef | undefined {
    const { group, ownerId, last } = this.#deps;
    return this.#triesLeft > 0 ? pickFor(group, ownerId, this.#excluded, last) : undefined;
  }

  #noInstance(): GatewayError {
    return this.#deps.isAccepting() ? noHealthyError(this.#deps.group) : shuttingDown();
  }
}

/**
 * Chooses an instance for a session. When all are full any may be chosen, since a session is not load until it calls.
 * `last` is chosen only when there is no other.
 */
export function pickFor(
  group: TemplateGroup,
  ownerId: string,
  excluded: ReadonlySet<string> = new Set(),
  last?: InstanceRef,
): InstanceRef | undefined {
  const { pool } = group;
  const other = last === undefined ? undefined : pickFor(group, ownerId, new Set([...excluded, last.id]));
  const request = { callerId: ownerId };
  return other ?? pool.pick(request, { excluded }) ?? pool.pick(request, { excluded, hasRoom: () => true });
}
