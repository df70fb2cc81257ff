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
import { noHealthyError } from '../../fleet/no-instance.ts';
import type { TemplateGroup } from '../../fleet/template-group.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import type { ClientNeeds } from '../../instances/process-sharing.ts';
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
  /** Aborting it ends the search. */
  readonly signal: AbortSignal;
}

/** Opens a binding at one instance, unless `ended` is aborted. */
type OpenBinding = (ref: InstanceRef, ended: AbortSignal) => Promise<Binding>;

/** The longest time after which an opening counts as slow, in ms. */
const SLOW_OPENING_MS = 1_000;

/** One search for a binding: see Binder.findBinding. It is over when `run` has its result. */
export class BindingSearch {
  readonly #deps: SessionDeps;
  readonly #options: SearchOptions;
  readonly #open: OpenBinding;
  readonly #endsAtMs: number;
  readonly #found = Promise.withResolvers<Binding>();
  /** Aborted as soon as a binding is found. */
  readonly #over = new AbortController();
  readonly #ended: AbortSignal;
  #underWay = 0;
  #failure: GatewayError | undefined;

  constructor(deps: SessionDeps, options: SearchOptions, open: OpenBinding) {
    this.#deps = deps;
    this.#options = options;
    this.#open = open;
    this.#endsAtMs = deps.clock.now() + options.withinMs;
    this.#ended = AbortSignal.any([options.signal, this.#over.signal]);
  }

  /** Called once. */
  run(): Promise<Binding> {
    this.#goOn(this.#options.first ?? this.#next());
    return this.#found.promise;
  }

  #goOn(ref: InstanceRef | undefined): void {
    if (ref !== undefined) void this.#tryAt(ref);
    else if (this.#underWay === 0 && !this.#awaitStart())
      this.#found.reject(this.#failure ?? this.#noInstance());
  }

  #next(): InstanceRef | undefined {
    const { group, ownerId, tries, last } = this.#options;
    return this.#mayTry() ? group.pickForSession(ownerId, tries.excluded, last) : undefined;
  }

  #mayTry(): boolean {
    return this.#options.tries.left > 0 && !this.#ended.aborted;
  }

  #noInstance(): GatewayError {
    return this.#deps.isAccepting() ? noHealthyError(this.#options.group) : shuttingDown();
  }

  /** Waits for an instance that is starting, then continues the search. Returns false when none is starting. */
  #awaitStart(): boolean {
    const { group, ownerId, tries, signal } = this.#options;
    const started$ = this.#mayTry() ? group.untilStarted(ownerId, tries.excluded) : undefined;
    started$?.pipe(take(1), takeUntil(fromEvent(signal, 'abort'))).subscribe({
      error: (error: GatewayError) => this.#found.reject(error),
      complete: () => this.#goOn(this.#next()),
    });
    return started$ !== undefined;
  }

  async #tryAt(ref: InstanceRef): Promise<void> {
    const { group, tries, signal } = this.#options;
    tries.count();
    tries.exclude(ref);
    this.#underWay += 1;
    const disarm = this.#hedge(ref);
    try {
      // A program is ended at once. A session of a backend can be deleted only when its id is known.
      const binding = await this.#open(ref, isNetworked(ref.definition) ? signal : this.#ended);
      if (this.#over.signal.aborted) await binding.close();
      this.#over.abort();
      this.#found.resolve(binding);
    } catch (thrown) {
      this.#failure = atInstance(asGatewayError(thrown), ref.id);
      this.#underWay -= 1;
      if (!group.has(ref)) tries.readmit(ref); // its successor has the same id
      this.#goOn(this.#next());
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
    const { group, tries, withinMs } = this.#options;
    const halfMs = tries.slowAfterMs(slow, group, this.#endsAtMs - clock.now());
    if (halfMs === undefined) return () => undefined;
    const soonMs = Math.min(SLOW_OPENING_MS, Math.ceil(withinMs / HEDGE_DIVISOR), halfMs);
    let disarm = clock.alarm(soonMs, () => {
      slow.suspect();
      const mayOpen = this.#mayTry() && tries.hasAlternative(slow, group) && budget.take();
      if (mayOpen) this.#goOn(this.#next());
      else disarm = clock.alarm(halfMs - soonMs, () => this.#goOn(this.#next()));
    });
    return () => disarm();
  }
}
