// An instance of another node as a transport: its conversations are those of the instance there, and an exchange
// is one attempt there, which is never repeated here. A conversation lasts as long as one streamed answer: its end
// at either side is the end of the conversation. Source: ADR 170.

import { Observable, ReplaySubject, Subject, type Subscriber } from 'rxjs';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import { notConnected, openingCancelled } from '../../../domain/errors/backend-errors.ts';
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
import { type Linked, LinkedSet } from '../../../domain/memory/linked-set.ts';
import { NO_CALLER } from '../../../domain/memory/user-shares.ts';
import type { Forwarding } from '../../../domain/nodes/forwarding.ts';
import {
  CLOSED_BY_GATEWAY,
  type Closed,
  type Conversation,
  type ConversationOpening,
  type Transport,
} from '../../../transports/transport.ts';
import { INSTANCE_PATHS, MAX_QUESTIONS } from '../peer-protocol.ts';
import {
  type ClientAnswerRequest,
  closedIn,
  errorIn,
  exchangeBody,
  type NotificationRequest,
  type OpenedConversation,
  type PeerConversationRequest,
  type PeerFrame,
} from './peer-frames.ts';
import { answerLost, type FrameSink, PeerLink, type PeerLinkOptions } from './peer-link.ts';

/** Notifications and replies of one conversation that are under way; more are dropped. */
const MAX_NOTICES = 64;
/** Bytes of the replies of one conversation that wait. */
const WAITING_BYTES = 1024 * 1024;

interface PeerTransportOptions extends PeerLinkOptions {
  readonly definition: Pick<InstanceDefinition, 'template' | 'id' | 'transport'>;
  readonly signal: AbortSignal;
  /** See OpeningHooks. */
  readonly onDuty?: ((duty: HostDuty) => void) | undefined;
}

/**
 * Opens the conversation that clients share. Throws the error of the other node, or BACKEND_UNAVAILABLE,
 * `delivered: 'no'`.
 */
export async function openPeerTransport(options: PeerTransportOptions): Promise<Transport> {
  const link = new PeerLink(options);
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
  readonly #link: PeerLink;
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
    link: PeerLink,
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

  /** Resolves with undefined when the backend has no dedicated conversations. */
  static open(
    link: PeerLink,
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
            if (frame.kind === 'opened' && opened === undefined) {
              settle();
              opened = new PeerConversation(link, ownerId, wanted, stream, frame);
              resolve(opened);
            } else if (frame.kind === 'none') {
              settle();
              stream.cancel();
              resolve(undefined);
            } else if (frame.kind === 'failed') {
              settle();
              stream.cancel();
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
      let isOver = false;
      const sink: FrameSink = {
        frame: (frame) => {
          isOver = frame.kind === 'result' || frame.kind === 'error' || frame.kind === 'failed';
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
        ended: (error) => subscriber.error(error ?? answerLost('its node ended the answer', 'unknown')),
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
        if (!isOver) forwarding.cancel(); // else the end of the answer follows
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
        subscriber.error(answerLost(closed.reason, delivered));
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
