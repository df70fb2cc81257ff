// Serves the requests of other nodes to the instances of this one: opens conversations, passes on exchanges as single attempts,
// and streams the answers back.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Subscription } from 'rxjs';
import { mayDo, type Principal } from '../../../domain/accounts/principal.ts';
import { mayUse } from '../../../domain/accounts/rights.ts';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { AttemptTrace, TraceFields } from '../../../domain/calls/request-trace.ts';
import { backendUnavailable } from '../../../domain/errors/backend-errors.ts';
import { asGatewayError, type GatewayError } from '../../../domain/errors/errors.ts';
import { templateNotFound } from '../../../domain/errors/registry-errors.ts';
import { tooManyMessages } from '../../../domain/errors/request-errors.ts';
import { isJsonObject } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { QUESTION_REFUSALS, type ServerRequest } from '../../../domain/mcp/client.ts';
import { NO_CALLER, type UserShares } from '../../../domain/memory/user-shares.ts';
import type { ForwardedCaller } from '../../../domain/nodes/forwarding.ts';
import type { ExchangeAnswer, ServeExchange } from '../multiplexed/multiplexed-listener.ts';
import type { PeerRefusal, ServedInstances, ServePeer } from '../peer-admission.ts';
import { INSTANCE_PATHS, MAX_QUESTIONS, PEER_KEEP_ALIVE_MS } from '../peer-protocol.ts';
import type { HostedConversation, InstanceHost, NodeLink } from './instance-host.ts';
import { closedFrame, exchangeIn, failureToSend, frameOf, objectIn, type PeerFrame } from './peer-frames.ts';

/** Bytes of messages besides results that a node leaves unread before its answer breaks off. */
const UNREAD_BYTES = 16 * 1024 * 1024;
/** The largest request: the body of a client, and the fields that the channel adds to it. */
const REQUEST_BYTES = 2 * LIMITS.requestBodyBytes;

type RefusedRequest = Pick<PeerRefusal, 'method' | 'path' | 'callerId' | 'address'>;

/**
 * Takes the requests of all other nodes, and has the conversations that they keep here. A token has the rights of one
 * caller, or of the sending node itself, whose id is empty; they are checked here. Source: ADR 170.
 */
export class InstanceListener implements ServedInstances {
  readonly #host: InstanceHost;
  readonly #onRefused: (refusal: PeerRefusal) => void;
  readonly #conversations = new Map<string, OpenConversation>();
  readonly #links = new Map<string, NodeLink & { conversations: number }>();
  /** Backends of the conversations that clients share. */
  readonly #backends = new WeakMap<HostedConversation['conversation'], string>();

  constructor(host: InstanceHost, onRefused: (refusal: PeerRefusal) => void) {
    this.#host = host;
    this.#onRefused = onRefused;
  }

  readonly request: ServePeer = (request, response, caller) => {
    const { method = '', url: path = '', socket } = request;
    const { id: callerId } = caller.principal;
    const refused = { method, path, callerId, address: socket.remoteAddress };
    if (!mayDo(caller.principal, ['tools:call'])) {
      this.#onRefused({ reason: 'unauthorized caller', status: 403, ...refused });
      response.writeHead(403, { 'Content-Length': 0 }).end();
      return;
    }
    const answer = new OwnAnswer(response);
    const failed = (thrown: unknown): void => this.#fail(answer, refused, thrown);
    const serve = (body: Buffer): void => {
      response.setHeader('Content-Type', 'application/octet-stream');
      if (path === INSTANCE_PATHS.conversation) this.#converse(body, response, caller).catch(failed);
      else this.#serve(path, body, answer, caller);
    };
    try {
      count(this.#host.requestBytes, callerId, Number(request.headers['content-length']), answer);
      readBody(request, serve, failed);
    } catch (thrown) {
      failed(thrown);
    }
  };

  readonly exchange: ServeExchange = (path, body, answer, caller) => {
    const { principal } = caller;
    try {
      if (!mayDo(principal, ['tools:call'])) throw unauthorized();
      count(this.#host.requestBytes, principal.id, body.length, answer);
      this.#serve(path, body, answer, caller);
    } catch (thrown) {
      this.#fail(answer, { method: 'POST', path, callerId: principal.id, address: undefined }, thrown);
    }
  };

  /** Opens a conversation, which ends with the connection of its answer. */
  async #converse(body: Buffer, response: ServerResponse, caller: ForwardedCaller): Promise<void> {
    const name = randomUUID();
    const { template = '', id = '', profile, isShared = false, way: linkId = name } = Object(objectIn(body));
    checkTemplate(caller.principal, template, id);
    if (!this.#host.has(template, id)) {
      const error = backendUnavailable('its node does not have it', { delivered: 'no' });
      throw new Refused('unknown instance', 404, `${template}/${id}`, error);
    }
    const ending = new AbortController();
    response.once('close', () => ending.abort());
    response.socket?.setKeepAlive(true, PEER_KEEP_ALIVE_MS);
    const link = this.#enter(linkId);
    response.once('close', () => this.#leave(linkId));
    const wanted = { template, id, profile, isShared, ownerId: caller.principal.id, link };
    const hosted = await this.#host.open(wanted, ending.signal);
    if (hosted === undefined) {
      response.end(frameOf({ kind: 'none' }));
      return;
    }
    if (ending.signal.aborted) {
      hosted.release();
      return;
    }
    const open = new OpenConversation(template, hosted);
    this.#conversations.set(name, open);
    const backend = profile === undefined ? this.#backendOf(hosted, name) : undefined;
    response.write(openedFrame(name, backend, hosted));
    const following = open.follow(response);
    response.once('close', () => {
      following.unsubscribe();
      this.#conversations.delete(name);
      hosted.release();
    });
  }

  #serve(path: string, body: Buffer, answer: ExchangeAnswer, caller: ForwardedCaller): void {
    if (path === INSTANCE_PATHS.exchange) {
      this.#exchange(body, answer, caller);
      return;
    }
    this.#note(path, body, caller);
    answer.end();
  }

  #exchange(body: Buffer, answer: ExchangeAnswer, caller: ForwardedCaller): void {
    const { conversation, request, trace } = exchangeIn(body);
    const open = this.#conversationOf(conversation, caller);
    const { principal, requestId } = caller;
    open.exchange(
      {
        ...request,
        requestId,
        callerId: principal.id === NO_CALLER ? undefined : principal.id,
        ...(trace === undefined ? {} : { trace: passedTrace(trace) }),
      },
      answer,
    );
  }

