// The harness for specs of what happens between instances and their clients: a fleet, a dispatcher, sessions, and clients without a
// session, over scripted backends that answer, fail or keep silent as the spec says. Everything else is the real thing; the clock is
// Date and the global timers, so that both can be simulated.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { filter, firstValueFrom, type Observable, type Subscription } from 'rxjs';
import { Dispatcher } from '../../src/actors/calls/dispatcher.ts';
import { RetryBudget } from '../../src/actors/calls/retry.ts';
import type { ClientSession } from '../../src/actors/client-sessions/client-session.ts';
import { ClientSessions } from '../../src/actors/client-sessions/client-sessions.ts';
import { Fleet, type FleetOptions } from '../../src/actors/fleet.ts';
import type { InstanceRef } from '../../src/actors/instances/instance-ref.ts';
import { StatelessClients } from '../../src/actors/stateless/stateless-clients.ts';
import { StatelessPool } from '../../src/actors/stateless/stateless-pool.ts';
import { ANONYMOUS } from '../../src/domain/account.ts';
import type { ClientProfile, ServerMessage } from '../../src/domain/client.ts';
import { type Alarm, alarmOf, clockOf } from '../../src/domain/clock.ts';
import { backendUnavailable } from '../../src/domain/error-catalogue.ts';
import { type Delivered, GatewayError } from '../../src/domain/errors.ts';
import type { EventName, GatewayEvent } from '../../src/domain/events.ts';
import type { Answer, ExchangeOptions, ExchangeRequest } from '../../src/domain/exchange.ts';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { type DedicatedBounds, LIMITS } from '../../src/domain/limits.ts';
import { META, type Peer, type Tool } from '../../src/domain/mcp.ts';
import { type BalancerPolicy, DEFAULT_POLICY } from '../../src/domain/policy.ts';
import type { Upstream } from '../../src/transports/transport.ts';
import { instanceDefinition } from '../conformance/transport.ts';
import { type ScriptedExchange, ScriptedTransport } from './scripted-transport.ts';
import { steadyPace } from './turns.ts';

/** What a backend does with a request that is no ping and no list of tools. */
export type Script = (exchange: ScriptedExchange) => void;

/** Answers with `value` at the next opportunity, never inside the subscription. */
export const answers =
  (value: unknown = {}): Script =>
  (exchange) =>
    queueMicrotask(() => {
      if (exchange.isOpen) exchange.result(value);
    });

/** Fails at once, inside the subscription: the hardest way for whoever goes on to the next instance in there. */
export const fails =
  (delivered: Delivered, reason = 'it broke'): Script =>
  (exchange) =>
    exchange.fail(backendUnavailable(reason, { delivered }));

/** Says nothing until the spec does. */
export const silent: Script = () => {};

/** For `Harness.open`: starts for ever, until it is called off. */
export const startsForEver: FleetOptions['open'] = (_, signal) => calledOff(signal);

export const WRITE: Tool = { name: 'write' };
export const READ: Tool = { name: 'read', annotations: { readOnlyHint: true } };
const AGAIN: Tool = { name: 'again', annotations: { idempotentHint: true } };

/** What a legacy client says of itself that cannot be asked anything. */
export const PLAIN: ClientProfile = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'plain', version: '1' },
};
/** One whose backend may ask it something. */
export const ASKABLE: ClientProfile = { ...PLAIN, capabilities: { sampling: {} } };

