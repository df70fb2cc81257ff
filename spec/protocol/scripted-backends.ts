// Backends and sessions for the specs of the endpoint in both eras: they answer when the spec says so, and record requests. They
// honour the contracts of protocol/endpoint-backends.ts.

import { Observable, ReplaySubject, Subject, type Subscriber } from 'rxjs';
import { newSession } from '../../src/actors/sessions/session-transitions.ts';
import type { ExchangeRequest, SentTo, SourcedEvent } from '../../src/domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../src/domain/calls/exchange-event.ts';
import type { GatewayError } from '../../src/domain/errors/errors.ts';
import { serverNotFound } from '../../src/domain/errors/registry-errors.ts';
import type { EndReason } from '../../src/domain/errors/session-ends.ts';
import { definedFields, type JsonObject, JsonText, writeFields } from '../../src/domain/json/json.ts';
import type {
  ClientProfile,
  Notification,
  Owner,
  ServerMessage,
  StatelessOptions,
} from '../../src/domain/mcp/client.ts';
import type { Handshake, Tool, WantedChanges } from '../../src/domain/mcp/mcp.ts';
import type { SessionOpening } from '../../src/domain/sessions/all-sessions.ts';
import { type McpSession, type Reservation, SessionActivity } from '../../src/domain/sessions/mcp-session.ts';
import {
  type AnySessionValue,
  type StoredBinding,
  storedHandshakeOf,
} from '../../src/domain/sessions/session-value.ts';
import type { Backends } from '../../src/protocol/endpoint-backends.ts';
import { AnsweredExchange, HANDSHAKE as SILENT_HANDSHAKE } from '../helpers/backends/scripted-transport.ts';

export const HANDSHAKE: Handshake = {
  ...SILENT_HANDSHAKE,
  capabilities: { tools: {} },
  greeting: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'scripted', version: '1' },
    instructions: 'be kind',
  },
};

/** One request that reached a session, or the backends. */
export class SessionExchange extends AnsweredExchange<SourcedEvent> {
  /** The instance that answers it. */
  #instanceId: string;

  constructor(request: ExchangeRequest, subscriber: Subscriber<SourcedEvent>, instanceId = 'one') {
    super(request, subscriber);
    this.#instanceId = instanceId;
  }

  emit(event: ExchangeEvent): void {
    const instanceId = this.#instanceId;
    this.subscriber.next({ event, instanceId, serverId: `t.${instanceId}` });
  }

  /** Reports that the request is sent to this instance. */
  sendTo(instance: SentTo): void {
    if (this.request.report !== undefined) this.request.report.sentTo = instance;
  }

  interrupt(retryMs?: number): void {
    this.emit({ kind: 'interrupted', retryMs });
  }

  /** A result, by its value or as JSON text; from another instance, if one is named. */
  override result(value: unknown = {}, instanceId = this.#instanceId): void {
    this.#instanceId = instanceId;
    const bytes = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
    this.end({ kind: 'result', result: JsonText.ofBytes(bytes) });
  }
}

export class ScriptedSession implements McpSession {
  readonly id: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  handshake: Handshake;
  isShared = true;
  questionMs = 10 * 60_000;
  logLevel: string | undefined;
  binding: StoredBinding | undefined;
  /** The resources that it has subscribed to. */
  uris: readonly string[] = [];
  generation: number | undefined;
  readonly exchanges: SessionExchange[] = [];
  readonly notes: [method: string, params: JsonObject][] = [];
  readonly messages = new Subject<ServerMessage>();
  readonly ended$ = new ReplaySubject<EndReason>(1);
  holds = 0;
  /** Whether the client was away, as it was reported. */
  readonly away: boolean[] = [];
  untilListening: Promise<void> | undefined;
  /** The instances with a reservation. */
  readonly reservations: string[] = [];
  isClosed = false;
  readonly isStreaming = false;
  readonly isRecoverable = false;
  callCount = 0;
  readonly activity = new SessionActivity();

  constructor(id: string, ownerId: string, profile: ClientProfile, handshake: Handshake) {
    this.id = id;
    this.ownerId = ownerId;
    this.profile = profile;
    this.handshake = handshake;
  }

  get value(): AnySessionValue {
    const { ownerId, profile, uris, handshake, logLevel, binding } = this;
    const greeted = storedHandshakeOf(handshake);
    return { ...newSession('t', ownerId, profile), uris, greeted, ...definedFields({ logLevel, binding }) };
  }

  get messages$(): Observable<ServerMessage> {
    return this.messages;
  }

  /** The latest request. */
  get last(): SessionExchange {
    const exchange = this.exchanges.at(-1);
    if (exchange === undefined) throw new Error('nothing was asked');
    return exchange;
  }

  isAt(instanceId: string): boolean {
    return instanceId === 'one';
  }

