// One socket to a server, which carries one request at a time. It writes a request in one piece, and gives the parts that
// ResponseParser reads to the answer. After an answer the socket is free for the next one, unless the server closes it, sends
// more than the answer, or answered before it had the whole request. connection-pool.ts decides which request is sent on which
// connection.

import type { Socket } from 'node:net';
import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { MUCH_WORK_MS, type TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Connector } from './connector.ts';
import { closedEarly, ResponseParser, type ResponseSink } from './response-parser.ts';

/** Gets the start of one request, and its answer or its failure. */
export interface RequestSink extends ResponseSink {
  /** The request is about to be written. False: it is not needed any more. */
  onRequestStart(connection: Http1Connection): boolean;
  onResponseEnd(): void;
  /** Called once instead of `onResponseEnd`, also before `onRequestStart`, and when one of the others throws. */
  onResponseError(error: Error): void;
}

/** A request, and the sink of its answer. */
export interface Http1Request {
  /** Head and body. A string has only characters up to U+00FF, one byte each. */
  readonly text: string | Buffer;
  readonly answer: RequestSink;
}

export interface ConnectionOwner {
  readonly clock: Clock;
  /** The connection can carry another request. */
  freed(connection: Http1Connection): void;
  /** The connection carries no other request. Called before the answer that was under way fails. */
  closed(connection: Http1Connection): void;
  /**
   * Runs the handler of the failure of a connection, now or in a later turn: thousands fail together when their server ends. Says
   * how long a connection rests whose server sends without end.
   */
  readonly scheduler: Pick<TaskScheduler, 'run' | 'restAfter'>;
}

/** A socket to a server, which is opened with its first request. Each answer learns how its request ended. */
export class Http1Connection {
  readonly #owner: ConnectionOwner;
  readonly #parser = new ResponseParser();
  #socket: Socket | undefined;
  /** The request that waits for the connection. No closure may hold it, since those of the socket live on. */
  #first: Http1Request | undefined;
  /** The sink of the request under way. */
  #answer: RequestSink | undefined;
  #isPaused = false;
  #isResting = false;
  /** The bytes of the present answer that came in large pieces. */
  #largeBytes = 0;
  #isClosed = false;
  #isFailing = false;
  /** The time at which its owner closes it, monotonic, in ms: an idle one soon, one in use after the longest call. */
  endsAtMs = Number.POSITIVE_INFINITY;
  #cancelConnect: (() => void) | undefined;

  /** Connects, and sends the request as soon as that is done. */
  constructor(connector: Connector, owner: ConnectionOwner, first: Http1Request) {
    this.#owner = owner;
    this.#first = first;
    try {
      this.#socket = this.#connect(connector);
    } catch (thrown) {
      queueMicrotask(() => this.destroy(thrown as Error));
    }
  }

  get keepAliveMs(): number | undefined {
    return this.#parser.keepAliveMs;
  }

  /** Writes a request on a free connection. False when its answer is not needed any more. */
  send({ text, answer }: Http1Request): boolean {
    if (!answer.onRequestStart(this)) return false;
    this.#answer = answer;
    this.#largeBytes = 0;
    this.#parser.reset();
    this.#socket?.ref();
    this.#socket?.write(text, 'latin1');
    return true;
  }

