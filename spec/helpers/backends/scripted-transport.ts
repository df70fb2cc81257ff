// A transport that the spec controls: when it opens, answers, notifies, is lost, closes or hangs. It records its requests
// and keeps the contract of transports/transport.ts, except where a field says that it breaks it.

import { Observable, ReplaySubject, Subject, type Subscriber } from 'rxjs';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import type { ExchangeEvent, FinalEvent } from '../../../src/domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { Delivered, GatewayError } from '../../../src/domain/errors/errors.ts';
import { exitedWith, type ProgramEnd } from '../../../src/domain/instances/found-instances.ts';
import type { TransportKind } from '../../../src/domain/instances/transport-kinds.ts';
import { type JsonObject, JsonText } from '../../../src/domain/json/json.ts';
import type { ClientAnswer, ClientProfile, ServerMessage } from '../../../src/domain/mcp/client.ts';
import type { JsonRpcError } from '../../../src/domain/mcp/jsonrpc.ts';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import type { Open, OpeningHooks } from '../../../src/transports/open-options.ts';
import type {
  Closed,
  ConversationOpening,
  Transport,
  TransportDiagnostics,
} from '../../../src/transports/transport.ts';

/** A legacy server without capabilities, so that its tools are not listed. */
export const HANDSHAKE: Handshake = {
  era: 'legacy',
  protocolVersion: '2025-11-25',
  serverInfo: { name: 'scripted', version: '1' },
  capabilities: {},
  greeting: {},
};

/** The same in the modern era. */
export const MODERN_HANDSHAKE: Handshake = { ...HANDSHAKE, era: 'modern', protocolVersion: '2026-07-28' };

/** A request that reached a backend. The spec answers it, event by event. */
export abstract class AnsweredExchange<Said> {
  readonly request: ExchangeRequest;
  protected readonly subscriber: Subscriber<Said>;
  /** True once its caller has unsubscribed without an answer. */
  isCancelled = false;
  /** False once it was answered, failed or cancelled. */
  isOpen = true;
  /** The client's answers to the server's requests, oldest first. */
  readonly replies: ClientAnswer[] = [];
  onCancelled: () => void = () => {};

  constructor(request: ExchangeRequest, subscriber: Subscriber<Said>) {
    this.request = request;
    this.subscriber = subscriber;
    subscriber.add(() => {
      this.isCancelled = this.isOpen;
      this.isOpen = false;
      if (this.isCancelled) this.onCancelled();
    });
  }

  notify(method: string, params: JsonObject = {}): void {
    this.emit({ kind: 'notification', method, params });
  }

  /** Sends a server request; the answer is added to `replies`. */
  ask(method: string, params: JsonObject = {}): void {
    this.emit({ kind: 'request', method, params, answer: (reply) => this.replies.push(reply) });
  }

  result(value: unknown = {}): void {
    const result = typeof value === 'object' ? value : { answer: value };
    this.end({ kind: 'result', result: JsonText.ofValue(result) });
  }

  /** Answers with a JSON-RPC error, given whole or by its code. */
  refuse(error: JsonRpcError | number): void {
    const message = 'refused by the script';
    this.end({ kind: 'error', error: typeof error === 'number' ? { code: error, message } : error });
  }

  end(event: FinalEvent): void {
    this.isOpen = false;
    this.emit(event);
    this.subscriber.complete();
  }

  /** Fails without an answer. An error that is not a GatewayError breaks the contract. */
  fail(error: Error): void {
    this.isOpen = false;
    this.subscriber.error(error);
  }

  /** Breaks the contract: ends without an answer. */
  complete(): void {
    this.isOpen = false;
    this.subscriber.complete();
  }

  /** Emits any event. A final one without completion breaks the contract. */
  abstract emit(event: ExchangeEvent): void;
}

/** A request that reached the transport. */
export class ScriptedExchange extends AnsweredExchange<ExchangeEvent> {
  emit(event: ExchangeEvent): void {
    this.subscriber.next(event);
  }
}

export class ScriptedTransport implements Transport {
  kind: TransportKind = 'in-process';
  readonly handshake: Handshake;
  /** All subscribed exchanges, oldest first. */
  readonly exchanges: ScriptedExchange[] = [];
  /** The notifications it received, oldest first. */
  readonly notified: { readonly method: string; readonly params: JsonObject }[] = [];
  /** The dedicated conversations that were opened; they end with this one unless they are independent. */
  readonly conversations: ScriptedTransport[] = [];
  readonly profiles: ClientProfile[] = [];
  /** The answers to its own requests, oldest first. */
  readonly replies: ClientAnswer[] = [];
  /** Overrides of the handshake data in a dedicated conversation; null: the backend keeps no such conversations. */
  ownHandshake: Partial<Handshake> | null = {};
  /** As in Conversation. */
  isIndependent = false;
  /** `isIndependent` of the dedicated conversations that it opens. */
  conversationsAreIndependent = false;
  /** Every `openConversation` rejects with this. */
  thrownByOpenConversation: Error | undefined;
  /** How often close() was called. */
  closings = 0;
  /** Answers at once, inside the subscription; undefined: the spec answers. */
  onExchange: ((exchange: ScriptedExchange) => void) | undefined;
  /** close() resolves only after `finishClosing` is called. */
  closesSlowly = false;
  /** Breaks the contract: `exchange` throws this. */
  thrownByExchange: Error | undefined;
  /** Emits when something failed that ended no exchange. */
  readonly #messages = new Subject<ServerMessage>();
  readonly resumed$ = new Subject<void>();
  readonly #closed = new ReplaySubject<Closed>(1);
  readonly #finished = Promise.withResolvers<void>();
  #ended: Closed | undefined;

