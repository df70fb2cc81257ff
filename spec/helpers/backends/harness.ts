// The harness for specs of instances and their clients: a fleet, a dispatcher, sessions, and clients without a session, over
// scripted backends that answer, fail or stay silent. Everything else is the production code; the clock is Date and the global
// timers, so that both can be simulated.

import { firstValueFrom, type Observable, type Subscription } from 'rxjs';
import { Dispatcher } from '../../../src/actors/calls/dispatcher.ts';
import { RetryBudget } from '../../../src/actors/calls/retry-budget.ts';
import { StatelessConversations } from '../../../src/actors/calls/stateless/stateless-conversations.ts';
import {
  type StatelessDeps,
  statelessExchange,
} from '../../../src/actors/calls/stateless/stateless-route.ts';
import { Fleet } from '../../../src/actors/fleet/fleet.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import type { TrustOf } from '../../../src/actors/instances/tool-trust.ts';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import { ClientSessions } from '../../../src/actors/sessions/client-sessions.ts';
import { DEFAULT_POLICY, type TemplatePolicy } from '../../../src/balancing/policy.ts';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { ExchangeOptions, ExchangeRequest, SourcedEvent } from '../../../src/domain/calls/exchange.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { type Delivered, GatewayError } from '../../../src/domain/errors/errors.ts';
import type {
  EventName,
  GatewayEvent,
  GatewayEvents,
  RequestOutcome,
} from '../../../src/domain/events/events.ts';
import type { DedicatedBounds, InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ListReader } from '../../../src/domain/lists/list-reader.ts';
import type { ClientProfile, ServerMessage } from '../../../src/domain/mcp/client.ts';
import type { Handshake, Tool } from '../../../src/domain/mcp/mcp.ts';
import { byteShares, memoryBounds } from '../../../src/domain/memory/held-bytes.ts';
import { UserShares } from '../../../src/domain/memory/user-shares.ts';
import { newLife } from '../../../src/domain/nodes/life.ts';
import { type Clock, spreadClock } from '../../../src/domain/time/clock.ts';
import type { Conversation, Transport } from '../../../src/transports/transport.ts';
import { settled, simulatedClock } from '../time/simulated-time.ts';
import { untimedScheduler } from '../time/turns.ts';
import { definition, modernProfile, PLAIN, READ, toolCall, WRITE } from './profiles.ts';
import { type ScriptedExchange, ScriptedTransport, scriptedValue } from './scripted-transport.ts';

/** How a backend handles any request but ping and tools/list. */
export type Script = (exchange: ScriptedExchange) => void;

/** Answers with `value` in a microtask, never inside the subscription. */
export const answers =
  (value: unknown = {}): Script =>
  (exchange) =>
    queueMicrotask(() => {
      if (exchange.isOpen) exchange.result(value);
    });

/** Fails synchronously, inside the subscription: the hardest case for failover to the next instance. */
export const fails =
  (delivered: Delivered, reason = 'it broke'): Script =>
  (exchange) =>
    exchange.fail(backendUnavailable(reason, { delivered }));

/** Does not answer until the spec does. */
export const silent: Script = () => {};

/** For `Harness.open`: a start that ends only when it is aborted. */
export const startsForEver: Harness['open'] = (_, signal) => calledOff(signal);

const AGAIN: Tool = { name: 'again', annotations: { idempotentHint: true } };
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** What one caller has received so far. */
export interface Caller {
  readonly answers: SourcedEvent[];
  readonly subscription: Subscription;
  /** Resolves with the instance that answered, or with the error. */
  readonly end: Promise<string | GatewayError>;
}

export interface BackendOptions {
  /** Default: it answers every request with its id. */
  readonly script?: Script;
  /** Null: the script answers tools/list. */
  readonly tools?: readonly Tool[] | null;
  readonly handshake?: Partial<Handshake>;
  /**
   * Its handshake data in a dedicated conversation of one client; null: it keeps none. Default: the same as in the shared
   * conversation, but null for a modern backend over HTTP.
   */
  readonly own?: Partial<Handshake> | null;
  /** With the transport stdio, dedicated conversations outlive the shared one. */
  readonly fields?: Partial<InstanceDefinition>;
  /** False: the script acknowledges subscriptions of the modern era. */
  readonly acknowledges?: boolean;
  /** Another node runs it. */
  readonly isElsewhere?: boolean;
}

