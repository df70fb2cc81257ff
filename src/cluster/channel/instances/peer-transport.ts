// An instance of another node as a transport: its conversations are those of the instance there, and an exchange
// is one attempt there, which is never repeated here. A conversation lasts as long as one streamed answer: its end
// at either side is the end of the conversation. Source: ADR 170.

import { Observable, ReplaySubject, Subject, type Subscriber } from 'rxjs';
import type { Principal } from '../../../domain/accounts/account.ts';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import {
  ANSWERS_HOLD_TOO_MUCH,
  backendUnavailable,
  notConnected,
  openingCancelled,
} from '../../../domain/errors/backend-errors.ts';
import { type Delivered, type GatewayError, reasonOf } from '../../../domain/errors/errors.ts';
import { notWritable } from '../../../domain/errors/request-errors.ts';
import type { HostDuty, InstanceDefinition } from '../../../domain/instances/instance.ts';
import { definedFields, type JsonObject } from '../../../domain/json/json.ts';
import {
  QUESTION_REFUSALS,
  type ServerMessage,
  type ServerRequest,
  serverRequest,
} from '../../../domain/mcp/client.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import { type InstanceHeldBytes, UNCOUNTED_BYTES } from '../../../domain/memory/held-bytes.ts';
import { type Linked, LinkedSet } from '../../../domain/memory/linked-set.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { NO_CALLER } from '../../../domain/memory/user-shares.ts';
import type { ForwardedAnswer, ForwardedRequest, Forwarding } from '../../../domain/nodes/forwarding.ts';
import {
  CLOSED_BY_GATEWAY,
  type Closed,
  type Conversation,
  type ConversationOpening,
  type Transport,
} from '../../../transports/transport.ts';
import type { PeerClient } from '../peer-client.ts';
import { INSTANCE_PATHS, MAX_QUESTIONS } from '../peer-protocol.ts';
import {
  type ClientAnswerRequest,
  closedIn,
  errorIn,
  exchangeBody,
  FrameReader,
  type NotificationRequest,
  type OpenedConversation,
  type PeerConversationRequest,
  type PeerFrame,
} from './peer-frames.ts';

/** Notifications and replies of one conversation that are under way; more are dropped. */
const MAX_NOTICES = 64;
/** Bytes of the replies of one conversation that wait. */
const WAITING_BYTES = 1024 * 1024;
/** The most callers of one instance whose principals are kept, so that their tokens are made once. */
const MAX_CALLERS = 1_000;

interface PeerTransportOptions {
  readonly definition: Pick<InstanceDefinition, 'template' | 'id' | 'transport'>;
  readonly client: PeerClient;
  readonly signal: AbortSignal;
  /** Changed with each opening. Default: each opening finds another backend. */
  readonly last?: LastBackend | undefined;
  /** Counts incomplete answers. Default: they are not counted. */
  readonly answers?: InstanceHeldBytes | undefined;
  /** See OpeningHooks. */
  readonly onDuty?: ((duty: HostDuty) => void) | undefined;
}

/** The shared conversation of the backend that was found last; `handshake` is the same object as long as that goes on. */
export interface LastBackend {
  name?: string;
  handshake?: Handshake;
}

/**
 * Opens the conversation that clients share. Rejects with the error of the other node, or BACKEND_UNAVAILABLE,
 * `delivered: 'no'`.
 */
export async function openPeerTransport(options: PeerTransportOptions): Promise<Transport> {
  const link = new Link(options);
  const conversation = await PeerConversation.open(link, NO_CALLER, {}, options.signal, options.onDuty);
  if (conversation === undefined) throw notConnected();
  return Object.assign(conversation, {
    kind: options.definition.transport,
    diagnostics: () => ({ pid: null, stderr: [] }),
    openConversation: ({ profile, signal, ownerId = NO_CALLER, isShared }: ConversationOpening) =>
      PeerConversation.open(
        link,
        ownerId,
        { profile: { ...profile }, ...definedFields({ isShared }) },
        signal,
      ),
  });
}

interface SendOptions extends Partial<Pick<ForwardedRequest, 'isStream' | 'mayShare' | 'mayBeSent'>> {
  readonly requestId?: string | undefined;
}