  exchange(request: ExchangeRequest): Observable<SourcedEvent> {
    return new Observable((subscriber) => {
      this.exchanges.push(new SessionExchange(request, subscriber));
    });
  }

  /** Makes the latest reservation fail. */
  lose: (error: GatewayError) => void = () => {};
  /** Called by each reservation. */
  onReserve: () => void = () => {};

  reserve({ instanceId }: SourcedEvent, lost: (error: GatewayError) => void): Reservation {
    this.reservations.push(instanceId);
    this.lose = lost;
    this.onReserve();
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

  setIdle(): boolean {
    return true;
  }

  untilStored(): undefined {}

  /** `close` waits for it, or fails with it. */
  closing: () => Promise<void> = async () => {};

  close(_reason?: EndReason): Promise<void> {
    this.isClosed = true;
    this.ended$.next('closed');
    this.messages.complete();
    return this.closing();
  }
}

/** One request that reached the backends. */
export class StatelessExchange extends SessionExchange {
  readonly options: StatelessOptions;

  constructor(request: ExchangeRequest, options: StatelessOptions, subscriber: Subscriber<SourcedEvent>) {
    super(request, subscriber, 'a');
    this.options = options;
  }

  get params(): JsonObject {
    return JSON.parse(writeFields(this.request.params ?? {}));
  }
}

export class ScriptedBackends implements Backends {
  readonly exchanges: StatelessExchange[] = [];
  changes$ = new Subject<Notification>();
  /** The open subscriptions. */
  readonly wanted: WantedChanges[] = [];
  readonly tools = new Map<string, Tool>();
  /** Tools whose lists refused a call. */
  readonly relistings: string[] = [];
  recoverSession: Backends['recoverSession'] = () => undefined;
  known: readonly Handshake[] = [];
  /** The instances that exist; undefined: every one does. */
  instances: ReadonlySet<string> | undefined;

  get last(): StatelessExchange {
    const exchange = this.exchanges.at(-1);
    if (exchange === undefined) throw new Error('nothing was asked');
    return exchange;
  }

  handshakes(): readonly Handshake[] {
    return this.known;
  }

  exchange(request: ExchangeRequest, options: StatelessOptions): Observable<SourcedEvent> {
    return new Observable((subscriber) => {
      const { instanceId } = options;
      const isGone = instanceId !== undefined && this.instances?.has(instanceId) === false;
      if (isGone) subscriber.error(serverNotFound(instanceId));
      else this.exchanges.push(new StatelessExchange(request, options, subscriber));
    });
  }

  changes(_owner: Owner, _profile: ClientProfile, wanted: WantedChanges): Observable<Notification> {
    return new Observable((subscriber) => {
      this.wanted.push(wanted);
      subscriber.add(this.changes$.subscribe(subscriber));
      subscriber.add(() => this.wanted.splice(this.wanted.indexOf(wanted), 1));
    });
  }

  tool(name: string): Tool | undefined {
    return this.tools.get(name);
  }

  relistTool(name: string): void {
    this.relistings.push(name);
  }

  session(_id: string): McpSession | undefined {
    return undefined;
  }

  openSession(_owner: Owner, _profile: ClientProfile, _opening?: SessionOpening): Promise<McpSession> {
    throw new Error('no modern client opens a session');
  }
}

/** Backends whose sessions answer when the spec says so. */
export class SessionBackends extends ScriptedBackends {
  readonly sessions = new Map<string, ScriptedSession>();
  handshake: Handshake = HANDSHAKE;
  /** `openSession` waits for it, or fails with it. */
  opening: () => Promise<void> = async () => {};
  /** What the sessions have that are opened. */
  openedAs: Partial<Pick<ScriptedSession, 'binding' | 'isShared'>> = {};
  opened: ClientProfile[] = [];
  /** The abort signal of each opening. */
  signals: (AbortSignal | undefined)[] = [];

  override handshakes(): readonly Handshake[] {
    return [this.handshake];
  }

  override async openSession(
    owner: Owner,
    profile: ClientProfile,
    { signal }: SessionOpening = {},
  ): Promise<McpSession> {
    this.opened.push(profile);
    this.signals.push(signal);
    await this.opening();
    return Object.assign(this.add(`session-${this.sessions.size + 1}`, owner.id, profile), this.openedAs);
  }

  add(id: string, ownerId: string, profile: Partial<ClientProfile> = {}): ScriptedSession {
    const whole = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {}, ...profile };
    const session = new ScriptedSession(id, ownerId, whole, this.handshake);
    this.sessions.set(id, session);
    return session;
  }

  override session(id: string): ScriptedSession | undefined {
    const session = this.sessions.get(id);
    return session?.isClosed ? undefined : session;
  }
}