/** The owner of a call without a session, and its instance. */
export interface StatelessCalling {
  readonly owner?: string;
  readonly profile?: ClientProfile;
  readonly instanceId?: string;
}

export interface HarnessOptions {
  readonly policy?: Partial<TemplatePolicy>;
  readonly own?: DedicatedBounds;
  readonly maxSessions?: number;
  readonly maxCallMs?: number;
  /** The number of tasks per turn of the event loop when many are due at once. Default: all. */
  readonly perTurn?: number;
  readonly alarm?: Clock['alarm'];
  /** Default: every definition of a tool is trusted. */
  readonly trustOf?: TrustOf;
}

/** The bounds of sessions where none are set. */
export const KEPT = { maxSessions: LIMITS.sessions, idleMs: LIMITS.sessionIdleMs };

/** The instances of template `t` and their clients. */
export class Harness {
  readonly events: GatewayEvent[] = [];
  readonly emit = (event: GatewayEvent): void => {
    this.events.push(event);
    this.onEvent(event);
  };
  /** Called with each event while it is emitted. */
  onEvent: (event: GatewayEvent) => unknown = () => {};
  readonly fleet: Fleet;
  readonly dispatcher: Dispatcher;
  readonly budget: RetryBudget;
  readonly sessions: ClientSessions;
  readonly declarations = byteShares(memoryBounds(0).declarations);
  readonly statelessConversations: StatelessConversations;
  readonly stateless: StatelessDeps;
  /** The transports of each instance by id, oldest first. */
  readonly transports = new Map<string, ScriptedTransport[]>();
  readonly #options = new Map<string, BackendOptions>();
  /** How many timers the sessions have set. */
  sessionAlarms = 0;
  isAccepting = true;
  /** See SessionDeps. */
  untilLifeKnown: () => Promise<void> | undefined = () => undefined;
  /** Opens a backend; a spec may replace it. */
  open: (definition: InstanceDefinition, signal: AbortSignal) => Promise<Transport> = async ({ id }) =>
    this.#open(id);
  /** Makes back-offs exact. If it throws, the actor that calls it breaks. */
  random = () => 0.5;
  /** The clock of the instances. If it throws, they break. */
  now = () => Date.now();

  constructor({
    policy,
    own,
    maxSessions = KEPT.maxSessions,
    maxCallMs,
    perTurn = Number.POSITIVE_INFINITY,
    trustOf = () => undefined,
    ...timing
  }: HarnessOptions = {}) {
    const scheduler = untimedScheduler(perTurn);
    const clock = spreadClock(scheduler, simulatedClock);
    const { alarm = clock.alarm } = timing;
    const now = () => this.now();
    const deps = {
      clock: { ...clock, now, alarm },
      emit: this.emit,
      scheduler,
      listReader: new ListReader({ scheduler }),
      isAccepting: () => this.isAccepting,
      trace: () => undefined,
      trustOf,
      toolLists: new UserShares(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY),
    };
    this.fleet = new Fleet({
      ...deps,
      scheduler,
      random: () => this.random(),
      dedicatedBounds: own,
      openTransport: (definition) => (signal) => this.open(definition, signal),
      openElsewhere: (definition) =>
        this.#options.get(definition.id)?.isElsewhere ? (signal) => this.open(definition, signal) : undefined,
    });
    const statelessConversations = new StatelessConversations(this.declarations, scheduler);
    this.statelessConversations = statelessConversations;
    const { fleet } = this;
    this.budget = new RetryBudget(now);
    this.dispatcher = new Dispatcher({ ...deps, fleet, budget: this.budget, maxCallMs });
    const { dispatcher, budget } = this;
    this.sessions = new ClientSessions({
      ...{
        ...deps,
        fleet,
        dispatcher,
        budget,
        ...{ maxSessions, idleMs: KEPT.idleMs, life: newLife() },
        share: own?.share,
        declarations: this.declarations,
      },
      untilLifeKnown: () => this.untilLifeKnown(),
      clock: {
        ...deps.clock,
        alarm: (waitMs, ring) => {
          this.sessionAlarms += 1;
          return alarm(waitMs, ring);
        },
      },
    });
    this.stateless = { ...deps, fleet, dispatcher, conversations: statelessConversations };
    this.setPolicy(policy);
  }

