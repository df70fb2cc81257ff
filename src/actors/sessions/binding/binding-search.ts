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

/** The longest time after which an opening counts as slow, in ms. */
const SLOW_OPENING_MS = 1_000;

/** Searches for a binding: see Binder.findBinding. `open`: opens a binding at one instance. */
export function searchBinding(
  { budget, clock, isAccepting }: SessionDeps,
  { group, ownerId, tries, first, last, withinMs, signal }: SearchOptions,
  open: (ref: InstanceRef, ended: AbortSignal) => Promise<Binding>,
): Promise<Binding> {
  const endsAtMs = clock.now() + withinMs;
  const found = Promise.withResolvers<Binding>();
  /** Aborted as soon as a binding is found. */
  const over = new AbortController();
  const ended = AbortSignal.any([signal, over.signal]);
  let underWay = 0;
  let failure: GatewayError | undefined;

  const mayTry = () => tries.left > 0 && !ended.aborted;
  const next = () => (mayTry() ? group.pickForSession(ownerId, tries.excluded, last) : undefined);

  const goOn = (ref: InstanceRef | undefined): void => {
    if (ref !== undefined) void tryAt(ref);
    else if (underWay === 0 && !awaitStart()) found.reject(failure ?? noInstance());
  };
  const noInstance = () => (isAccepting() ? noHealthyError(group) : shuttingDown());

  /** Waits for an instance that is starting, then continues the search. Returns false when none is starting. */
  const awaitStart = (): boolean => {
    const started$ = mayTry() ? group.untilStarted(ownerId, tries.excluded) : undefined;
    started$?.pipe(take(1), takeUntil(fromEvent(signal, 'abort'))).subscribe({
      error: (error: GatewayError) => found.reject(error),
      complete: () => goOn(next()),
    });
    return started$ !== undefined;
  };

  const tryAt = async (ref: InstanceRef): Promise<void> => {
    tries.count();
    tries.exclude(ref);
    underWay += 1;
    const disarm = hedge(ref);
    try {
      // A program is ended at once. A session of a backend can be deleted only when its id is known.
      const binding = await open(ref, isNetworked(ref.definition) ? signal : ended);
      if (over.signal.aborted) await binding.close();
      over.abort();
      found.resolve(binding);
    } catch (thrown) {
      failure = atInstance(asGatewayError(thrown), ref.id);
      underWay -= 1;
      if (!group.has(ref)) tries.readmit(ref); // its successor has the same id
      goOn(next());
    } finally {
      disarm();
    }
  };

  /**
   * Sets a timer for the next opening beside a slow one: soon if the retry budget allows it, otherwise after half of
   * the remaining time: see slowAfterMs. Returns a function that cancels the timer.
   */
  const hedge = (slow: InstanceRef): (() => void) => {
    const halfMs = tries.slowAfterMs(slow, group, endsAtMs - clock.now());
    if (halfMs === undefined) return () => undefined;
    const soonMs = Math.min(SLOW_OPENING_MS, Math.ceil(withinMs / HEDGE_DIVISOR), halfMs);
    let disarm = clock.alarm(soonMs, () => {
      slow.suspect();
      const mayOpen = mayTry() && tries.hasAlternative(slow, group) && budget.take();
      if (mayOpen) goOn(next());
      else disarm = clock.alarm(halfMs - soonMs, () => goOn(next()));
    });
    return () => disarm();
  };

  goOn(first ?? next());
  return found.promise;
}
