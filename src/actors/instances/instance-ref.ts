// The handle of one instance: the only access to it from outside the actors. It reads the snapshot of the actor, sends
// it commands, and leads calls past its mailbox (calls/attempt.ts). Strategies choose among handles.

import { firstValueFrom, from, Observable, race, take } from 'rxjs';
import type { Suspension } from '../../balancing/outliers.ts';
import type { TemplatePolicy } from '../../balancing/policy.ts';
import type { Candidate } from '../../balancing/strategy-types.ts';
import { asGatewayError, type GatewayError, reasonOf } from '../../domain/errors/errors.ts';
import type { InstanceDefinition, InstanceSnapshot, InstanceState } from '../../domain/instances/instance.ts';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import { definedFields, type JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import { counted } from '../../domain/text.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { CallConversation, Conversation, TransportDiagnostics } from '../../transports/transport.ts';
import type { Feed } from '../subscriptions/feed.ts';
import type { CallCounter } from './call-counter.ts';
import type { ConversationRequest } from './dedicated-conversation.ts';
import type { ConversationUse } from './dedicated-conversations.ts';
import {
  type InstanceActor,
  isBetweenProbes,
  isPlannedEnd,
  isRenewing,
  isStarting,
  stateOf,
} from './instance.machine.ts';
import type { InstanceEmission } from './instance-setup.ts';
import type { InstanceTransport } from './instance-transport.ts';
import type { ToolCache } from './tool-cache.ts';

type StateListener = (state: InstanceState) => void;

/** The handle of an instance that calls can reach from this node. */
export class InstanceRef implements Candidate {
  readonly id: string;
  readonly serverId: string;
  readonly template: string;
  readonly capacity: number = LIMITS.inFlightPerInstance;
  /** True when another node runs the instance, and decides about its starts and its drain. */
  readonly isElsewhere: boolean;
  /** The counter in which attempts count themselves. */
  readonly calls: CallCounter;
  readonly #actor: InstanceActor;
  /** The listeners of `watch`; undefined before the first one. */
  #watchers: Set<StateListener> | undefined;
  /**
   * The wall time at zero of the monotonic clock, in ms. It is kept while both clocks advance alike, so that shown
   * times do not change.
   */
  #wallOffsetMs = Number.NaN;

  constructor(actor: InstanceActor) {
    const { definition, calls, isElsewhere = false } = actor.getSnapshot().context;
    this.id = definition.id;
    this.serverId = definition.serverId;
    this.template = definition.template;
    this.isElsewhere = isElsewhere;
    this.#actor = actor;
    this.calls = calls;
  }

  /** Calls the listener now, and at each change of the state or of `isStarting`, until the returned function is called. */
  watch(listener: StateListener): () => void {
    this.#watchers ??= this.#watchState();
    const watchers = this.#watchers;
    watchers.add(listener);
    listener(this.state);
    return () => void watchers.delete(listener);
  }

  /** Emits once, as soon as `isDue` is true: it is asked when a listener of `watch` is called. Cold. */
  until$(isDue: () => boolean): Observable<void> {
    return new Observable<void>((subscriber) => this.watch(() => isDue() && subscriber.next())).pipe(take(1));
  }

  /** It has no operators of rxjs, which would take too long in one turn for thousands of listeners. */
  #watchState(): Set<StateListener> {
    const watchers = new Set<StateListener>();
    let last = { state: this.state, isStarting: this.isStarting };
    const check = (): void => {
      const { state, isStarting } = this;
      if (state === last.state && isStarting === last.isStarting) return;
      last = { state, isStarting };
      for (const listener of [...watchers]) if (watchers.has(listener)) listener(state);
    };
    this.#actor.subscribe({ next: check, error: check, complete: check });
    return watchers;
  }

  get definition(): InstanceDefinition {
    return this.#actor.getSnapshot().context.definition;
  }
  get state(): InstanceState {
    return stateOf(this.#actor.getSnapshot());
  }
  /** Why the instance is not healthy; null while it is, also after a single failed probe. */
  get reason(): string | null {
    return this.state === 'healthy' ? null : this.#actor.getSnapshot().context.reason;
  }
  /**
   * True while the transport and the dedicated conversations are being closed, for a requested restart or because the
   * instance leaves.
   */
  get isPlannedEnd(): boolean {
    return isPlannedEnd(this.#actor.getSnapshot());
  }
  /**
   * True while the instance starts for the first time, restarts as requested, or restarts after at most
   * EXPECTED_RESTARTS failures in a row. Not for a networked server that was reached before, which the gateway
   * does not start.
   */
  get isStarting(): boolean {
    return isStarting(this.#actor.getSnapshot());
  }
  /** True when the instance is drained, also after a crash of its actor. */
  get isDrained(): boolean {
    const { duty } = this.#actor.getSnapshot().value;
    return duty === 'draining' || duty === 'restartingDrained';
  }
  /** True while an instance of this node ends to start again as requested, or at another node if any may run it. */
  get isRenewing(): boolean {
    return isRenewing(this.#actor.getSnapshot());
  }
  get handshake(): Handshake | undefined {
    return this.opened?.handshake;
  }
  /** The names of the tools that the present or last transport listed; undefined when they are unknown. */
  get lastTools(): readonly string[] | undefined {
    return this.tools?.names ?? this.#actor.getSnapshot().context.lastTools;
  }

  get lastHandshake(): Handshake | undefined {
    return this.#actor.getSnapshot().context.lastHandshake;
  }
  get weight(): number {
    return this.definition.weight;
  }
  get activeCalls(): number {
    return this.calls.active;
  }
  /** The number of calls of other nodes at an instance that another node runs, as that node reports it; otherwise 0. */
  get otherCalls(): number {
    return this.isElsewhere ? (this.opened?.transport.otherCalls ?? 0) : 0;
  }
  hasCapacityFor(ownerId: string): boolean {
    return this.calls.hasCapacityFor(ownerId);
  }
  isBelowShare(ownerId: string): boolean {
    return this.calls.isBelowShare(ownerId);
  }
  get successRate(): number {
    return this.calls.successRate;
  }
  get latencyMs(): number | undefined {
    return this.calls.latencyMs;
  }
  get tools(): ToolCache | undefined {
    return this.opened?.tools;
  }
  get feed(): Feed | undefined {
    return this.opened?.feed;
  }
  /** The open transport; undefined while there is none. */
  get opened(): InstanceTransport | undefined {
    const { status, context } = this.#actor.getSnapshot();
    return status === 'active' ? context.opened : undefined; // an actor that has ended still has its last transport
  }

  /**
   * True when the instance takes new calls in this conversation; undefined means its transport. It does while
   * it is healthy. In an independent conversation it also does while the transport is lost, but not when it leaves,
   * is drained, or restarts as requested. `isContinuation`: the call continues what is under way there, and a draining or
   * unhealthy instance takes it, too.
   */
  acceptsCalls(conversation?: CallConversation, isContinuation = false): boolean {
    const { state } = this;
    if (state === 'healthy') return true;
    if (isContinuation && (state === 'draining' || state === 'unhealthy')) return true;
    const isLost = state === 'unhealthy' || state === 'starting';
    return isLost && conversation?.isIndependent === true && !this.isPlannedEnd;
  }

  /**
   * Handles the end of an attempt, which is counted already. The end of a dedicated conversation says nothing about
   * the instance.
   */
  callEnded(failure: GatewayError | undefined): void {
    this.#reportIfIdle();
    if (failure !== undefined) this.#reportFailure(failure);
  }

  /** Informs an instance that leaves or restarts about the end of its last call. */
  #reportIfIdle(): void {
    if (this.calls.isIdle && this.#actor.getSnapshot().value.duty !== 'serving')
      this.#actor.send({ type: 'idle' });
  }

  /**
   * Reports the cause of an error, since errors themselves do not change health: a refused connection makes the
   * instance unhealthy at once, other failures cause a probe.
   */
  #reportFailure(error: GatewayError): void {
    if (error.facts.health === 'unreachable') {
      if (this.state === 'healthy') this.#actor.send({ type: 'unreachable', reason: reasonOf(error) });
    } else if (error.facts.health === 'suspicious') this.suspect();
  }

  /**
   * Takes a conversation: see DedicatedConversations.use. It ends with the present transport, unless it is independent. Throws
   * QUEUE_FULL; the opening fails with BACKEND_UNAVAILABLE and `delivered: 'no'`.
   */
  use(request: ConversationRequest): ConversationUse {
    const use = this.#actor.getSnapshot().context.dedicated.use(request);
    if (!use.conversation.isReused)
      use.conversation.opening.catch((thrown: unknown) => this.#reportFailure(asGatewayError(thrown)));
    return use;
  }

  /**
   * Ends what is left of a crashed actor: its transport, opening and dedicated processes. Resolves when they have ended,
   * or after LIMITS.drainMs.
   */
  async endAfterCrash(): Promise<void> {
    const { context, children } = this.#actor.getSnapshot();
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    if (children.transport === undefined) resolve();
    else children.transport.send({ type: 'close', closed: resolve });
    const ends = [context.dedicated.end(), closed];
    await firstValueFrom(race(from(Promise.all(ends)), timer$(context.clock, LIMITS.drainMs)));
  }

  /** Sends a notification through the transport, as Conversation.notify does; dropped when there is no transport. */
  notify(method: string, params: JsonObject, ownerId: string): void {
    this.opened?.transport.notify(method, params, ownerId);
  }

  /**
   * Reserves a place for a call of this owner between two rounds, until unsubscribed; cold. An instance that leaves
   * or restarts waits for a reservation as for a call. Completes when `conversation` (default: the transport) ends,
   * at once when there is none. Errors at once with QUEUE_FULL when LIMITS.callsAwaitingClient calls wait here, or
   * the owner's share of them; not with `isContinuation`, since that call already had a reservation.
   */
  reserve(
    ownerId: string,
    conversation: Conversation | undefined = this.opened?.transport,
    isContinuation = false,
  ): Observable<never> {
    return new Observable((subscriber) => {
      if (conversation === undefined) return subscriber.complete();
      const refusal = isContinuation ? undefined : this.calls.reservationRefusal(ownerId);
      if (refusal !== undefined) return subscriber.error(refusal);
      this.calls.reserve(ownerId);
      subscriber.add(() => {
        this.calls.cancelReservation(ownerId);
        this.#reportIfIdle();
      });
      subscriber.add(conversation.closed$.subscribe({ complete: () => subscriber.complete() }));
    });
  }

  /** Requests a probe, because calls fail; at most one per PROMPTED_PROBE_MS. */
  suspect(): void {
    // The machine would do nothing about the others either, of thousands of calls that fail with their instance.
    if (isBetweenProbes(this.#actor.getSnapshot())) this.#actor.send({ type: 'suspected' });
  }

  drain(): void {
    this.#actor.send({ type: 'drain' });
  }
  resume(): void {
    this.#actor.send({ type: 'resume' });
  }
  restart(): void {
    this.#actor.send({ type: 'restart' });
  }
  /** Takes the instance out of the pool. Calls in flight have `withinMs` to finish; then the transport is closed. */
  leave(withinMs: number): void {
    this.#actor.send({ type: 'leave', withinMs });
  }
  /** Replaces weight and metadata, without any effect on the transport. */
  change(definition: InstanceDefinition): void {
    this.#actor.send({ type: 'change', definition });
  }
  setPolicy(policy: TemplatePolicy): void {
    this.#actor.send({ type: 'setPolicy', policy });
  }

  /**
   * Calls the listener when the actor has crashed through a fault of the gateway; its backend may still run. If `watch` was
   * called before, its listeners are informed first.
   */
  onCrash(listener: (error: unknown) => void): void {
    this.#actor.subscribe({ error: listener });
  }

  onEmission(listener: (emission: InstanceEmission) => void): void {
    this.#actor.on('*', listener);
  }

  /** The present status. `score` and `suspension` come from the pool. Default: not suspended. */
  snapshot(score: number, suspension?: Suspension): InstanceSnapshot {
    const { context, value, status } = this.#actor.getSnapshot();
    const isWaiting = status === 'active' && value.connection === 'waiting';
    const { definition, opened, startingDiagnostics, calls, stderr, failures, checkedAtMs } = context;
    const { state } = this;
    const diagnostics = opened === undefined ? startingDiagnostics?.() : opened.transport.diagnostics();
    const { stderr: output = [] } = diagnostics ?? {};
    return {
      id: definition.id,
      serverId: definition.serverId,
      template: definition.template,
      state,
      healthy: state === 'healthy',
      inFlight: calls.inFlight,
      weight: definition.weight,
      score,
      latencyMs: calls.latencyMs ?? null,
      consecutiveFailures: failures,
      lastCheck: checkedAtMs === undefined ? null : this.#isoTime(context.clock, checkedAtMs),
      nextAttemptAt: isWaiting ? this.#isoTime(context.clock, context.opensAtMs) : null,
      ejection:
        suspension === undefined
          ? null
          : { reason: suspension.reason, until: this.#isoTime(context.clock, suspension.untilMs) },
      reason:
        this.reason ?? (opened === undefined ? startingReason(diagnostics) : (opened.transport.note ?? null)),
      restarts: Math.max(0, context.openings - 1) + context.failedStarts,
      era: opened?.handshake.era ?? null,
      pid: diagnostics?.pid ?? null,
      // While a program that is started again is silent, the lines of the last one say why it ended.
      stderr: opened !== undefined || output.length > 0 ? output : stderr,
      ...foundTransportOf(definition, opened),
      ...definedFields({ oddOutput: diagnostics?.oddOutput }),
    };
  }

  #isoTime({ now, wall }: Clock, monotonicMs: number): string {
    const offsetMs = wall() - now();
    if (!(Math.abs(offsetMs - this.#wallOffsetMs) <= STEADY_MS)) this.#wallOffsetMs = offsetMs;
    return new Date(this.#wallOffsetMs + monotonicMs).toISOString();
  }
}

/** Two readings of both clocks differ by less than this, in ms, while neither clock is set. */
const STEADY_MS = 50;

/**
 * The transport that an HTTP server really speaks, if it is not the registered one: it may be the older
 * HTTP+SSE.
 */
function foundTransportOf(
  { transport }: InstanceDefinition,
  opened: InstanceTransport | undefined,
): Pick<InstanceSnapshot, 'foundTransport'> {
  const found = opened?.transport.kind ?? transport;
  const isOther = found !== transport && isNetworked({ transport: found });
  return isOther ? { foundTransport: found } : {};
}

/**
 * What a starting program does instead of answering, as a clause; null while it is silent. Its lines are in
 * `stderr`.
 */
function startingReason({ oddOutput, stderr = [] }: Partial<TransportDiagnostics> = {}): string | null {
  const { lines = 0 } = oddOutput ?? {};
  if (lines > 0) return `it is still starting, and wrote ${counted(lines, 'line')} other than JSON-RPC`;
  return stderr.length > 0 ? 'it is still starting' : null;
}
