// Serves what other nodes send to the instances of this one: opens conversations, passes on exchanges as single attempts, and streams back
// what comes. A token has the rights of one caller, or of the sending node itself, whose id is empty; they are checked here. Source: ADR 170.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Subscription } from 'rxjs';
import { mayDo, mayUse, type Principal } from '../../domain/account.ts';
import type { ServerRequest } from '../../domain/client.ts';
import { backendUnavailable, templateNotFound, tooManyMessages } from '../../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
import type { AttemptTrace, ExchangeRequest, TraceFields } from '../../domain/exchange.ts';
import type { ForwardedCaller } from '../../domain/forwarding.ts';
import { type ByteBudget, NO_CALLER } from '../../domain/held-bytes.ts';
import { isJsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { REFUSED } from '../../transports/handshake.ts';
import type { HostedConversation, InstanceHost, InstanceWay } from '../../transports/instance-host.ts';
import { exchangeIn, failureOf, frameOf, objectIn, type PeerFrame } from './peer-frames.ts';
import type { PeerRefusal, ServePeer } from './peer-listener.ts';
import { INSTANCE_PATHS, MAX_QUESTIONS } from './peer-protocol.ts';

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

export function serveInstances(host: InstanceHost, onRefused: (refusal: PeerRefusal) => void): ServePeer {
  const conversations = new Map<string, Held>();
  const ways = new Map<string, Way>();
  let questions = 0;
  /** Of those that clients share. */
  const backends = new WeakMap<HostedConversation['upstream'], string>();

  /** The number of the question; undefined for one that is refused, because too many are open. */
  const ask = (held: Held, question: ServerRequest, response: ServerResponse): number | undefined => {
    if (held.questions.size >= MAX_QUESTIONS) {
      question.answer(REFUSED);
      return undefined;
    }
    questions += 1;
    held.questions.set(questions, question);
    const { method, params } = question;
    write(response, { kind: 'question', question: questions, method, params });
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
    const { upstream, duty$, otherCalls$, closed$ } = hosted;
    const { peer, pid, isIndependent, endsAfterCall } = upstream;
    const backend = profile === undefined ? (backends.get(upstream) ?? name) : undefined;
    if (backend !== undefined) backends.set(upstream, backend);
    const opened = { conversation: name, backend, peer, pid, isIndependent, endsAfterCall };
    response.write(frameOf({ kind: 'opened', ...opened }));
    const following = new Subscription();
    response.once('close', () => {
      following.unsubscribe();
      conversations.delete(name);
      hosted.release();
    });
    following.add(duty$.subscribe((duty) => write(response, { kind: 'duty', ...duty })));
    following.add(otherCalls$.subscribe((otherCalls) => write(response, { kind: 'load', otherCalls })));
    following.add(
      upstream.messages$.subscribe((message) => {
        if (message.kind === 'request') ask(held, message, response);
        else write(response, message);
      }),
    );
    following.add(closed$.subscribe((closed) => response.end(frameOf({ kind: 'closed', ...closed }))));
  };

  const exchange = (body: Buffer, response: ServerResponse, caller: ForwardedCaller): void => {
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
            if (event.cut !== undefined) response.write(frameOf({ kind: 'cut', cut: event.cut }));
            response.end(frameOf({ kind: 'result', result: event.result }));
            return;
          case 'error':
            response.end(frameOf(event));
            return;
          case 'request': {
            const question = ask(held, event, response);
            if (question !== undefined) asked.add(question);
            return;
          }
          default:
            write(response, event);
        }
      },
      error: (thrown) => fail(response, asGatewayError(thrown)),
      complete: () => {
        if (!response.writableEnded) response.destroy();
      },
    });
    response.once('close', () => {
      subscription.unsubscribe();
      for (const question of asked) held.questions.delete(question);
    });
  };

  const note = (path: string | undefined, body: Buffer, caller: ForwardedCaller): void => {
    const { conversation, method, params, question, reply } = Object(objectIn(body));
    const held = heldOf(conversation, caller);
    if (path === INSTANCE_PATHS.reply) {
      const asked = held.questions.get(Number(question));
      held.questions.delete(Number(question));
      asked?.answer(reply);
    } else if (typeof method === 'string' && isJsonObject(params))
      held.hosted.upstream.notify(method, params, caller.principal.id);
  };

  return (request, response, caller) => {
    const refused = (refusal: Pick<PeerRefusal, 'reason' | 'status' | 'instance'>): void => {
      const { method = '', url: path = '', socket } = request;
      onRefused({ ...refusal, method, path, caller: caller.principal.id, address: socket.remoteAddress });
    };
    const fails = (thrown: unknown): void => {
      if (thrown instanceof Refused) refused(thrown);
      fail(response, asGatewayError(thrown instanceof Refused ? thrown.cause : thrown));
    };
    if (!mayDo(caller.principal, ['tools:call'])) {
      refused({ reason: 'unauthorized caller', status: 403 });
      response.writeHead(403, { 'Content-Length': 0 }).end();
      return;
    }
    readBody(request, response, host.requestBytes, caller.principal.id)
      .then((body) => {
        response.setHeader('Content-Type', 'application/octet-stream');
        if (request.url === INSTANCE_PATHS.conversation) return converse(body, response, caller);
        if (request.url === INSTANCE_PATHS.exchange) return exchange(body, response, caller);
        note(request.url, body, caller);
        response.end();
        return undefined;
      })
      .catch(fails);
  };
}

/** A request that no node sends, unless what it knows of the instance is old: the audit log records it. */
class Refused extends Error {
  readonly reason: PeerRefusal['reason'];
  readonly status: number;
  readonly instance: string;
  override readonly cause: GatewayError;

  constructor(reason: PeerRefusal['reason'], status: number, instance: string, cause: GatewayError) {
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

/** Its bytes count until the end of the answer. QUEUE_FULL. */
async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  budget: ByteBudget,
  callerId: string,
): Promise<Buffer> {
  const bytes = Number(request.headers['content-length']);
  if (!(bytes <= REQUEST_BYTES) || !budget.take(callerId, bytes)) throw tooManyMessages();
  response.once('close', () => budget.add(callerId, -bytes));
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

/** Breaks the answer off when the other node does not read it. */
function write(response: ServerResponse, frame: PeerFrame): void {
  if (response.writableEnded || response.destroyed) return;
  response.write(frameOf(frame));
  if (response.writableLength > UNREAD_BYTES) response.destroy();
}

function fail(response: ServerResponse, error: GatewayError): void {
  if (!response.writableEnded && !response.destroyed)
    response.end(frameOf({ kind: 'failed', failure: failureOf(error) }));
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
