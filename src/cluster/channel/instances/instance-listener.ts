// Serves what other nodes send to the instances of this one: opens conversations, passes on exchanges as single
// attempts, and streams back what comes. A token has the rights of one caller, or of the sending node itself,
// whose id is empty; they are checked here. Source: ADR 170.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Subscription } from 'rxjs';
import { mayDo, type Principal } from '../../../domain/accounts/account.ts';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { AttemptTrace, TraceFields } from '../../../domain/calls/request-trace.ts';
import {
  backendUnavailable,
  templateNotFound,
  tooManyMessages,
} from '../../../domain/errors/error-catalogue.ts';
import { asGatewayError, type GatewayError } from '../../../domain/errors/errors.ts';
import { isJsonObject } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { ServerRequest } from '../../../domain/mcp/client.ts';
import type { ByteBudget } from '../../../domain/memory/held-bytes.ts';
import { NO_CALLER } from '../../../domain/memory/user-shares.ts';
import type { ForwardedCaller } from '../../../domain/nodes/forwarding.ts';
import { mayUse } from '../../../domain/rights/rights.ts';
import { REFUSED } from '../../../transports/caller-messages.ts';
import type { ExchangeAnswer, ServeExchange } from '../multiplexed/multiplexed-listener.ts';
import type { PeerRefusal, ServePeer } from '../peer-listener.ts';
import { INSTANCE_PATHS, MAX_QUESTIONS } from '../peer-protocol.ts';
import type { HostedConversation, InstanceHost, InstanceWay } from './instance-host.ts';
import { exchangeIn, failureOf, frameOf, objectIn, type PeerFrame } from './peer-frames.ts';

/** Bytes of messages besides results that a node leaves unread before its answer breaks off. */
const UNREAD_BYTES = 16 * 1024 * 1024;
/** Largest request: the body of a client, and what the channel adds to it. */
const REQUEST_BYTES = 2 * LIMITS.requestBodyBytes;
/** A connection without a sign of life for this time is probed by the system. */
const KEEP_ALIVE_DELAY_MS = 10_000;

/** A conversation that another node has open. */
interface Held {
  readonly template: string;
  readonly hosted: HostedConversation;
  /** Questions to the client, by number. */
  readonly questions: Map<number, ServerRequest>;
}

/** With the conversations that were opened through it. */
interface Way extends InstanceWay {
  conversations: number;
}

/** What other nodes reach of the instances of this one. */
export interface ServedInstances {
  /** A request on a connection of its own. */
  readonly request: ServePeer;
  /** One on a connection that exchanges share. */
  readonly exchange: ServeExchange;
}