  /** Handles messages without an answer: a notification, and the reply of a client to a question. */
  #note(path: string, body: Buffer, caller: ForwardedCaller): void {
    const { conversation, method, params, question, reply } = Object(objectIn(body));
    const open = this.#conversationOf(conversation, caller);
    if (path === INSTANCE_PATHS.reply) open.reply(Number(question), reply);
    else if (typeof method === 'string' && isJsonObject(params))
      open.hosted.conversation.notify(method, params, caller.principal.id);
  }

  /** The conversation of a request; throws for one that has ended, or whose template its caller may not use. */
  #conversationOf(id: unknown, { principal }: ForwardedCaller): OpenConversation {
    const open = typeof id === 'string' ? this.#conversations.get(id) : undefined;
    if (open === undefined) throw backendUnavailable('its conversation has ended', { delivered: 'no' });
    checkTemplate(principal, open.template);
    return open;
  }

  /** The name of the backend of a conversation that clients share: the first name that it was opened with. */
  #backendOf({ conversation }: HostedConversation, name: string): string {
    const backend = this.#backends.get(conversation) ?? name;
    this.#backends.set(conversation, backend);
    return backend;
  }

  #enter(id: string): NodeLink & { conversations: number } {
    const link = this.#links.get(id) ?? { calls: 0, conversations: 0 };
    link.conversations += 1;
    this.#links.set(id, link);
    return link;
  }

  #leave(id: string): void {
    const link = this.#links.get(id);
    if (link === undefined) return;
    link.conversations -= 1;
    if (link.conversations === 0) this.#links.delete(id);
  }

  /** Ends the answer of a request that is not served. */
  #fail(answer: ExchangeAnswer, request: RefusedRequest, thrown: unknown): void {
    if (thrown instanceof Refused) {
      const { reason, status, instance, cause } = thrown;
      this.#onRefused({ ...request, reason, status, instance });
      fail(answer, cause);
    } else fail(answer, asGatewayError(thrown));
  }
}

/** A conversation that another node has open. */
class OpenConversation {
  readonly template: string;
  readonly hosted: HostedConversation;
  /** The ways back of questions to the client that have no answer yet, by number. */
  readonly #questions = new Map<number, ServerRequest['answer']>();
  #lastQuestion = 0;

  constructor(template: string, hosted: HostedConversation) {
    this.template = template;
    this.hosted = hosted;
  }

  /** Writes the messages about the whole conversation, until it has ended. */
  follow(response: ServerResponse): Subscription {
    const { conversation, duty$, otherCalls$, closed$ } = this.hosted;
    const answer = new OwnAnswer(response);
    const following = new Subscription();
    following.add(duty$.subscribe((duty) => write(answer, { kind: 'duty', ...duty })));
    following.add(otherCalls$.subscribe((otherCalls) => write(answer, { kind: 'load', otherCalls })));
    following.add(
      conversation.messages$.subscribe((message) => {
        if (message.kind === 'request') this.#ask(message, answer);
        else write(answer, message);
      }),
    );
    following.add(closed$.subscribe((closed) => response.end(frameOf(closedFrame(closed)))));
    return following;
  }

