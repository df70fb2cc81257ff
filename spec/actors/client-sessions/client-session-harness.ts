// A harness for specs of client sessions: a fleet over scripted backends, a dispatcher, and a table of sessions. Everything
// but the backends is the real thing; the clock is Date and the global timers, so that both can be simulated.

import type { Subscription } from 'rxjs';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { ClientSessions } from '../../../src/actors/client-sessions/client-sessions.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import type { ClientProfile, ServerMessage } from '../../../src/domain/client.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import type { DedicatedBounds } from '../../../src/domain/limits.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import type { BalancerPolicy } from '../../../src/domain/policy.ts';
import {
  answers,
  type Caller,
  Harness,
  listen,
  type Script,
  settled,
  toolCall,
} from '../../helpers/failing-backend.ts';
import type { ScriptedExchange, ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { steadyPace } from '../../helpers/turns.ts';

export { answers, fails, settled, silent, told } from '../../helpers/failing-backend.ts';

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
  /** How many timers the sessions have set. */
  alarms = 0;

  constructor({ policy = {}, own, perTurn, ...options }: SessionHarnessOptions = {}) {
    const scheduler = steadyPace(perTurn);
    const alarm = alarmOf(scheduler);
    this.inner = new Harness(policy, own, alarm);
    const { fleet, dispatcher, emit } = this.inner;
    this.sessions = new ClientSessions({
      fleet,
      dispatcher,
      emit,
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
    const { peer = {}, fields = {}, script = answers(id), own } = options;
    const isModernOnly = peer.era === 'modern' && fields.endpoint !== undefined;
    const ownDefault = isModernOnly ? null : {};
    const answered: Script = (exchange) =>
      exchange.request.method === 'subscriptions/listen' ? agree(exchange) : script(exchange);
    const ref = await this.inner.add(id, answered, {
      peer,
      fields,
      own: own === undefined ? ownDefault : own,
      isIndependent: fields.transport === 'stdio',
    });
    await settled();
    return ref;
  }

  ref(id: string): InstanceRef {
    return this.inner.fleet.get('t', id);
  }

  get transports(): ReadonlyMap<string, ScriptedTransport[]> {
    return this.inner.transports;
  }

  /** The conversation of the instance itself. */
  transport(id: string): ScriptedTransport {
    return this.inner.backend(id);
  }

  /** The conversations of single clients with the present process of an instance, those that ended included. */
  upstreams(id: string): ScriptedTransport[] {
    return this.transport(id).upstreams;
  }

  /** How many resources the running processes of all instances are subscribed to, in the conversations that clients share. */
  get subscribed(): number {
    const running = [...this.transports.values()].flat().filter(({ isClosed }) => !isClosed);
    const asked = running.flatMap((transport) => transport.asked);
    const count = (method: string) => asked.filter((each) => each === method).length;
    return count('resources/subscribe') - count('resources/unsubscribe');
  }

  open(profile: ClientProfile = PLAIN, ownerId = 'somebody'): Promise<ClientSession> {
    return this.sessions.open('t', ownerId, profile);
  }

  /** A session on `a`, with `b` beside it from then on. */
  async openOnA(a: InstanceOptions, b: InstanceOptions = {}, profile = PLAIN): Promise<ClientSession> {
    await this.add('a', a);
    const session = await this.open(profile);
    await this.add('b', b);
    return session;
  }

  async close(): Promise<void> {
    await this.sessions.closeAll(0);
    await this.inner.close();
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