  setPolicy(policy: Partial<TemplatePolicy> = {}): void {
    this.fleet.templates.setPolicy('t', { ...DEFAULT_POLICY, ...policy });
  }

  /** Starts an instance of template `t` with this behaviour; resolves when it is healthy and its tools are known. */
  async add(id: string, how: Script | BackendOptions = {}): Promise<InstanceRef> {
    const options = { script: answers(id), ...(typeof how === 'function' ? { script: how } : how) };
    this.#options.set(id, options);
    const wanted = definition(id, options.fields);
    if (options.isElsewhere) this.fleet.addElsewhere(wanted);
    else this.fleet.add(wanted);
    const ref = this.fleet.templates.group('t').ref(id);
    await firstValueFrom(ref.until$(() => ref.state === 'healthy'));
    await settled();
    return ref;
  }

  /** Replaces the script of a backend. */
  rewrite(id: string, script: Script): void {
    this.#options.set(id, { ...this.#options.get(id), script });
  }

  /** The shared conversation of the instance. */
  backend(id: string): ScriptedTransport {
    const backend = this.transports.get(id)?.at(-1);
    if (backend === undefined) throw new Error(`no backend "${id}" was opened`);
    return backend;
  }

  /** How many requests of a method a backend received. */
  asked(id: string, method = 'tools/call'): number {
    return this.backend(id).asked.filter((asked) => asked === method).length;
  }

  call(request: ExchangeRequest | string, options?: ExchangeOptions): Caller {
    const wanted = typeof request === 'string' ? toolCall(request) : request;
    return listen(this.dispatcher.exchange('t', wanted, options));
  }

  /** The dedicated conversations with the current process of an instance, including ended ones. */
  conversations(id: string): ScriptedTransport[] {
    return this.backend(id).conversations;
  }

  /**
   * Blocks the opening of dedicated conversations with an instance until `thaw` is called. Returns the signals of the openings.
   */
  freeze(id: string) {
    const backend = this.backend(id);
    const open = backend.openConversation.bind(backend);
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    const signals: AbortSignal[] = [];
    backend.openConversation = async (opening) => {
      const { signal } = opening;
      signals.push(signal);
      await Promise.race([thawed, calledOff(signal)]);
      return open(opening);
    };
    return { signals, thaw };
  }

  /** How many resources are subscribed in the shared conversations of all running processes. */
  get subscribed(): number {
    const running = [...this.transports.values()].flat().filter(({ isClosed }) => !isClosed);
    const asked = running.flatMap((transport) => transport.asked);
    const count = (method: string) => asked.filter((each) => each === method).length;
    return count('resources/subscribe') - count('resources/unsubscribe');
  }

  openSession(profile: ClientProfile = PLAIN, ownerId = 'somebody'): Promise<ClientSession> {
    return this.sessions.open('t', ownerId, profile);
  }

  /** Opens a session on `a`, then adds `b`. */
  async openOnA(a: BackendOptions, b: BackendOptions = {}, profile = PLAIN): Promise<ClientSession> {
    await this.add('a', a);
    const session = await this.openSession(profile);
    await this.add('b', b);
    return session;
  }

  /** A call of a client without a session. */
  callStateless(
    request: ExchangeRequest,
    { owner = 'ann', profile = modernProfile(), ...options }: StatelessCalling = {},
  ): Caller {
    const client = { owner: { id: owner }, profile, ...options };
    return listen(statelessExchange(this.stateless, 't', request, client));
  }

  /** Starts this many calls to an instance that are never answered, by default up to its limit. */
  fill(id: string, count: number = LIMITS.inFlightPerInstance): Caller[] {
    const patient = { instanceId: id, timeoutMs: 60_000 };
    return Array.from({ length: count }, () => this.call('write', patient));
  }

  /** The events of one type. */
  eventsOf<N extends EventName>(name: N): Extract<GatewayEvent, { type: N }>[] {
    return this.events.filter((event): event is Extract<GatewayEvent, { type: N }> => event.type === name);
  }

  /** The ends of calls with that outcome. */
  callsThat(outcome: RequestOutcome): GatewayEvents['call.finished'][] {
    return this.eventsOf('call.finished').filter((event) => event.outcome === outcome);
  }