/** A legacy server with everything. */
export const FULL: Partial<Peer> = {
  capabilities: { tools: {}, logging: {}, resources: { subscribe: true, listChanged: true } },
};
export const MODERN: Partial<Peer> = { era: 'modern', protocolVersion: '2026-07-28' };
export const FULL_MODERN: Partial<Peer> = { ...FULL, ...MODERN };
export const HTTP: Partial<InstanceDefinition> = { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp' };
export const STDIO: Partial<InstanceDefinition> = { transport: 'stdio', command: 'serve' };
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** The request that calls a tool. */
export function toolCall(tool: string): ExchangeRequest {
  return { method: 'tools/call', params: { name: tool, arguments: {} } };
}

/** What one caller has heard so far. */
export interface Caller {
  readonly answers: Answer[];
  readonly subscription: Subscription;
  /** Resolves with how it ended: the instance that answered, or the error. */
  readonly end: Promise<string | GatewayError>;
}

export interface BackendOptions {
  /** Default: it answers everything with its id. */
  readonly script?: Script;
  /** Null: the script lists them. */
  readonly tools?: readonly Tool[] | null;
  readonly peer?: Partial<Peer>;
  /**
   * What it says of itself in a conversation of one client; null: it keeps none. Default: the same as in its own, but
   * nothing where that is modern and over HTTP.
   */
  readonly own?: Partial<Peer> | null;
  /** With the transport stdio its conversations of single clients outlive it. */
  readonly fields?: Partial<InstanceDefinition>;
}

/** Who calls without a session, and which instance is meant. */
export interface StatelessCalling {
  readonly owner?: string;
  readonly profile?: ClientProfile;
  readonly instanceId?: string;
}

export interface HarnessOptions {
  readonly policy?: Partial<BalancerPolicy>;
  readonly own?: DedicatedBounds;
  readonly maxSessions?: number;
  /** What is done in one turn of the event loop of what comes due together. Default: everything. */
  readonly perTurn?: number;
  readonly alarm?: Alarm;
}

/** The instances of template `t` and their clients. */
export class Harness {
  readonly events: GatewayEvent[] = [];
  readonly emit = (event: GatewayEvent): void => {
    this.events.push(event);
    this.onEvent(event);
  };
  /** Hears each event inside of its emission. */
  onEvent: (event: GatewayEvent) => unknown = () => {};
  readonly fleet: Fleet;
  readonly dispatcher: Dispatcher;
  readonly sessions: ClientSessions;
  readonly pool = new StatelessPool();
  readonly stateless: StatelessClients;
  /** The transports of each instance, by id, latest last. */
  readonly transports = new Map<string, ScriptedTransport[]>();
  readonly #options = new Map<string, BackendOptions>();
  /** How many timers the sessions have set. */
  sessionAlarms = 0;
  isAccepting = true;
  /** How a backend is opened; a spec may put its own in place. */
  open: FleetOptions['open'] = async ({ id }) => this.#open(id);
  /** Exact back-offs. One that throws breaks the actor that asks. */
  random = () => 0.5;
  /** The clock of the instances. One that throws breaks them, too. */
  now = () => Date.now();

  constructor({
    policy,
    own,
    maxSessions,
    perTurn = Number.POSITIVE_INFINITY,
    ...timing
  }: HarnessOptions = {}) {
    const scheduler = steadyPace(perTurn);
    const { alarm = alarmOf(scheduler) } = timing;
    const now = () => this.now();
    const deps = { emit: this.emit, now, alarm, isAccepting: () => this.isAccepting };
    this.fleet = new Fleet({
      ...deps,
      clock: clockOf(alarm),
      random: () => this.random(),
      dedicatedBounds: own,
      open: (one, signal) => this.open(one, signal),
    });
    const { fleet, pool } = this;
    this.dispatcher = new Dispatcher({ ...deps, fleet, budget: new RetryBudget(now) });
    const { dispatcher } = this;
    this.sessions = new ClientSessions({
      ...{ ...deps, fleet, dispatcher, scheduler, maxSessions, share: own?.share },
      alarm: (waitMs, ring) => {
        this.sessionAlarms += 1;
        return alarm(waitMs, ring);
      },
    });
    this.stateless = new StatelessClients({ ...deps, fleet, dispatcher, pool });
    this.setPolicy(policy);
  }

  setPolicy(policy: Partial<BalancerPolicy> = {}): void {
    this.fleet.setPolicy('t', { ...DEFAULT_POLICY, ...policy });
  }

  /** Starts an instance of template `t` with this behaviour; resolves when it is healthy and its tools are known. */
  async add(id: string, how: Script | BackendOptions = {}): Promise<InstanceRef> {
    const options = { script: answers(id), ...(typeof how === 'function' ? { script: how } : how) };
    this.#options.set(id, options);
    const ref = this.fleet.add(definition(id, options.fields));
    await firstValueFrom(ref.state$.pipe(filter((state) => state === 'healthy')));
    await settled();
    return ref;
  }

  /** Changes what a backend does from now on. */
  rewrite(id: string, script: Script): void {
    this.#options.set(id, { ...this.#options.get(id), script });
  }

  /** The conversation of the instance itself. */
  backend(id: string): ScriptedTransport {
    const backend = this.transports.get(id)?.at(-1);
    if (backend === undefined) throw new Error(`no backend "${id}" was opened`);
    return backend;
  }

  /** How often a backend was asked for a method. */
  asked(id: string, method = 'tools/call'): number {
    return this.backend(id).asked.filter((asked) => asked === method).length;
  }

  call(request: ExchangeRequest | string, options?: ExchangeOptions): Caller {
    const wanted = typeof request === 'string' ? toolCall(request) : request;
    return listen(this.dispatcher.exchange('t', wanted, options));
  }

  /** The conversations of single clients with the present process of an instance, those that ended included. */
  upstreams(id: string): ScriptedTransport[] {
    return this.backend(id).upstreams;
  }

  /**
   * From now on no conversation is opened with an instance before `thaw` was called. The signals of the openings, as they come.
   */
  freeze(id: string) {
    const backend = this.backend(id);
    const open = backend.openUpstream.bind(backend);
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    const signals: AbortSignal[] = [];
    backend.openUpstream = async (profile, signal) => {
      signals.push(signal);
      await Promise.race([thawed, calledOff(signal)]);
      return open(profile, signal);
    };
    return { signals, thaw };
  }

  /** How many resources the running processes of all instances are subscribed to, in the conversations that clients share. */
  get subscribed(): number {
    const running = [...this.transports.values()].flat().filter(({ isClosed }) => !isClosed);
    const asked = running.flatMap((transport) => transport.asked);
    const count = (method: string) => asked.filter((each) => each === method).length;
    return count('resources/subscribe') - count('resources/unsubscribe');
  }

  openSession(profile: ClientProfile = PLAIN, ownerId = 'somebody'): Promise<ClientSession> {
    return this.sessions.open('t', ownerId, profile);
  }

  /** A session on `a`, with `b` beside it from then on. */
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
    return listen(this.stateless.exchange('t', request, { owner: { id: owner }, profile, ...options }));
  }

  /** Calls that are never answered take so many places of an instance, by default all. */
  fill(id: string, places: number = LIMITS.inFlightPerInstance): Caller[] {
    const patient = { instanceId: id, timeoutMs: 60_000 };
    return Array.from({ length: places }, () => this.call('write', patient));
  }

  /** The facts of one kind. */
  told<N extends EventName>(name: N): Extract<GatewayEvent, { type: N }>[] {
    return this.events.filter((event): event is Extract<GatewayEvent, { type: N }> => event.type === name);
  }

  ref(id: string): InstanceRef {
    return this.fleet.get('t', id);
  }

  async close(): Promise<void> {
    await Promise.all([this.sessions.closeAll(0), this.pool.close()]);
    await this.fleet.close(0);
  }

  #open(id: string): ScriptedTransport {
    const { peer, fields, own } = this.#options.get(id) ?? {};
    const transport = new ScriptedTransport({ capabilities: { tools: {} }, ...peer });
    const isModernOnly = peer?.era === 'modern' && fields?.endpoint !== undefined;
    transport.ownPeer = own === undefined ? (isModernOnly ? null : {}) : own;
    transport.upstreamsAreIndependent = fields?.transport === 'stdio';
    transport.onExchange = (exchange) => {
      const { method } = exchange.request;
      const { tools = [WRITE, READ, AGAIN], script } = this.#options.get(id) ?? {};
      if (method === 'tools/list' && tools !== null) exchange.result({ tools });
      else if (method === 'ping' || method === 'server/discover') exchange.result();
      else if (method === 'subscriptions/listen') queueMicrotask(() => exchange.notify(ACKNOWLEDGED));
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

/** Subscribes and writes down what is heard. */
export function listen(answers$: Observable<Answer>): Caller {
  const { promise: end, resolve } = Promise.withResolvers<string | GatewayError>();
  const heard: Answer[] = [];
  const subscription = answers$.subscribe({
    next: (answer) => heard.push(answer),
    error: (error) => resolve(error instanceof GatewayError ? error : `threw ${String(error)}`),
    complete: () => resolve(heard.at(-1)?.instanceId ?? 'nobody'),
  });
  return { answers: heard, subscription, end };
}

/** What callers and specs look at in an error. */
export function told(end: string | GatewayError): unknown {
  if (!(end instanceof GatewayError)) return end;
  const { retryAfterSeconds } = end.facts;
  return retryAfterSeconds === undefined
    ? { code: end.code, delivered: end.delivered }
    : { code: end.code, delivered: end.delivered, retryAfterSeconds };
}

/** The definition of an in-process instance of template `t`. */
export function definition(id: string, fields: Partial<InstanceDefinition> = {}): InstanceDefinition {
  return instanceDefinition({ id, serverId: id, template: 't', transport: 'in-process', ...fields });
}

/** Opens a conversation on behalf of one client alone, as a session does. */
export async function openOwn(
  ref: Pick<InstanceRef, 'lease'>,
  profile = PLAIN,
): Promise<Upstream | undefined> {
  return ref.lease({ owner: { id: ANONYMOUS.id }, profile }).conversation.opening;
}

/** Everything that can settle has settled, however many promises it goes through. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 4; turns += 1) await turn();
}

/** Lets ms of simulated time pass, and what follows. */
export async function pass(ms: number): Promise<void> {
  await settled();
  mock.timers.tick(ms);
  await settled();
}

/** A client of the modern era. */
export function modernProfile(capabilities: JsonObject = {}): ClientProfile {
  return { protocolVersion: '2026-07-28', capabilities, clientInfo: { name: 'client', version: '1' } };
}

/** A call with the `_meta` of the modern era, and more of it. */
export function modernCall(meta: JsonObject = {}): ExchangeRequest {
  const { params } = toolCall('write');
  const envelope = {
    [META.protocolVersion]: '2026-07-28',
    [META.clientCapabilities]: {},
    [META.clientInfo]: { name: 'client', version: '1' },
  };
  return { method: 'tools/call', params: { ...params, _meta: { ...envelope, ...meta } } };
}

/** One request of a session, by the name of a tool or whole. */
export function ask(session: ClientSession, request: ExchangeRequest | string): Caller {
  return listen(session.exchange(typeof request === 'string' ? toolCall(request) : request));
}

/** The value of the result that a caller got. */
export async function resultOf(caller: Caller): Promise<unknown> {
  const end = await caller.end;
  if (typeof end !== 'string') throw end;
  const event = caller.answers.at(-1)?.event;
  if (event?.kind === 'error') return event.error.code;
  return event?.kind === 'result' ? event.result.value : undefined;
}

/** The code of the error with which a call ended; otherwise what ended it. */
export function codeOf(end: string | Error | undefined): string {
  return end instanceof Error && 'code' in end ? String(end.code) : String(end);
}

/** Listens to a session and writes down what it hears. */
export function listenTo(session: ClientSession) {
  const messages: ServerMessage[] = [];
  const subscription = session.messages$.subscribe((message) => messages.push(message));
  return { messages, subscription };
}
