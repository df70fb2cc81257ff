// A harness for specs of what happens between instances: a fleet and a dispatcher over scripted backends that answer, fail
// or keep silent as the spec says. Everything else is the real thing; the clock is Date, so that it can be simulated.

import { setImmediate as turn } from 'node:timers/promises';
import { filter, firstValueFrom, type Observable, type Subscription } from 'rxjs';
import { Dispatcher } from '../../src/actors/calls/dispatcher.ts';
import { RetryBudget } from '../../src/actors/calls/retry.ts';
import { Fleet, type FleetOptions } from '../../src/actors/fleet.ts';
import type { InstanceRef } from '../../src/actors/instances/instance-ref.ts';
import { clockOf } from '../../src/domain/clock.ts';
import { backendUnavailable } from '../../src/domain/error-catalogue.ts';
import { type Delivered, GatewayError } from '../../src/domain/errors.ts';
import type { EventName, GatewayEvent } from '../../src/domain/events.ts';
import type { Answer, ExchangeOptions, ExchangeRequest } from '../../src/domain/exchange.ts';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import type { DedicatedBounds } from '../../src/domain/limits.ts';
import type { Peer, Tool } from '../../src/domain/mcp.ts';
import { type BalancerPolicy, DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { instanceDefinition } from '../conformance/transport.ts';
import { type ScriptedExchange, ScriptedTransport } from './scripted-transport.ts';

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
export const startsForEver: FleetOptions['open'] = (_, signal) =>
  new Promise((_, reject) => {
    const callOff = () => reject(backendUnavailable('its start was cancelled', { delivered: 'no' }));
    signal.addEventListener('abort', callOff);
  });

export const WRITE: Tool = { name: 'write' };
export const READ: Tool = { name: 'read', annotations: { readOnlyHint: true } };
const AGAIN: Tool = { name: 'again', annotations: { idempotentHint: true } };

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
  /** Null: the script lists them. */
  readonly tools?: readonly Tool[] | null;
  readonly peer?: Partial<Peer>;
  /** What it says of itself in a conversation of one client; null: it keeps none. Default: the same. */
  readonly own?: Partial<Peer> | null;
  /** Its conversations of single clients outlive it. */
  readonly isIndependent?: boolean;
  readonly fields?: Partial<InstanceDefinition>;
}

/** The global timer at the time of the call: specs put simulated ones in its place. */
export function globalAlarm(waitMs: number, ring: () => void): () => void {
  const timer = setTimeout(ring, waitMs);
  return () => clearTimeout(timer);
}

export class Harness {
  readonly events: GatewayEvent[] = [];
  readonly emit = (event: GatewayEvent): void => {
    this.events.push(event);
  };
  readonly fleet: Fleet;
  readonly dispatcher: Dispatcher;
  /** The transports of each instance, by id, latest last. */
  readonly transports = new Map<string, ScriptedTransport[]>();
  readonly #scripts = new Map<string, Script>();
  readonly #tools = new Map<string, readonly Tool[] | null>();
  readonly #options = new Map<string, BackendOptions>();
  isAccepting = true;
  /** How a backend is opened; a spec may put its own in place. */
  open: FleetOptions['open'] = async ({ id }) => this.#open(id);
  /** Exact back-offs. One that throws breaks the actor that asks. */
  random = () => 0.5;
  /** The clock of the instances. One that throws breaks them, too. */
  now = () => Date.now();

  constructor(policy: Partial<BalancerPolicy> = {}, own?: DedicatedBounds, alarm = globalAlarm) {
    const now = () => this.now();
    const { emit } = this;
    this.fleet = new Fleet({
      alarm,
      clock: clockOf(alarm),
      now,
      random: () => this.random(),
      emit,
      dedicatedBounds: own,
      open: (one, signal) => this.open(one, signal),
    });
    const isAccepting = () => this.isAccepting;
    const budget = new RetryBudget(now);
    this.dispatcher = new Dispatcher({ fleet: this.fleet, budget, now, alarm, emit, isAccepting });
    this.fleet.setPolicy('t', { ...DEFAULT_POLICY, ...policy });
  }

  /** Starts an instance of template `t` with this behaviour; resolves when it is healthy and its tools are known. */
  async add(id: string, script: Script, options: BackendOptions = {}) {
    const { tools = [WRITE, READ, AGAIN], fields } = options;
    this.#scripts.set(id, script);
    this.#options.set(id, options);
    this.#tools.set(id, tools);
    const ref = this.fleet.add(definition(id, fields));
    await firstValueFrom(ref.state$.pipe(filter((state) => state === 'healthy')));
    await turn();
    return ref;
  }

  /** Changes what a backend does from now on. */
  rewrite(id: string, script: Script, tools?: readonly Tool[]): void {
    this.#scripts.set(id, script);
    if (tools !== undefined) this.#tools.set(id, tools);
  }

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

  /** The facts of one kind. */
  told<N extends EventName>(name: N): Extract<GatewayEvent, { type: N }>[] {
    return this.events.filter((event): event is Extract<GatewayEvent, { type: N }> => event.type === name);
  }

  ref(id: string): InstanceRef {
    return this.fleet.get('t', id);
  }

  close(): Promise<void> {
    return this.fleet.close(0);
  }

  #open(id: string): ScriptedTransport {
    const { peer, own = {}, isIndependent = false } = this.#options.get(id) ?? {};
    const transport = new ScriptedTransport({ capabilities: { tools: {} }, ...peer });
    transport.ownPeer = own;
    transport.upstreamsAreIndependent = isIndependent;
    transport.onExchange = (exchange) => {
      const { method } = exchange.request;
      const tools = this.#tools.get(id);
      if (method === 'tools/list' && tools !== null) exchange.result({ tools });
      else if (method === 'ping' || method === 'server/discover') exchange.result();
      else this.#scripts.get(id)?.(exchange);
    };
    this.transports.set(id, [...(this.transports.get(id) ?? []), transport]);
    return transport;
  }
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

/** Everything that can settle has settled. */
export async function settled(): Promise<void> {
  await turn();
}
