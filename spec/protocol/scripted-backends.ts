// Backends for the specs of the legacy endpoint, and the exchanges of both eras: their sessions answer when the spec says so, and
// record requests. They honour the contracts of protocol/ports.ts.

import { NEVER, Observable, ReplaySubject, Subject, type Subscriber } from 'rxjs';
import type { ClientProfile, ClientReply, ServerMessage } from '../../src/domain/client.ts';
import type { GatewayError } from '../../src/domain/errors.ts';
import { type Answer, type ExchangeEvent, type ExchangeRequest, isFinal } from '../../src/domain/exchange.ts';
import { type JsonObject, JsonText } from '../../src/domain/json.ts';
import type { JsonRpcError } from '../../src/domain/jsonrpc.ts';
import type { Peer, Tool } from '../../src/domain/mcp.ts';
import type { Backends, McpSession, Owner, Reservation } from '../../src/protocol/ports.ts';

export const PEER: Peer = {
  era: 'legacy',
  protocolVersion: '2025-11-25',
  serverName: 'scripted',
  serverVersion: '1',
  capabilities: { tools: {} },
  greeting: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'scripted', version: '1' },
    instructions: 'be kind',
  },
};

/** One request that reached a session, or the backends. */
export class ScriptedExchange {
  readonly request: ExchangeRequest;
  readonly #subscriber: Subscriber<Answer>;
  readonly #instanceId: string;
  isCancelled = false;
  isOpen = true;
  readonly replies: ClientReply[] = [];
  onCancelled: () => void = () => {};

  constructor(request: ExchangeRequest, subscriber: Subscriber<Answer>, instanceId = 'one') {
    this.request = request;
    this.#subscriber = subscriber;
    this.#instanceId = instanceId;
    subscriber.add(() => {
      this.isCancelled = this.isOpen;
      this.isOpen = false;
      if (this.isCancelled) this.onCancelled();
    });
  }

  /** Emits an event, as said by an instance. The last one ends the exchange. */
  say(event: ExchangeEvent, instanceId = this.#instanceId, memory: Pick<Answer, 'isRemembered'> = {}): void {
    const isLast = isFinal(event);
    if (isLast) this.isOpen = false;
    this.#subscriber.next({ event, instanceId, serverId: `t.${instanceId}`, ...memory });
    if (isLast) this.#subscriber.complete();
  }

  notify(method: string, params: JsonObject = {}): void {
    this.say({ kind: 'notification', method, params });
  }

  ask(method: string, params: JsonObject = {}): void {
    this.say({ kind: 'request', method, params, answer: (reply) => this.replies.push(reply) });
  }

  interrupt(retryMs?: number): void {
    this.say({ kind: 'interrupted', retryMs });
  }

  /** A result by its value, or in its bytes. */
  result(value: unknown = {}, instanceId?: string): void {
    const bytes = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
    this.say({ kind: 'result', result: JsonText.ofBytes(bytes) }, instanceId);
  }

  /** An error, or one of this code. */
  refuse(error: JsonRpcError | number, data?: JsonObject): void {
    const ofCode = (code: number) => ({ code, message: 'no', ...(data === undefined ? {} : { data }) });
    this.say({ kind: 'error', error: typeof error === 'number' ? ofCode(error) : error });
  }

  fail(error: Error): void {
    this.isOpen = false;
    this.#subscriber.error(error);
  }

  complete(): void {
    this.isOpen = false;
    this.#subscriber.complete();
  }
}

export class ScriptedSession implements McpSession {
  readonly id: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  peer: Peer;
  isShared = true;
  logLevel: string | undefined;
  instanceId: string | undefined;
  readonly exchanges: ScriptedExchange[] = [];
  readonly notes: [method: string, params: JsonObject][] = [];
  readonly messages = new Subject<ServerMessage>();
  readonly ended$ = new ReplaySubject<string>(1);
  holds = 0;
  /** What the session was told of its client. */
  readonly away: boolean[] = [];
  /** Of them, those for calls that others carry. */
  carries = 0;
  opening: Promise<void> | undefined;
  /** The instances at which places are kept now. */
  readonly reservations: string[] = [];
  isClosed = false;

