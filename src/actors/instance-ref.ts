// The typed handle of one instance: the only way to it from outside the actors. Reads its snapshot, sends it commands.
// It is also what strategies choose among: reading a number costs nothing, because the snapshot is at hand.

import {
  catchError,
  defer,
  distinctUntilChanged,
  endWith,
  from,
  map,
  Observable,
  of,
  type Subscription,
  shareReplay,
  startWith,
  takeWhile,
} from 'rxjs';
import type { Candidate } from '../balancing/strategy.ts';
import { backendUnavailable, type GatewayError } from '../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import { reasonOf } from '../domain/failures.ts';
import type { InstanceDefinition, InstanceSnapshot, InstanceState } from '../domain/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Era } from '../domain/mcp.ts';
import type { BalancerPolicy } from '../domain/policy.ts';
import type { TransportFacts } from '../transports/transport.ts';
import type { InstanceActor, InstanceMachineSnapshot } from './instance.machine.ts';
import type { InstanceEmission } from './instance-setup.ts';
import { type Ending, Reply } from './reply.ts';
import type { SessionLink } from './session.ts';
import type { ToolCache } from './tool-cache.ts';

export class InstanceRef implements Candidate {
  readonly id: string;
  readonly serverId: string;
  readonly template: string;
  readonly capacity: number = LIMITS.inFlightPerInstance;
  /** Its state, replayed and then whenever it changes; ends with `stopped`. Never errors. */
  readonly state$: Observable<InstanceState>;
  readonly #actor: InstanceActor;
  readonly #now: () => number;
  /** Counted here, too: the actor counts a moment later when it is called from within one of its own transitions. */
  #inFlight = 0;

  constructor(actor: InstanceActor, now: () => number) {
    const { definition } = actor.getSnapshot().context;
    this.id = definition.id;
    this.serverId = definition.serverId;
    this.template = definition.template;
    this.#actor = actor;
    this.#now = now;
    this.state$ = defer(() => from(actor).pipe(startWith(actor.getSnapshot()))).pipe(
      map(stateOf),
      distinctUntilChanged(),
      catchError(() => of('stopped' as const)),
      endWith('stopped' as const),
      takeWhile((state) => state !== 'stopped', true),
      shareReplay({ bufferSize: 1, refCount: true }),
    );
  }

