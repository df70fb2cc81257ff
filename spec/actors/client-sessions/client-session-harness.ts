// A harness for specs of client sessions: a fleet over scripted backends, a dispatcher, and a table of sessions. Everything
// but the backends is the real thing; the clock is Date and the global timers, so that both can be simulated.

import { mock } from 'node:test';
import type { Subscription } from 'rxjs';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { ClientSessions } from '../../../src/actors/client-sessions/client-sessions.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import { SharedListening } from '../../../src/actors/sharing/shared-listening.ts';
import { SharedSubscriptions } from '../../../src/actors/sharing/shared-subscriptions.ts';
import type { ClientProfile, ServerMessage } from '../../../src/domain/client.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import type { DedicatedBounds } from '../../../src/domain/limits.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import type { BalancerPolicy } from '../../../src/domain/policy.ts';
import {
  AGAIN,
  answers,
  type Caller,
  definition,
  Harness,
  listen,
  READ,
  type Script,
  settled,
  toolCall,
  WRITE,
} from '../../helpers/failing-backend.ts';
import { type ScriptedExchange, ScriptedTransport } from '../../helpers/scripted-transport.ts';
import type { Suite } from '../../helpers/suite.ts';
import { steadyPace } from '../../helpers/turns.ts';

export { answers, fails, settled, silent, told } from '../../helpers/failing-backend.ts';

/** In each test of the suite time stands still until it is moved. `open` makes a harness, `close` ends it before time goes on. */
export function simulateTime(
  test: Pick<Suite, 'before' | 'after'>,
  close: () => Promise<void>,
  open: () => void = () => {},
): void {
  test.before.each(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
    open();
  });
  test.after.each(async () => {
    await close();
    mock.timers.reset();
  });
}

/** A client that cannot be asked anything. */
export const PLAIN: ClientProfile = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'plain', version: '1' },
};
/** One whose backend may ask it something. */
export const ASKABLE: ClientProfile = { ...PLAIN, capabilities: { sampling: {} } };

export interface InstanceOptions {
  readonly script?: Script;
  readonly peer?: Partial<Peer>;
  readonly fields?: Partial<InstanceDefinition>;
  /**
   * What it says of itself in a conversation of one client; null: it keeps none. Default: the same as in its own, but
   * nothing where that is modern and over HTTP.
   */
  readonly own?: Partial<Peer> | null;
}

export interface SessionHarnessOptions {
  readonly policy?: Partial<BalancerPolicy>;
  readonly maxSessions?: number;
  readonly own?: DedicatedBounds;
  /** What is done in one turn of the event loop of what comes due together. */
  readonly perTurn?: number;
}

/** A legacy server with everything. */
export const FULL: Partial<Peer> = {
  capabilities: { tools: {}, logging: {}, resources: { subscribe: true, listChanged: true } },
};
export const MODERN: Partial<Peer> = { ...FULL, era: 'modern', protocolVersion: '2026-07-28' };
export const HTTP: Partial<InstanceDefinition> = { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp' };

/** The instances of template `t` and the sessions of its clients. */
export class SessionHarness {
  readonly inner: Harness;
  readonly sessions: ClientSessions;
  readonly subscriptions = new SharedSubscriptions();
  /** The transports of each instance, by id, latest last. */
  readonly transports = new Map<string, ScriptedTransport[]>();
  /** How many timers the sessions have set. */
  alarms = 0;
  readonly #options = new Map<string, InstanceOptions>();

  constructor({ policy = {}, own, perTurn, ...options }: SessionHarnessOptions = {}) {
    const scheduler = steadyPace(perTurn);
    const alarm = alarmOf(scheduler);
    this.inner = new Harness(policy, own, alarm);
    const { fleet, dispatcher, emit } = this.inner;
    this.inner.open = async ({ id }) => this.#openTransport(id);
    this.sessions = new ClientSessions({
      fleet,
      dispatcher,
      emit,
      subscriptions: this.subscriptions,
      listening: new SharedListening(),
      now: () => Date.now(),
      alarm: (waitMs, ring) => {
        this.alarms += 1;
        return alarm(waitMs, ring);
      },
      scheduler,
      isAccepting: () => this.inner.isAccepting,
      ...options,
      share: own?.share,
    });
  }

  /** Starts an instance; resolves when it is healthy. By default it answers everything with its id. */
  async add(id: string, options: InstanceOptions = {}): Promise<InstanceRef> {
    this.#options.set(id, options);
    const ref = this.inner.fleet.add(definition(id, options.fields));
    await settled();
    await settled();
    return ref;
  }

  ref(id: string): InstanceRef {
    return this.inner.fleet.get('t', id);
  }

  /** The conversation of the instance itself. */
  transport(id: string): ScriptedTransport {
    const transport = this.transports.get(id)?.at(-1);
    if (transport === undefined) throw new Error(`no backend "${id}" was opened`);
    return transport;
  }

  /** The conversations of single clients with the present process of an instance, those that ended included. */
  upstreams(id: string): ScriptedTransport[] {
    return this.transport(id).upstreams;
  }

  open(profile: ClientProfile = PLAIN, ownerId = 'somebody'): Promise<ClientSession> {
    return this.sessions.open('t', ownerId, profile);
  }

  async close(): Promise<void> {
    await this.sessions.closeAll(0);
    await this.inner.close();
  }

  #openTransport(id: string): ScriptedTransport {
    const { peer = {}, fields = {}, script = answers(id), own } = this.#options.get(id) ?? {};
    const transport = new ScriptedTransport({ capabilities: { tools: {} }, ...peer });
    const isModernOnly = peer.era === 'modern' && fields.endpoint !== undefined;
    transport.upstreamsAreIndependent = fields.transport === 'stdio';
    transport.ownPeer = own === undefined ? (isModernOnly ? null : {}) : own;
    transport.onExchange = (exchange) => {
      const { method } = exchange.request;
      if (method === 'tools/list') exchange.result({ tools: [WRITE, READ, AGAIN] });
      else if (method === 'ping' || method === 'server/discover') exchange.result();
      else if (method === 'subscriptions/listen') agree(exchange);
      else script(exchange);
    };
    this.transports.set(id, [...(this.transports.get(id) ?? []), transport]);
    return transport;
  }
}

function agree(exchange: ScriptedExchange): void {
  queueMicrotask(() => exchange.notify('notifications/subscriptions/acknowledged'));
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

export interface Listener {
  readonly messages: ServerMessage[];
  readonly subscription: Subscription;
  isOver: boolean;
}

/** Listens to a session and writes down what it hears. */
export function listenTo(session: ClientSession): Listener {
  const messages: ServerMessage[] = [];
  const subscription = session.messages$.subscribe({
    next: (message) => messages.push(message),
    complete: () => {
      listener.isOver = true;
    },
  });
  const listener: Listener = { messages, subscription, isOver: subscription.closed };
  return listener;
}

/** Lets ms of simulated time pass, and what follows. */
export async function pass(tick: (ms: number) => void, ms: number): Promise<void> {
  tick(ms);
  await settled();
}
