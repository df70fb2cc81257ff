// The search of one session for a binding: at the instance that the strategy chooses, after a failure at the next
// one, and beside an opening that is slow over a network. binder.ts opens the binding. Source: ADR 40.

import { fromEvent, take, takeUntil } from 'rxjs';
import { asGatewayError, atInstance, type GatewayError } from '../../../domain/errors/errors.ts';
import { shuttingDown } from '../../../domain/errors/gateway-errors.ts';
import { isNetworked } from '../../../domain/instances/transport-kinds.ts';
import type { McpSession } from '../../../domain/sessions/mcp-session.ts';
import type { Conversation } from '../../../transports/transport.ts';
import { HEDGE_DIVISOR } from '../../calls/deadline.ts';
import type { Tries } from '../../calls/tries.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import type { ClientNeeds } from '../../instances/process-sharing.ts';
import { noHealthyError } from '../../no-instance.ts';
import type { TemplateGroup } from '../../template-group.ts';
import type { SessionDeps } from '../session-deps.ts';
import type { Binding } from './binding.ts';

/** What a search looks for, where, and for how long. */
export interface SearchOptions extends ClientNeeds {
  readonly group: TemplateGroup;
  readonly ownerId: string;
  readonly session?: McpSession | undefined;
  /**
   * Restores the log level and the subscriptions in a new conversation, before it is used. Undefined when there are
   * none.
   */
  readonly restoreBackendState?:
    | ((conversation: Conversation, signal: AbortSignal) => Promise<void>)
    | undefined;
  /** How often it may try, and where not. The search counts its own tries there. */
  readonly tries: Tries;
  /** The instance that is tried first. Default: the strategy chooses. */
  readonly first?: InstanceRef | undefined;
  /** The instance that is tried only when there is no other. */
  readonly last?: InstanceRef | undefined;
  /** The time limit of the whole search in ms, after which the caller aborts it. */
  readonly withinMs: number;
}

type OpenAt = (ref: InstanceRef, ended: AbortSignal) => Promise<Binding>;

/** The longest time after which an opening counts as slow, in ms. */
const SLOW_OPENING_MS = 1_000;

/** One search for a binding. `run` is called once. */
export class BindingSearch {
  readonly #deps: SessionDeps;
  readonly #options: SearchOptions;
  readonly #signal: AbortSignal;
  readonly #open: OpenAt;
  readonly #endsAtMs: number;
  readonly #found = Promise.withResolvers<Binding>();
  /** Aborted as soon as a binding is found. */
  readonly #over = new AbortController();
  readonly #ended: AbortSignal;
  #underWay = 0;
  #failure: GatewayError | undefined;

  /** Aborting `signal` ends the search. `open`: opens a binding at one instance. */
  constructor(deps: SessionDeps, options: SearchOptions, signal: AbortSignal, open: OpenAt) {
    this.#deps = deps;
    this.#options = options;
    this.#signal = signal;
    this.#open = open;
    this.#endsAtMs = deps.clock.now() + options.withinMs;
    this.#ended = AbortSignal.any([signal, this.#over.signal]);
  }

  run(): Promise<Binding> {
    this.#continue(this.#options.first ?? this.#next());
    return this.#found.promise;
  }

  #continue(ref: InstanceRef | undefined): void {
    if (ref !== undefined) void this.#try(ref);
    else if (this.#underWay > 0) return;
    else if (!this.#awaitStart()) this.#found.reject(this.#failure ?? this.#noInstance());
  }

  /** Waits for an instance that is starting, then continues the search. Returns false when none is starting. */
  #awaitStart(): boolean {
    const { group, ownerId, tries } = this.#options;
    const started$ = this.#mayTry ? group.untilStarted(ownerId, tries.excluded) : undefined;
    started$?.pipe(take(1), takeUntil(fromEvent(this.#signal, 'abort'))).subscribe({
      error: (error: GatewayError) => this.#found.reject(error),
      complete: () => this.#continue(this.#next()),
    });
    return started$ !== undefined;
  }

  async #try(ref: InstanceRef): Promise<void> {
    const { group, tries } = this.#options;
    tries.count();
    tries.exclude(ref);
    this.#underWay += 1;
    const disarm = this.#hedge(ref);
    try {
      // A program is ended at once. A session of a backend can be deleted only when its id is known.
      const binding = await this.#open(ref, isNetworked(ref.definition) ? this.#signal : this.#ended);
      if (this.#over.signal.aborted) await binding.close();
      this.#over.abort();
      this.#found.resolve(binding);
    } catch (thrown) {
      this.#failure = atInstance(asGatewayError(thrown), ref.id);
      this.#underWay -= 1;
      if (!group.has(ref)) tries.readmit(ref); // its successor has the same id
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
    const { budget, clock } = this.#deps;
    const { withinMs, tries, group } = this.#options;
    const halfMs = tries.slowAfterMs(slow, group, this.#endsAtMs - clock.now());
    if (halfMs === undefined) return () => undefined;
    const soonMs = Math.min(SLOW_OPENING_MS, Math.ceil(withinMs / HEDGE_DIVISOR), halfMs);
    let disarm = clock.alarm(soonMs, () => {
      slow.suspect();
      const mayOpen = this.#mayTry && tries.hasAlternative(slow, group) && budget.take();
      if (mayOpen) this.#continue(this.#next());
      else disarm = clock.alarm(halfMs - soonMs, () => this.#continue(this.#next()));
    });
    return () => disarm();
  }

  /** False also when the search is over. */
  get #mayTry(): boolean {
    return this.#options.tries.left > 0 && !this.#ended.aborted;
  }

  #next(): InstanceRef | undefined {
    const { group, ownerId, last, tries } = this.#options;
    return this.#mayTry ? group.pickForSession(ownerId, tries.excluded, last) : undefined;
  }

  #noInstance(): GatewayError {
    return this.#deps.isAccepting() ? noHealthyError(this.#options.group) : shuttingDown();
  }
}