  exchange(request: ExchangeRequest, answer: ExchangeAnswer): void {
    const asked = new Set<number>();
    const subscription = this.hosted.exchange(request).subscribe({
      next: (event) => {
        if (event.kind === 'result') {
          if (event.cut !== undefined) answer.write(frameOf({ kind: 'cut', cut: event.cut }));
          answer.end(frameOf({ kind: 'result', result: event.result }));
        } else if (event.kind === 'error') answer.end(frameOf(event));
        else if (event.kind === 'request') {
          const question = this.#ask(event, answer);
          if (question !== undefined) asked.add(question);
        } else write(answer, event);
      },
      error: (thrown) => fail(answer, asGatewayError(thrown)),
      complete: () => answer.breakOff(),
    });
    answer.onOver(() => {
      subscription.unsubscribe();
      for (const question of asked) this.#questions.delete(question);
    });
  }

  /** The answer of a client to the question with this number. */
  reply(question: number, reply: Parameters<ServerRequest['answer']>[0]): void {
    const answer = this.#questions.get(question);
    this.#questions.delete(question);
    answer?.(reply);
  }

  /** The number of the question; undefined for one that is refused, because too many are open. */
  #ask(question: ServerRequest, answer: ExchangeAnswer): number | undefined {
    if (this.#questions.size >= MAX_QUESTIONS) {
      question.answer(QUESTION_REFUSALS.undeclared);
      return undefined;
    }
    this.#lastQuestion += 1;
    const number = this.#lastQuestion;
    this.#questions.set(number, question.answer);
    const { method, params } = question;
    write(answer, { kind: 'question', question: number, method, params });
    return number;
  }
}

function openedFrame(
  name: string,
  backend: string | undefined,
  { conversation }: HostedConversation,
): Buffer {
  const { handshake, pid, isIndependent, endsAfterCall } = conversation;
  const opened = { conversation: name, backend, peer: handshake, pid, isIndependent, endsAfterCall };
  return frameOf({ kind: 'opened', ...opened, sharesExchanges: true });
}

/** The error for a request that no node sends, unless its knowledge of the instance is old: the audit log records it. */
class Refused extends Error {
  readonly reason: PeerRefusal['reason'];
  readonly status: number;
  readonly instance: string | undefined;
  override readonly cause: GatewayError;

  constructor(
    reason: PeerRefusal['reason'],
    status: number,
    instance: string | undefined,
    cause: GatewayError,
  ) {
    super(reason);
    this.reason = reason;
    this.status = status;
    this.instance = instance;
    this.cause = cause;
  }
}

function checkTemplate(principal: Principal, template: string, id = ''): void {
  if (mayUse(principal, template)) return;
  throw new Refused('unauthorized caller', 404, `${template}/${id}`, templateNotFound(String(template)));
}

function unauthorized(): Refused {
  const cause = backendUnavailable('its node refuses the caller', { delivered: 'no' });
  return new Refused('unauthorized caller', 403, undefined, cause);
}

/** The bytes of a request count until the end of the answer. Throws QUEUE_FULL. */
function count(budget: UserShares, callerId: string, bytes: number, answer: ExchangeAnswer): void {
  if (!(bytes <= REQUEST_BYTES) || !budget.take(callerId, bytes)) throw tooManyMessages();
  answer.onOver(() => budget.release(callerId, bytes));
}

/** Calls nothing when the connection ends before the body. */
function readBody(
  request: IncomingMessage,
  read: (body: Buffer) => void,
  failed: (thrown: unknown) => void,
): void {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.once('end', () => {
    const [first] = parts;
    try {
      read(parts.length === 1 && first !== undefined ? first : Buffer.concat(parts));
    } catch (thrown) {
      failed(thrown);
    }
  });
}

/** The answer on a connection of its own. */
class OwnAnswer implements ExchangeAnswer {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get isOver(): boolean {
    return this.#response.writableEnded || this.#response.destroyed;
  }

  get unreadBytes(): number {
    return this.#response.writableLength;
  }

  write(frame: Buffer): void {
    this.#response.write(frame);
  }

  end(frame?: Buffer): void {
    this.#response.end(frame);
  }

  breakOff(): void {
    if (!this.#response.writableEnded) this.#response.destroy();
  }

  onOver(listener: () => void): void {
    if (this.#response.destroyed) listener();
    else this.#response.once('close', listener);
  }
}

/** Breaks the answer off when the other node does not read it. */
function write(answer: ExchangeAnswer, frame: PeerFrame): void {
  if (answer.isOver) return;
  answer.write(frameOf(frame));
  if (answer.unreadBytes > UNREAD_BYTES) answer.breakOff();
}

function fail(answer: ExchangeAnswer, error: GatewayError): void {
  if (!answer.isOver) answer.end(frameOf({ kind: 'failed', failure: failureToSend(error) }));
}

/** The spans are those of the node that runs the call. */
function passedTrace(fields: TraceFields): AttemptTrace {
  const nothing = (): void => {};
  return {
    fields,
    speaks: nothing,
    answered: nothing,
    ended: nothing,
    post: () => ({ fields, ended: nothing }),
  };
}