  /** Ends the request of this answer, which gets nothing more. */
  abort(answer: RequestSink): void {
    if (answer !== this.#answer) return;
    this.#answer = undefined;
    this.destroy();
  }

  /** Reads nothing more until `resume`. */
  pause(answer: RequestSink): void {
    if (answer !== this.#answer) return;
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume(answer: RequestSink): void {
    if (answer === this.#answer) this.#resume();
  }

  /** The request under way fails; default: as closed by the server. */
  destroy(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelConnect?.();
    this.#parser.stop();
    this.#socket?.destroy();
    const answer = this.#answer ?? this.#first?.answer;
    this.#answer = undefined;
    this.#first = undefined;
    this.#owner.closed(this);
    answer?.onResponseError(error ?? closedEarly());
  }

  #connect({ connect, connectedEvent }: Connector): Socket {
    const socket = connect({ buffer: READ_BUFFER, callback: (length) => this.#read(length) });
    this.#cancelConnect = this.#owner.clock.background.alarm(LIMITS.connectMs, () =>
      this.destroy(connectTimeout()),
    );
    socket.once(connectedEvent, () => this.#connected());
    socket.on('end', () => this.#end());
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail());
    return socket;
  }

  #connected(): void {
    this.#cancelConnect?.();
    this.#cancelConnect = undefined;
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined && !this.send(first)) this.#free();
  }

  /** Must not throw. False when the connection rests, or goes on in the next turn of the event loop. */
  #read(length: number): boolean {
    if (length < LARGE_PIECE_BYTES) {
      this.#take(length);
      return true;
    }
    const { clock, scheduler } = this.#owner;
    const beganAtMs = clock.now();
    this.#take(length);
    const tookMs = clock.now() - beganAtMs;
    this.#largeBytes += length;
    const mayBeResult = tookMs < LITTLE_WORK_MS && this.#largeBytes <= LIMITS.backendMessageBytes;
    // An answer that is complete brings no more.
    if (mayBeResult || this.#answer === undefined) return true;
    const restMs = scheduler.restAfter(tookMs);
    if (restMs === 0 && tookMs < MUCH_WORK_MS) return true;
    this.#isResting = true;
    const goOn = (): void => {
      this.#isResting = false;
      if (!this.#isPaused) this.#socket?.resume();
    };
    if (restMs === 0) setImmediate(goOn);
    else clock.background.alarm(restMs, goOn);
    return false;
  }

  #take(length: number): void {
    const answer = this.#answer;
    try {
      // When there is no request nothing may arrive, and arriving bytes must not be taken for the next answer.
      if (answer === undefined) this.#fail();
      else if (this.#parser.push(READ_BUFFER.subarray(0, length), answer)) this.#finish();
    } catch (thrown) {
      this.destroy(thrown as Error);
    }
  }

  #end(): void {
    try {
      this.#parser.end();
      if (this.#answer === undefined) this.#fail();
      else this.#finish();
    } catch (thrown) {
      this.#fail(thrown as Error);
    }
  }

  /** Ends reading and writing. A free connection must not be used again, from now on. */
  #fail(error?: Error): void {
    if (this.#isClosed || this.#isFailing) return;
    this.#isFailing = true;
    if (this.#answer === undefined && this.#first === undefined) this.#owner.closed(this);
    this.#owner.scheduler.run(() => this.destroy(error));
  }

  /** The answer is complete. It may send the next request at once, so the connection is free before. */
  #finish(): void {
    const answer = this.#answer;
    if (answer === undefined) return;
    this.#answer = undefined;
    const wasSent = this.#socket?.writableLength === 0;
    if (wasSent && this.#parser.isReusable) this.#free();
    else this.destroy();
    try {
      answer.onResponseEnd();
    } catch (thrown) {
      answer.onResponseError(thrown as Error);
    }
  }

  #free(): void {
    if (this.#isPaused) this.#resume();
    this.#socket?.unref();
    this.#owner.freed(this);
  }

  #resume(): void {
    this.#isPaused = false;
    if (!this.#isResting) this.#socket?.resume();
  }
}

/** The buffer into which all connections to servers and nodes read: the bytes are taken out before the next one reads. */
export const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);
/** A piece of this size may have a hundred messages, and Node reads up to 32 of one socket in a turn. */
const LARGE_PIECE_BYTES = 4 * 1024;
/**
 * A piece of a large result takes less, in ms, and must not wait behind servers that send messages without end. What is longer
 * than any result is not one: Node reads 32 such pieces of each server in a turn.
 */
const LITTLE_WORK_MS = 0.5;

function connectTimeout(): Error {
  return Object.assign(new Error(`no connection within ${LIMITS.connectMs} ms`), { code: 'ETIMEDOUT' });
}
