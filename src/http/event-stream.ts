// Server-sent events: writes an Observable to one response, and knows all open streams so that they can be ended.
// What the events are called and hold is decided by the routes.

import type { ServerResponse } from 'node:http';
import type { Observable, Subscription } from 'rxjs';
import { asGatewayError, type GatewayError, shuttingDown } from '../domain/errors.ts';
import { ClientGone } from './client-gone.ts';
import { commonHeaders } from './common-headers.ts';
import type { HttpContext } from './context.ts';
import { HTTP_LIMITS } from './limits.ts';
import { limitPatience } from './patience.ts';
import { errorBody } from './views/error-body.ts';

/** One event. */
export interface StreamEvent {
  /** The `event:` line: lower case, no spaces. */
  readonly name: string;
  /** JSON text. Line breaks in it are kept by repeating `data:`. */
  readonly data: Uint8Array | string;
  /** Who said it. The first one that is known becomes `X-Instance-ID`. */
  readonly instanceId?: string;
  /** True for what must not be left out when the client reads too slowly: the answer. */
  readonly essential?: boolean;
}

export interface EventStreamOptions {
  /** Distance of the comments that keep a stream alive. Default 15 000 ms. */
  readonly keepAliveMs?: number;
  /** Unsent bytes at which events that are not essential are left out. Default 1 MiB. */
  readonly bufferBytes?: number;
}

/** Every open event stream of one app. */
export class EventStreams {
  readonly #open = new Set<OpenStream>();
  readonly #keepAliveMs: number;
  readonly #bufferBytes: number;

  constructor(options: EventStreamOptions = {}) {
    this.#keepAliveMs = options.keepAliveMs ?? HTTP_LIMITS.keepAliveMs;
    this.#bufferBytes = options.bufferBytes ?? HTTP_LIMITS.streamBufferBytes;
  }

  /**
   * Writes events until they complete. The response begins with the first event or the first keep-alive; an error
   * before that rejects, so that it is answered with its own status. Rejects with ClientGone when the client leaves,
   * which also unsubscribes.
   */
  write(context: HttpContext, events$: Observable<StreamEvent>): Promise<void> {
    context.respond = false;
    if (context.res.closed) return Promise.reject(new ClientGone());
    return new Promise((resolve, reject) => {
      const stream = new OpenStream(context, this.#bufferBytes);
      const keepAlive = setInterval(() => stream.comment('still here'), this.#keepAliveMs);
      const settle = (reason?: Error): void => {
        clearInterval(keepAlive);
        context.res.off('close', onClose);
        this.#open.delete(stream);
        stream.stop();
        if (reason === undefined) resolve();
        else reject(reason);
      };
      const onClose = (): void => settle(new ClientGone());
      this.#open.add(stream);
      context.res.once('close', onClose);
      stream.start(events$, settle);
    });
  }

  /** Ends every open stream with the event `error` (SHUTTING_DOWN) and unsubscribes from its source. */
  close(): void {
    for (const stream of this.#open) stream.fail(shuttingDown());
  }
}

/** One response that is, or will be, an event stream. */
class OpenStream {
  readonly #context: HttpContext;
  readonly #response: ServerResponse;
  readonly #bufferBytes: number;
  #subscription: Subscription | undefined;
  #settle: (reason?: Error) => void = () => {};
  #leftOut = 0;

  constructor(context: HttpContext, bufferBytes: number) {
    this.#context = context;
    this.#response = context.res;
    this.#bufferBytes = bufferBytes;
  }

  start(events$: Observable<StreamEvent>, settle: (reason?: Error) => void): void {
    this.#settle = settle;
    this.#subscription = events$.subscribe({
      next: (event) => this.#send(event),
      error: (thrown: unknown) => this.fail(asGatewayError(thrown)),
      complete: () => {
        this.#begin();
        this.#end();
      },
    });
  }

  stop(): void {
    this.#subscription?.unsubscribe();
  }

  fail(error: GatewayError): void {
    if (!this.#response.headersSent) {
      this.#settle(error);
      return;
    }
    const { requestId, principal } = this.#context.state;
    const data = JSON.stringify(errorBody(error, requestId, principal));
    this.#send({ name: 'error', data, essential: true });
    this.#end();
  }

  comment(text: string): void {
    this.#begin();
    if (this.#response.writableLength <= this.#bufferBytes) this.#response.write(`: ${text}\n\n`);
  }

  #end(): void {
    this.#response.end();
    limitPatience(this.#response);
    this.#settle();
  }

  #send({ name, data, instanceId, essential = false }: StreamEvent): void {
    this.#begin(instanceId);
    if (!essential && this.#response.writableLength > this.#bufferBytes) {
      this.#leftOut += 1;
      return;
    }
    this.#response.cork();
    if (this.#leftOut > 0) this.#response.write(`: ${this.#leftOut} events left out, read faster\n\n`);
    this.#leftOut = 0;
    this.#response.write(`event: ${name}\ndata: `);
    this.#response.write(inLines(data));
    this.#response.write('\n\n');
    this.#response.uncork();
  }

  #begin(instanceId?: string): void {
    if (this.#response.headersSent) return;
    const headers = [
      ...['Content-Type', 'text/event-stream', 'Cache-Control', 'no-cache', 'X-Accel-Buffering', 'no'],
      ...commonHeaders(this.#context.state),
    ];
    if (instanceId !== undefined) {
      this.#context.state.instanceId = instanceId;
      headers.push('X-Instance-ID', instanceId);
    }
    this.#response.writeHead(200, headers);
  }
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** A line break may only stand between the tokens of a JSON text, so that the reader may join the lines again. */
function inLines(data: Uint8Array | string): Uint8Array | string {
  if (typeof data !== 'string') {
    if (!data.includes(LINE_FEED) && !data.includes(CARRIAGE_RETURN)) return data;
    return inLines(Buffer.from(data).toString('utf8'));
  }
  return data.replaceAll(/\r\n|\r|\n/g, '\ndata: ');
}