  constructor(id: string, ownerId: string, profile: ClientProfile, peer: Peer) {
    this.id = id;
    this.ownerId = ownerId;
    this.profile = profile;
    this.peer = peer;
  }

  get messages$(): Observable<ServerMessage> {
    return this.messages;
  }

  /** The latest request. */
  get last(): ScriptedExchange {
    const exchange = this.exchanges.at(-1);
    if (exchange === undefined) throw new Error('nothing was asked');
    return exchange;
  }

  at(instanceId: string): this | undefined {
    return instanceId === 'one' ? this : undefined;
  }

  exchange(request: ExchangeRequest): Observable<Answer> {
    return new Observable((subscriber) => {
      this.exchanges.push(new ScriptedExchange(request, subscriber));
    });
  }

  /** The place that was kept last is lost with this error. */
  lose: (error: GatewayError) => void = () => {};
  /** What keeping a place does besides. */
  onStay: () => void = () => {};

  reserve({ instanceId }: Answer, lost: (error: GatewayError) => void): Reservation {
    this.reservations.push(instanceId);
    this.lose = lost;
    this.onStay();
    let isKept = true;
    return {
      exchange: (request) => this.exchange(request),
      leave: () => {
        if (isKept) this.reservations.splice(this.reservations.indexOf(instanceId), 1);
        isKept = false;
      },
    };
  }

  notify(method: string, params: JsonObject): void {
    this.notes.push([method, params]);
  }

  hold(): () => void {
    this.holds += 1;
    return () => {
      this.holds -= 1;
    };
  }

  setAway(isAway: boolean): void {
    this.away.push(isAway);
  }

  carry(): () => void {
    const release = this.hold();
    this.carries += 1;
    return () => {
      this.carries -= 1;
      release();
    };
  }

  /** What its end waits for, or fails with. */
  closing: () => Promise<void> = async () => {};

  close(): Promise<void> {
    this.isClosed = true;
    this.ended$.next('closed');
    this.messages.complete();
    return this.closing();
  }
}

export class ScriptedBackends implements Backends {
  readonly sessions = new Map<string, ScriptedSession>();
  readonly tools = new Map<string, Tool>();
  readonly listChanged$ = NEVER;
  peer: Peer = PEER;
  /** What opening a session waits for, or fails with. */
  opening: () => Promise<void> = async () => {};
  opened: ClientProfile[] = [];
  /** What would have called off each of them. */
  signals: (AbortSignal | undefined)[] = [];

  peers(): readonly Peer[] {
    return [this.peer];
  }

  async openSession(owner: Owner, profile: ClientProfile, signal?: AbortSignal): Promise<McpSession> {
    this.opened.push(profile);
    this.signals.push(signal);
    await this.opening();
    return this.add(`session-${this.sessions.size + 1}`, owner.id, profile);
  }

  add(id: string, ownerId: string, profile: Partial<ClientProfile> = {}): ScriptedSession {
    const whole = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {}, ...profile };
    const session = new ScriptedSession(id, ownerId, whole, this.peer);
    this.sessions.set(id, session);
    return session;
  }

  session(id: string): ScriptedSession | undefined {
    const session = this.sessions.get(id);
    return session?.isClosed ? undefined : session;
  }

  modernInstanceIds() {
    return [];
  }

  inquire() {
    return NEVER;
  }

  exchange(): Observable<Answer> {
    return NEVER;
  }

  changes() {
    return NEVER;
  }

  tool(name: string): Tool | undefined {
    return this.tools.get(name);
  }

  relisted(name: string): readonly Tool[] {
    const tool = this.tools.get(name);
    return tool === undefined ? [] : [tool];
  }
}