  constructor(handshake: Partial<Handshake> = {}) {
    this.handshake = { ...HANDSHAKE, ...handshake };
  }

  get messages$(): Observable<ServerMessage> {
    return this.#messages;
  }
  get closed$(): Observable<Closed> {
    return this.#closed;
  }
  get isClosed(): boolean {
    return this.#ended !== undefined;
  }
  /** The number of subscribers to its messages. */
  get listeners(): number {
    return this.#messages.observers.length;
  }
  /** The exchanges without an answer. */
  get open(): ScriptedExchange[] {
    return this.exchanges.filter((exchange) => exchange.isOpen);
  }
  /** The methods of its requests, oldest first. */
  get asked(): string[] {
    return this.exchanges.map(({ request }) => request.method);
  }
  /** The last request. */
  get last(): ScriptedExchange {
    const last = this.exchanges.at(-1);
    if (last === undefined) throw new Error('the transport was not asked anything');
    return last;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    if (this.thrownByExchange !== undefined) throw this.thrownByExchange;
    return new Observable((subscriber) => {
      if (this.#ended !== undefined) return subscriber.error(unavailable(this.#ended.reason, 'no'));
      const exchange = new ScriptedExchange(request, subscriber);
      this.exchanges.push(exchange);
      this.onExchange?.(exchange);
    });
  }

  diagnostics(): TransportDiagnostics {
    return { pid: 4711, stderr: ['a line'] };
  }

  async close(): Promise<void> {
    this.closings += 1;
    this.#end({ reason: 'closed by the gateway', isExpected: true });
    if (this.closesSlowly) await this.#finished.promise;
  }

  finishClosing(): void {
    this.#finished.resolve();
  }

  notify(method: string, params: JsonObject): void {
    this.notified.push({ method, params });
  }

  async openConversation({ profile, signal }: ConversationOpening): Promise<ScriptedTransport | undefined> {
    if (this.#ended !== undefined || signal.aborted) throw unavailable('it opens no conversation', 'no');
    if (this.thrownByOpenConversation !== undefined) throw this.thrownByOpenConversation;
    this.profiles.push(profile);
    if (this.ownHandshake === null) return undefined;
    const handshake = { ...this.handshake, protocolVersion: profile.protocolVersion, ...this.ownHandshake };
    const conversation = new ScriptedTransport(handshake);
    conversation.onExchange = this.onExchange;
    conversation.isIndependent = this.conversationsAreIndependent;
    this.conversations.push(conversation);
    return conversation;
  }

  /** The backend sends a notification outside any exchange. */
  sendNotification(method: string, params: JsonObject = {}): void {
    this.#messages.next({ kind: 'notification', method, params });
  }

  /** The backend sends a server request outside any exchange; the answer is added to `replies`. */
  ask(method: string, params: JsonObject = {}): void {
    this.#messages.next({ kind: 'request', method, params, answer: (reply) => this.replies.push(reply) });
  }

  /** Loses the backend: its unanswered requests fail. */
  disconnect(end: ProgramEnd = exitedWith(7)): void {
    this.#end({ ...end, isExpected: false });
  }

  #end(closed: Closed): void {
    if (this.#ended !== undefined) return;
    this.#ended = closed;
    for (const exchange of this.open) exchange.fail(unavailable(closed.reason, 'unknown'));
    for (const conversation of this.conversations) if (!conversation.isIndependent) conversation.#end(closed);
    this.#messages.complete();
    this.#closed.next(closed);
    this.#closed.complete();
  }
}

/** What the error of a failed opening knows. */
type OpeningFacts = Pick<GatewayError['facts'], 'stderr' | 'refusal'>;

/** A call of `open` that the spec settles. */
export interface Opening {
  readonly signal: AbortSignal;
  /** Resolves the opening, by default with a new transport, and returns it. Only the first settlement counts. */
  succeed(transport?: ScriptedTransport): ScriptedTransport;
  fail(reason?: string, facts?: OpeningFacts): void;
  /** Reports that the program was started, with its facts so far. */
  start(diagnostics: TransportDiagnostics): void;
  readonly hooks: OpeningHooks | undefined;
}

/** The `open` of an instance. By default it obeys the signal, as transports do. */
export class ScriptedOpenings {
  readonly openings: Opening[] = [];
  /** All transports it returned. */
  readonly transports: ScriptedTransport[] = [];
  /** Breaks the contract when false: the opening continues after it was aborted. */
  heedsSignal = true;

  get last(): Opening {
    const last = this.openings.at(-1);
    if (last === undefined) throw new Error('nothing was opened');
    return last;
  }

  readonly open: Open = (signal, hooks) => {
    const { promise, resolve, reject } = Promise.withResolvers<Transport>();
    let isSettled = false;
    const fail = (reason = 'connection refused', facts: OpeningFacts = {}): void => {
      isSettled = true;
      reject(backendUnavailable(reason, { delivered: 'no', ...facts }));
    };
    const succeed = (transport = new ScriptedTransport()): ScriptedTransport => {
      if (!isSettled) this.transports.push(transport);
      isSettled = true;
      resolve(transport);
      return transport;
    };
    signal.addEventListener('abort', () => {
      if (this.heedsSignal) fail('its start was cancelled');
    });
    const start = (diagnostics: TransportDiagnostics) => hooks?.onStarted?.(() => diagnostics);
    this.openings.push({ signal, succeed, fail, start, hooks });
    return promise;
  };
}

function unavailable(reason: string, delivered: Delivered): GatewayError {
  return backendUnavailable(reason, { delivered });
}

/** The value that a scripted result was made of: one that is not an object is the member `answer` of the result. */
export function scriptedValue({ value }: JsonText): unknown {
  return Object(value).answer ?? value;
}