  /** The ends of all attempts, in their order. */
  attempts(): GatewayEvents['attempt.finished' | 'call.finished'][] {
    return this.events.flatMap((event) =>
      event.type === 'attempt.finished' || (event.type === 'call.finished' && event.instanceId)
        ? [event]
        : [],
    );
  }

  ref(id: string): InstanceRef {
    return this.fleet.templates.group('t').ref(id);
  }

  async close(): Promise<void> {
    await Promise.all([this.sessions.closeAll(0), this.statelessConversations.close()]);
    await this.fleet.close(0);
  }

  #open(id: string): ScriptedTransport {
    const { handshake, fields, own } = this.#options.get(id) ?? {};
    const transport = new ScriptedTransport({ capabilities: { tools: {} }, ...handshake });
    const isModernOnly = handshake?.era === 'modern' && fields?.endpoint !== undefined;
    transport.ownHandshake = own === undefined ? (isModernOnly ? null : {}) : own;
    transport.conversationsAreIndependent = fields?.transport === 'stdio';
    transport.onExchange = (exchange) => {
      const { method } = exchange.request;
      const { tools = [WRITE, READ, AGAIN], script, acknowledges = true } = this.#options.get(id) ?? {};
      if (method === 'tools/list' && tools !== null) exchange.result({ tools });
      else if (method === 'ping' || method === 'server/discover') exchange.result();
      else if (acknowledges && method === 'subscriptions/listen')
        queueMicrotask(() => exchange.notify(ACKNOWLEDGED));
      else script?.(exchange);
    };
    this.transports.set(id, [...(this.transports.get(id) ?? []), transport]);
    return transport;
  }
}

function calledOff(signal: AbortSignal): Promise<never> {
  const reason = backendUnavailable('its start was cancelled', { delivered: 'no' });
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(reason)));
}

/** Subscribes and records what is received. */
export function listen(events$: Observable<SourcedEvent>): Caller {
  const { promise: end, resolve } = Promise.withResolvers<string | GatewayError>();
  const answers: SourcedEvent[] = [];
  const subscription = events$.subscribe({
    next: (answer) => answers.push(answer),
    error: (error) => resolve(error instanceof GatewayError ? error : `threw ${String(error)}`),
    complete: () => resolve(answers.at(-1)?.instanceId ?? 'nobody'),
  });
  return { answers, subscription, end };
}

/** The fields of an error that specs compare. */
export function errorView(end: string | GatewayError): unknown {
  if (!(end instanceof GatewayError)) return end;
  const { retryAfterSeconds } = end.facts;
  return retryAfterSeconds === undefined
    ? { code: end.code, delivered: end.delivered }
    : { code: end.code, delivered: end.delivered, retryAfterSeconds };
}

/** The same of an error that came before the backend had the call. */
export function undelivered(code: string, retryAfterSeconds = 1): unknown {
  return { code, delivered: 'no', retryAfterSeconds };
}

/** Opens a dedicated conversation for one client, as a session does. */
export async function openOwn(
  ref: Pick<InstanceRef, 'use'>,
  profile = PLAIN,
): Promise<Conversation | undefined> {
  return ref.use({ ownerId: ANONYMOUS.id, profile }).conversation.opening;
}

/** Sends a request in a session: a call of the named tool, or any request. */
export function ask(session: ClientSession, request: ExchangeRequest | string): Caller {
  return listen(session.exchange(typeof request === 'string' ? toolCall(request) : request));
}

/** The result that a caller received, or the code of a JSON-RPC error. Throws other errors. */
export async function resultOf(caller: Caller): Promise<unknown> {
  const end = await caller.end;
  if (typeof end !== 'string') throw end;
  const event = caller.answers.at(-1)?.event;
  if (event?.kind === 'error') return event.error.code;
  return event?.kind === 'result' ? scriptedValue(event.result) : undefined;
}

/** The code of the error that ended a call; otherwise what ended it. */
export function codeOf(end: string | Error | undefined): string {
  return end instanceof Error && 'code' in end ? String(end.code) : String(end);
}

/** Subscribes to the messages of a session and records them. */
export function listenTo(session: ClientSession) {
  const messages: ServerMessage[] = [];
  const subscription = session.messages$.subscribe((message) => messages.push(message));
  return { messages, subscription };
}