  get definition(): InstanceDefinition {
    return this.#actor.getSnapshot().context.definition;
  }
  get state(): InstanceState {
    return stateOf(this.#actor.getSnapshot());
  }
  /** Why it is not healthy; null while it is. */
  get reason(): string | null {
    return whyNot(this.#actor.getSnapshot());
  }
  /** How its backend is spoken to; null while it has no session. */
  get era(): Era | null {
    return this.#actor.getSnapshot().context.link?.peer.era ?? null;
  }
  get weight(): number {
    return this.definition.weight;
  }
  get inFlight(): number {
    return this.#inFlight;
  }
  get successRate(): number {
    return this.#actor.getSnapshot().context.vitals.successRate;
  }
  get latencyMs(): number | undefined {
    return this.#actor.getSnapshot().context.vitals.latencyMs;
  }
  /** What it said it can do; undefined while it has no session. */
  get tools(): ToolCache | undefined {
    return this.#actor.getSnapshot().context.link?.tools;
  }

  /**
   * Cold: subscribing counts the exchange and hands it to the session in the same synchronous block; the teardown
   * counts it down, whether it was answered, failed or was cancelled. `overdue` is asked in the teardown for the error
   * with which the gateway itself ends an exchange; without one, an unanswered exchange was cancelled by its caller.
   */
  exchange(
    request: ExchangeRequest,
    finished?: (ending: Ending) => void,
    overdue?: () => GatewayError | undefined,
  ): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      if (this.state === 'stopped') {
        subscriber.error(stopped());
        return;
      }
      const reply = new Reply(subscriber, this.#now);
      this.#inFlight += 1;
      this.#actor.send({ type: 'request', request, reply });
      if (!reply.isTaken) subscriber.add(this.#refuseIfItStops(reply));
      return () => {
        const ending = reply.end(overdue?.());
        this.#inFlight -= 1;
        this.#actor.send({ type: 'released', ending });
        this.#doubt(ending);
        finished?.(ending);
      };
    });
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
  /** Takes it out of the pool at once; calls in flight have `withinMs` to finish, then the session is closed. */
  leave(withinMs: number): void {
    this.#actor.send({ type: 'leave', withinMs });
  }
  /** Replaces weight and metadata without touching the session. */
  change(definition: InstanceDefinition): void {
    this.#actor.send({ type: 'change', definition });
  }
  govern(policy: BalancerPolicy): void {
    this.#actor.send({ type: 'govern', policy });
  }

  /** Calls `listener` for facts that are no state. Returns what ends it. */
  onEmission(listener: (emission: InstanceEmission) => void): () => void {
    const subscription = this.#actor.on('*', listener);
    return () => subscription.unsubscribe();
  }

  /** The one status source. `score` is filled in by who knows the pool. */
  snapshot(score: number): InstanceSnapshot {
    const actor = this.#actor.getSnapshot();
    const { definition, link, vitals } = actor.context;
    const state = stateOf(actor);
    const facts = link === undefined ? undefined : factsOf(link);
    return {
      id: this.id,
      serverId: this.serverId,
      template: this.template,
      state,
      healthy: state === 'healthy',
      inFlight: this.#inFlight,
      weight: definition.weight,
      score,
      latencyMs: vitals.latencyMs ?? null,
      consecutiveFailures: vitals.failures,
      lastCheck: vitals.checkedAtMs === undefined ? null : isoTime(vitals.checkedAtMs),
      reason: whyNot(actor),
      restarts: Math.max(0, vitals.sessions - 1),
      requests: vitals.requests,
      errors: vitals.errors,
      era: link?.peer.era ?? null,
      pid: facts?.pid ?? null,
      stderr: facts?.stderr ?? actor.context.stderr,
      strayMessages: facts?.strayMessages ?? 0,
    };
  }

  /** Sent while the actor is at work a request waits in its mailbox, which is lost with the actor. */
  #refuseIfItStops(reply: Reply): Subscription {
    return this.state$.subscribe({ complete: () => reply.isTaken || reply.error(stopped()) });
  }

  /** Calls never flip health, but what they met may: a refused connection does at once, other doubts ask for a probe. */
  #doubt({ error }: Ending): void {
    if (error === undefined) return;
    if (error.facts.unreachable) this.#actor.send({ type: 'unreachable', reason: reasonOf(error) });
    else if (error.facts.suspicious) this.#actor.send({ type: 'suspected' });
  }
}

function stateOf(snapshot: InstanceMachineSnapshot): InstanceState {
  if (snapshot.status !== 'active') return 'stopped';
  const { connection, duty } = snapshot.value;
  if (duty !== 'serving') return 'draining';
  if (typeof connection === 'string') return connection === 'ended' ? 'stopped' : 'unhealthy';
  const { connected } = connection;
  if (connected === 'connecting') return 'starting';
  return typeof connected === 'object' && 'healthy' in connected ? 'healthy' : 'unhealthy';
}

/** One failed probe is a reason that does not count yet. */
function whyNot(snapshot: InstanceMachineSnapshot): string | null {
  return stateOf(snapshot) === 'healthy' ? null : snapshot.context.reason;
}

/** Transports promise facts; one that breaks the promise must not make the instance invisible. */
function factsOf(link: SessionLink): TransportFacts | undefined {
  try {
    return link.facts();
  } catch {
    return undefined; // what it was to tell is shown as if there were no session
  }
}

function stopped(): GatewayError {
  return backendUnavailable('it was stopped', { delivered: 'no' });
}

/** Wall-clock time of a monotonic one. */
function isoTime(monotonicMs: number): string {
  return new Date(performance.timeOrigin + monotonicMs).toISOString();
}
