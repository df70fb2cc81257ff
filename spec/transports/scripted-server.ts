// Backends over HTTP that answer each method as the spec defines, and answers that many specs share.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { JsonObject } from '../../src/domain/json/json.ts';
import { answerJson, messageOf } from './raw-server.ts';

/** One request; the id and the method are those of its message. */
export interface Asked {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: JsonObject;
  readonly request: IncomingMessage;
}

/** What a server does with one request. */
export type Answer = (response: ServerResponse, asked: Asked) => unknown;

/** Answers by method; `GET` and `DELETE` are methods, too. `otherwise`: to requests of any other. */
export type Answers = Readonly<Record<string, Answer>>;

/**
 * By default notifications are accepted, GET and DELETE refused with 405, other methods unknown. `asked` records all but GET. `read`:
 * reads the message of a POST; default: all of it.
 */
export function serving(answers: Answers, asked: string[] = [], read = messageOf): RequestListener {
  return async (request, response) => {
    const { method: verb } = request;
    const message = verb === 'POST' ? await read(request) : { method: verb };
    const method = String(message.method);
    if (verb !== 'GET') asked.push(method);
    const { otherwise = refused() } = answers;
    const usual = verb === 'POST' ? ('id' in message ? otherwise : status(202)) : status(405);
    (answers[method] ?? usual)(response, { ...message, request });
  };
}

export function result(value: object, headers: object = {}): Answer {
  return (response, { id }) => answerJson(response, 200, { jsonrpc: '2.0', id, result: value }, headers);
}

/** An error; `of`: the id in it, null for none. Default: that of the request. */
export function refused(httpStatus = 200, code = -32601, of?: number | null): Answer {
  return (response, { id }) => {
    const error = { code, message: 'no' };
    answerJson(response, httpStatus, { jsonrpc: '2.0', id: of === undefined ? id : of, error });
  };
}

/** No message at all. */
export function status(code: number, body = ''): Answer {
  return (response) =>
    response.writeHead(code, { location: '/elsewhere', 'content-type': 'text/html' }).end(body);
}

export const SESSION = { 'mcp-session-id': 'given' };
const LEGACY = { protocolVersion: '2025-11-25', capabilities: {} };
const MODERN = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, resultType: 'complete' };

/** Answers to `initialize`, to `server/discover`, and to any method. */
export const initialized = result(LEGACY);
export const discovered = result(MODERN);
export const silence: Answer = () => undefined;
export const cut: Answer = (response) => response.socket?.resetAndDestroy();
