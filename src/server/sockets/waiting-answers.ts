// Answers to pipelined requests that wait for the one before on their connection.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Requests of one connection that wait for the answer before them. Over it the connection is closed. Node makes all that it has
 * read in one turn of the event loop, and a new connection is accepted once a turn: some hundred connections with a thousand
 * requests each made it wait for seconds. Clients pipeline a few. Source: ADR 398.
 */
export const MAX_PIPELINED_REQUESTS = 100;
/**
 * The most bytes of all pipelined requests that wait. Beyond it a connection that adds some, and has more than the largest
 * headers of one request, is closed.
 */
export const MAX_PIPELINED_BYTES = 32 * 1024 * 1024;
/** The bytes of such a request besides its target and headers. Source: ADR 398. */
export const PIPELINED_REQUEST_BYTES = 4 * 1024;

/**
 * Closes pipelined answers whose turn has not come when their connection ends: Node 22 emits no `close` for them,
 * so that the bodies and the calls of their requests would be held forever. One listener per connection, so that
 * each costs the same, however many wait.
 */
export class WaitingAnswers {
  readonly #onConnection = new WeakMap<Socket, Map<ServerResponse, number>>();
  readonly #headerBytes: number;
  /** The bytes of all waiting requests. */
  #bytes = 0;

  /** `headerBytes`: of the largest headers of one request. */
  constructor(headerBytes: number) {
    this.#headerBytes = headerBytes;
  }

  /**
   * Closes the connection when too many requests wait on it, or when all that wait take too much memory; then a
   * connection with no more than the headers that one request may have stays open, so that others cannot have it closed.
   */
  add(socket: Socket, response: ServerResponse): void {
    const waiting = this.#onConnection.get(socket) ?? new Map<ServerResponse, number>();
    if (!this.#onConnection.has(socket)) {
      this.#onConnection.set(socket, waiting);
      withoutTraces(socket);
      socket.once('close', () => setImmediate(() => [...waiting.keys()].forEach(close)));
    }
    const { url = '', rawHeaders } = response.req;
    const bytes = PIPELINED_REQUEST_BYTES + url.length + rawHeaders.join().length;
    const leave = () => {
      if (waiting.delete(response)) this.#bytes -= bytes;
    };
    waiting.set(response, bytes);
    this.#bytes += bytes;
    response.once('socket', leave).once('close', leave);
    const isTooMuch = this.#bytes > MAX_PIPELINED_BYTES && sum(waiting) > this.#headerBytes;
    if (waiting.size > MAX_PIPELINED_REQUESTS || isTooMuch) socket.destroy();
  }
}

function sum(bytes: ReadonlyMap<ServerResponse, number>): number {
  return [...bytes.values()].reduce((total, one) => total + one, 0);
}

/**
 * Leaves the traces out of errors of this socket. When a connection ends, Node makes an error for each request that it has read
 * from it; with their traces, 400 requests on each of 1,900 connections take 10 s.
 */
function withoutTraces(socket: Socket): void {
  const { stackTraceLimit } = Error;
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
}

function close(response: ServerResponse): void {
  if (response.closed) return;
  response.destroy();
  response.emit('close');
}