export function serveInstances(
  host: InstanceHost,
  onRefused: (refusal: PeerRefusal) => void,
): ServedInstances {
  const conversations = new Map<string, Held>();
  const ways = new Map<string, Way>();
  let questions = 0;
  /** Backends of the conversations that clients share. */
  const backends = new WeakMap<HostedConversation['conversation'], string>();

  /** The number of the question; undefined for one that is refused, because too many are open. */
  const ask = (held: Held, question: ServerRequest, answer: ExchangeAnswer): number | undefined => {
    if (held.questions.size >= MAX_QUESTIONS) {
      question.answer(REFUSED);
      return undefined;
    }
    questions += 1;
    held.questions.set(questions, question);
    const { method, params } = question;
    write(answer, { kind: 'question', question: questions, method, params });
    return questions;
  };

  const enter = (id: string): Way => {
    const way = ways.get(id) ?? { calls: 0, conversations: 0 };
    way.conversations += 1;
    ways.set(id, way);
    return way;
  };
  const leave = (id: string): void => {
    const way = ways.get(id);
    if (way === undefined) return;
    way.conversations -= 1;
    if (way.conversations === 0) ways.delete(id);
  };

  /** The conversation of a request; throws for one that has ended, or whose template its caller may not use. */
  const heldOf = (id: unknown, { principal }: ForwardedCaller): Held => {
    const held = typeof id === 'string' ? conversations.get(id) : undefined;
    if (held === undefined) throw backendUnavailable('its conversation has ended', { delivered: 'no' });
    checkTemplate(principal, held.template);
    return held;
  };

  const converse = async (body: Buffer, response: ServerResponse, caller: ForwardedCaller): Promise<void> => {
    const name = randomUUID();
    const { template = '', id = '', profile, isShared = false, way: wayId = name } = Object(objectIn(body));
    const answer = new OwnAnswer(response);
    checkTemplate(caller.principal, template, id);
    if (!host.has(template, id)) {
      const error = backendUnavailable('its node does not have it', { delivered: 'no' });
      throw new Refused('unknown instance', 404, `${template}/${id}`, error);
    }
    const ending = new AbortController();
    response.once('close', () => ending.abort());
    response.socket?.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    const way = enter(wayId);
    response.once('close', () => leave(wayId));
    const wanted = { template, id, profile, isShared, ownerId: caller.principal.id, way };
    const hosted = await host.open(wanted, ending.signal);
    if (hosted === undefined) {
      response.end(frameOf({ kind: 'none' }));
      return;
    }
    if (ending.signal.aborted) {
      hosted.release();
      return;
    }
    const held: Held = { template, hosted, questions: new Map() };
    conversations.set(name, held);
    const { conversation, duty$, otherCalls$, closed$ } = hosted;
    const { handshake, pid, isIndependent, endsAfterCall } = conversation;
    const backend = profile === undefined ? (backends.get(conversation) ?? name) : undefined;
    if (backend !== undefined) backends.set(conversation, backend);
    const opened = {
      conversation: name,
      backend,
      peer: handshake,
      pid,
      isIndependent,
      endsAfterCall,
      sharesExchanges: true,
    };
    response.write(frameOf({ kind: 'opened', ...opened }));
    const following = new Subscription();
    response.once('close', () => {
      following.unsubscribe();
      conversations.delete(name);
      hosted.release();
    });
    following.add(duty$.subscribe((duty) => write(answer, { kind: 'duty', ...duty })));
    following.add(otherCalls$.subscribe((otherCalls) => write(answer, { kind: 'load', otherCalls })));
    following.add(
      conversation.messages$.subscribe((message) => {
        if (message.kind === 'request') ask(held, message, answer);
        else write(answer, message);
      }),
    );
    following.add(closed$.subscribe((closed) => response.end(frameOf({ kind: 'closed', ...closed }))));
  };

  const exchange = (body: Buffer, answer: ExchangeAnswer, caller: ForwardedCaller): void => {
    const { conversation, request, trace } = exchangeIn(body);
    const held = heldOf(conversation, caller);
    const { principal, requestId } = caller;
    const asked = new Set<number>();
    const sent: ExchangeRequest = {
      ...request,
      requestId,
      caller: principal.id === NO_CALLER ? undefined : principal.id,
      ...(trace === undefined ? {} : { trace: passedTrace(trace) }),
    };
    const subscription = held.hosted.exchange(sent).subscribe({
      next: (event) => {
        switch (event.kind) {
          case 'result':
            if (event.cut !== undefined) answer.write(frameOf({ kind: 'cut', cut: event.cut }));
            answer.end(frameOf({ kind: 'result', result: event.result }));
            return;
          case 'error':
            answer.end(frameOf(event));
            return;
          case 'request': {
            const question = ask(held, event, answer);
            if (question !== undefined) asked.add(question);
            return;
          }
          default:
            write(answer, event);
        }
      },
      error: (thrown) => fail(answer, asGatewayError(thrown)),
      complete: () => answer.breakOff(),
    });
    answer.onOver(() => {
      subscription.unsubscribe();
      for (const question of asked) held.questions.delete(question);
    });
  };

  const note = (path: string, body: Buffer, caller: ForwardedCaller): void => {
    const { conversation, method, params, question, reply } = Object(objectIn(body));
    const held = heldOf(conversation, caller);
    if (path === INSTANCE_PATHS.reply) {
      const asked = held.questions.get(Number(question));
      held.questions.delete(Number(question));
      asked?.answer(reply);
    } else if (typeof method === 'string' && isJsonObject(params))
      held.hosted.conversation.notify(method, params, caller.principal.id);
  };

  /** What the request of a caller comes to, when it is not served. */
  const failing =
    (answer: ExchangeAnswer, request: Pick<PeerRefusal, 'method' | 'path' | 'caller' | 'address'>) =>
    (thrown: unknown): void => {
      if (thrown instanceof Refused) {
        const { reason, status, instance, cause } = thrown;
        onRefused({ ...request, reason, status, instance });
        fail(answer, cause);
      } else fail(answer, asGatewayError(thrown));
    };

  const serve = (path: string, body: Buffer, answer: ExchangeAnswer, caller: ForwardedCaller): void => {
    if (path === INSTANCE_PATHS.exchange) {
      exchange(body, answer, caller);
      return;
    }
    note(path, body, caller);
    answer.end();
  };

  return {
    request: (request, response, { principal, ...others }) => {
      const { method = '', url: path = '', socket } = request;
      const refused = { method, path, caller: principal.id, address: socket.remoteAddress };
      const caller = { principal, ...others };
      if (!mayDo(principal, ['tools:call'])) {
        onRefused({ reason: 'unauthorized caller', status: 403, ...refused });
        response.writeHead(403, { 'Content-Length': 0 }).end();
        return;
      }
      const answer = new OwnAnswer(response);
      const fails = failing(answer, refused);
      const served = (body: Buffer): void => {
        response.setHeader('Content-Type', 'application/octet-stream');
        if (path === INSTANCE_PATHS.conversation) converse(body, response, caller).catch(fails);
        else serve(path, body, answer, caller);
      };
      try {
        count(host.requestBytes, principal.id, Number(request.headers['content-length']), answer);
        readBody(request, served, fails);
      } catch (thrown) {
        fails(thrown);
      }
    },
    exchange: (path, body, answer, caller) => {
      const { principal } = caller;
      const fails = failing(answer, { method: 'POST', path, caller: principal.id, address: undefined });
      try {
        if (!mayDo(principal, ['tools:call'])) throw unauthorized();
        count(host.requestBytes, principal.id, body.length, answer);
        serve(path, body, answer, caller);
      } catch (thrown) {
        fails(thrown);
      }
    },
  };
}

/** A request that no node sends, unless what it knows of the instance is old: the audit log records it. */
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

/** The bytes of a request count until the end of the answer. QUEUE_FULL. */
function count(budget: ByteBudget, callerId: string, bytes: number, answer: ExchangeAnswer): void {
  if (!(bytes <= REQUEST_BYTES) || !budget.take(callerId, bytes)) throw tooManyMessages();
  answer.onOver(() => budget.add(callerId, -bytes));
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
    this.#response.once('close', listener);
  }
}

/** Breaks the answer off when the other node does not read it. */
function write(answer: ExchangeAnswer, frame: PeerFrame): void {
  if (answer.isOver) return;
  answer.write(frameOf(frame));
  if (answer.unreadBytes > UNREAD_BYTES) answer.breakOff();
}

function fail(answer: ExchangeAnswer, error: GatewayError): void {
  if (!answer.isOver) answer.end(frameOf({ kind: 'failed', failure: failureOf(error) }));
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