/** The link to one instance: what its conversations share. */
class Link {
  readonly #options: PeerTransportOptions;
  readonly #linkId = crypto.randomUUID();
  readonly #principals = new LruMap<Principal>(MAX_CALLERS);

  constructor(options: PeerTransportOptions) {
    this.#options = options;
  }

  get target(): Pick<PeerConversationRequest, 'template' | 'id' | 'way'> {
    const { template, id } = this.#options.definition;
    return { template, id, way: this.#linkId };
  }

  /** The result of the handshake. */
  handshakeOf({ backend, peer: handshake }: OpenedConversation): Handshake {
    const { last } = this.#options;
    if (backend === undefined || last === undefined) return handshake;
    if (last.name === backend && last.handshake !== undefined) return last.handshake;
    Object.assign(last, { name: backend, handshake });
    return handshake;
  }

  /** `delivered`: of an answer that breaks off. `ended` is called once, unless it is cancelled, and never synchronously. */
  send(
    path: string,
    body: Buffer,
    callerId: string,
    sink: FrameSink,
    { requestId = '', isStream = false, mayShare = false, mayBeSent }: SendOptions = {},
  ): Forwarding {
    const { client, answers } = this.#options;
    const caller = { principal: this.#principalOf(callerId), requestId, address: undefined };
    const request = { caller, method: 'POST', target: path, headers: {}, body, isRepeatable: () => false };
    return client.forward(
      { ...request, hop: 'instance', isStream, mayShare, mayBeSent },
      new FrameAnswer(sink, answers),
    );
  }

  /** The rights of a caller at the other node: this template alone. Its node has checked that the caller has them. */
  #principalOf(id: string): Principal {
    const known = this.#principals.get(id);
    if (known !== undefined) return known;
    const principal: Principal = {
      id,
      kind: 'anonymous',
      name: '',
      scopes: new Set(['tools:call']),
      templates: new Set([this.#options.definition.template]),
    };
    this.#principals.set(id, principal);
    return principal;
  }
}

interface FrameSink {
  frame(frame: PeerFrame): void;
  /** The answer is over; with an error when it broke off. */
  ended(error: GatewayError | undefined): void;
}

class FrameAnswer implements ForwardedAnswer {
  readonly #sink: FrameSink;
  readonly #reader: FrameReader;
  readonly #answers: InstanceHeldBytes | undefined;
  #holding: ReturnType<InstanceHeldBytes['hold']> | undefined;
  #status = 0;
  #isOver = false;

  constructor(sink: FrameSink, answers: InstanceHeldBytes | undefined) {
    this.#sink = sink;
    this.#answers = answers;
    this.#reader = new FrameReader((frame) => {
      if (!this.#isOver) sink.frame(frame);
    });
  }

  head(status: number): void {
    this.#status = status;
  }

  data(part: Buffer): boolean {
    if (this.#status !== 200 || this.#isOver) return true;
    try {
      this.#reader.push(part);
    } catch (thrown) {
      this.#end(lost(reasonOf(thrown), 'unknown'));
    }
    this.#count(this.#reader.heldBytes);
    return true;
  }

  end(): void {
    this.#end(this.#status === 200 ? undefined : lost(`its node answered ${this.#status}`, 'no'));
  }

  failed(error: GatewayError): void {
    const { code, facts, delivered } = error;
    if (code === 'BACKEND_UNAVAILABLE') this.#end(error);
    else this.#end(lost(`its node: ${facts.reason ?? 'no answer'}`, delivered));
  }

  notHolder(): void {
    this.#end(lost('its node has left', 'no'));
  }

  #count(bytes: number): void {
    if (this.#holding === undefined && bytes <= UNCOUNTED_BYTES) return;
    this.#holding ??= this.#answers?.hold(() => this.#end(lost(ANSWERS_HOLD_TOO_MUCH, 'unknown')));
    if (this.#holding?.set(bytes) === false) this.#end(lost(ANSWERS_HOLD_TOO_MUCH, 'unknown'));
  }

  #end(error: GatewayError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#holding?.release();
    queueMicrotask(() => this.#sink.ended(error)); // it may not have been sent yet
  }
}

/** An exchange under way, and the function that ends it. */
interface OpenExchange extends Linked {
  readonly forwarding: Forwarding;
  readonly subscriber: Subscriber<ExchangeEvent>;
}

/** The wanted conversation; without `profile` the one that all clients share. */
type Wanted = Omit<PeerConversationRequest, 'template' | 'id' | 'way'>;

class PeerConversation implements Conversation {
  readonly handshake: Handshake;
  readonly pid: number | undefined;
  readonly isIndependent: boolean | undefined;
  readonly endsAfterCall: boolean | undefined;
  /** True where other nodes may share the conversation: its node then keeps the subscriptions of all. */
  readonly countsOwners: boolean;
  otherCalls = 0;
  readonly #link: Link;
  readonly #id: string;
  readonly #ownerId: string;
  readonly #stream: Forwarding;
  readonly #sharesExchanges: boolean;
  readonly #messages = new Subject<ServerMessage>();
  readonly #closed = new ReplaySubject<Closed>(1);
  readonly messages$: Observable<ServerMessage> = this.#messages;
  readonly closed$: Observable<Closed> = this.#closed;
  readonly #exchanges = new LinkedSet<OpenExchange>();
  /** Notifications and replies under way. */
  #notices = 0;
  /** Replies that wait until fewer notifications and replies are under way. */
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isClosed = false;

  private constructor(
    link: Link,
    ownerId: string,
    { profile, isShared = false }: Wanted,
    stream: Forwarding,
    opened: OpenedConversation,
  ) {
    this.countsOwners = profile === undefined || isShared;
    this.handshake = link.handshakeOf(opened);
    this.pid = opened.pid;
    this.isIndependent = opened.isIndependent;
    this.endsAfterCall = opened.endsAfterCall;
    this.#link = link;
    this.#id = opened.conversation;
    this.#ownerId = ownerId;
    this.#stream = stream;
    this.#sharesExchanges = opened.sharesExchanges === true;
  }

  /** Undefined when the backend has no dedicated conversations. */
  static open(
    link: Link,
    ownerId: string,
    wanted: Wanted,
    signal: AbortSignal,
    onDuty?: (duty: HostDuty) => void,
  ): Promise<PeerConversation | undefined> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(openingCancelled());
        return;
      }
      let opened: PeerConversation | undefined;
      let end: Closed | undefined;
      const cancel = (): void => {
        stream.cancel();
        reject(openingCancelled());
      };
      const settle = (): void => signal.removeEventListener('abort', cancel);
      const body = Buffer.from(JSON.stringify({ ...link.target, ...wanted }));
      const stream = link.send(
        INSTANCE_PATHS.conversation,
        body,
        ownerId,
        {
          frame: (frame) => {
            if (frame.kind === 'opened') {
              settle();
              opened = new PeerConversation(link, ownerId, wanted, stream, frame);
              resolve(opened);
            } else if (frame.kind === 'none') {
              settle();
              resolve(undefined);
            } else if (frame.kind === 'failed') {
              settle();
              reject(errorIn(frame.failure, 'no'));
            } else if (frame.kind === 'duty') onDuty?.(frame);
            else if (frame.kind === 'closed') end = closedIn(frame);
            else opened?.receive(frame);
          },
          ended: (error) => {
            settle();
            stream.cancel();
            reject(error ?? notConnected());
            opened?.end(
              end ?? { reason: error?.facts.reason ?? 'its node closed it', isExpected: false },
              end === undefined,
            );
          },
        },
        { isStream: true },
      );
      signal.addEventListener('abort', cancel);
    });
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable<ExchangeEvent>((subscriber) => {
      if (this.#isClosed) return subscriber.error(notConnected());
      request.trace?.speaks(this.handshake.protocolVersion);
      let cut: string | undefined;
      const sink: FrameSink = {
        frame: (frame) => {
          if (frame.kind === 'result') {
            subscriber.next({ kind: 'result', result: frame.result, ...definedFields({ cut }) });
            subscriber.complete();
          } else if (frame.kind === 'error') {
            const { error, refusal } = frame;
            subscriber.next({ kind: 'error', error, ...definedFields({ refusal }) });
            subscriber.complete();
          } else if (frame.kind === 'failed') subscriber.error(errorIn(frame.failure, 'unknown'));
          else if (frame.kind === 'cut') cut = frame.cut;
          else if (frame.kind === 'interrupted') subscriber.next(frame);
          else if (frame.kind === 'notification') subscriber.next(frame);
          else if (frame.kind === 'question') subscriber.next(this.#question(frame));
        },
        ended: (error) => subscriber.error(error ?? lost('its node ended the answer', 'unknown')),
      };
      let forwarding: Forwarding;
      try {
        const body = exchangeBody(this.#id, request);
        const { callerId = NO_CALLER, requestId, mayBeSent } = request;
        const options = { requestId, mayShare: this.#sharesExchanges, mayBeSent };
        forwarding = this.#link.send(INSTANCE_PATHS.exchange, body, callerId, sink, options);
      } catch (thrown) {
        return subscriber.error(notWritable(thrown));
      }
      const exchange: OpenExchange = { forwarding, subscriber };
      this.#exchanges.add(exchange);
      return () => {
        this.#exchanges.delete(exchange);
        forwarding.cancel();
      };
    });
  }

  notify(method: string, params: JsonObject, ownerId = this.#ownerId): void {
    const body: NotificationRequest = { conversation: this.#id, method, params };
    // Nothing waits for a notification: beyond the bound it is dropped.
    if (this.#notices < MAX_NOTICES) this.#notice(INSTANCE_PATHS.notification, bytesOf({ ...body }), ownerId);
  }

  async close(): Promise<void> {
    this.#stream.cancel();
    this.end(CLOSED_BY_GATEWAY, true);
  }

  /** `endsExchanges`: else those under way still get their answers from the other node. Idempotent. */
  end(closed: Closed, endsExchanges: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (endsExchanges)
      for (const { forwarding, subscriber } of this.#exchanges.values()) {
        const delivered = forwarding.isSent ? 'unknown' : 'no';
        forwarding.cancel();
        subscriber.error(lost(closed.reason, delivered));
      }
    this.#messages.complete();
    this.#closed.next(closed);
    this.#closed.complete();
  }

  receive(frame: PeerFrame): void {
    if (frame.kind === 'notification') this.#messages.next(frame);
    else if (frame.kind === 'load') this.otherCalls = frame.otherCalls;
    else if (frame.kind !== 'question') return;
    else if (this.#messages.observed) this.#messages.next(this.#question(frame));
    else this.#question(frame).answer(QUESTION_REFUSALS.undeclared);
  }

  #question(frame: Extract<PeerFrame, { kind: 'question' }>): ServerRequest {
    const { question } = frame;
    return serverRequest(frame, (reply) => this.#answer({ conversation: this.#id, question, reply }));
  }

  /** A call of the backend needs it, so beyond the bound it waits instead of being dropped; a large one becomes a refusal. */
  #answer(request: ClientAnswerRequest): void {
    let body = bytesOf({ ...request });
    if (this.#notices < MAX_NOTICES) {
      this.#notice(INSTANCE_PATHS.reply, body, this.#ownerId);
      return;
    }
    if (this.#waitingBytes + body.length > WAITING_BYTES)
      body = bytesOf({ ...request, reply: QUESTION_REFUSALS.undeclared });
    if (this.#waiting.length >= MAX_QUESTIONS) return; // the other node has no more open questions
    this.#waiting.push(body);
    this.#waitingBytes += body.length;
  }

  /** Sends a notification or a reply, which have no answer. */
  #notice(path: string, body: Buffer, callerId: string): void {
    if (this.#isClosed) return;
    this.#notices += 1;
    const ended = (): void => {
      this.#notices -= 1;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingBytes -= next.length;
      this.#notice(INSTANCE_PATHS.reply, next, this.#ownerId);
    };
    this.#link.send(path, body, callerId, { frame: () => {}, ended }, { mayShare: this.#sharesExchanges });
  }
}

function bytesOf(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function lost(reason: string, delivered: Delivered): GatewayError {
  const health = delivered === 'unknown' ? 'suspicious' : undefined;
  return backendUnavailable(reason, { delivered, ...definedFields({ health }) });
}
