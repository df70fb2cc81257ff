// The two readers of bodies: one that listens to the request, for hot routes and logins, and koa-body, for management routes.
// parse-body.ts parses the bytes of both.

import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { payloadTooLarge } from '../../domain/errors/request-errors.ts';
import { NO_BYTES } from '../../domain/memory/bounded-bytes.ts';
import { loadOnce } from '../../domain/memory/load-once.ts';
import { loadInTurns } from '../../domain/time/load-in-turns.ts';
import { ClientGone } from '../client-gone.ts';
import type { HttpContext, KoaContext } from '../context.ts';
import { BodyRequest, type BodySink } from './body-request.ts';

/**
 * Resolves with the result of `use` for the whole body. Calls `onBytes` with a number of bytes before they are kept. Throws an
 * error of either, PAYLOAD_TOO_LARGE over `maxBytes`, which is the same for all requests of a reader, or ClientGone when the
 * client disconnects.
 */
export type ReadBody<C = HttpContext> = <T>(
  context: C,
  maxBytes: number,
  use: (bytes: Buffer) => T | Promise<T>,
  onBytes?: OnBytes,
) => Promise<T>;

type OnBytes = (bytes: number) => void;

/** Reads a body by its events, or as the parser of HTTP gives it. See ReadBody. */
export function readDirect<T>(
  { req: request }: { readonly req: Readable },
  maxBytes: number,
  use: (bytes: Buffer) => T | Promise<T>,
  onBytes?: OnBytes,
): Promise<T> {
  if (request.destroyed) return Promise.reject(new ClientGone()); // `close` may have been emitted already
  return new Promise((resolve, reject) => {
    const body = new Incoming(request, maxBytes, use, onBytes, resolve, reject);
    if (!(request instanceof BodyRequest && request.collectBody(body))) body.listen(request);
  });
}

/** A body that is read. */
class Incoming<T> implements BodySink {
  readonly #request: Readable;
  readonly #maxBytes: number;
  readonly #use: (bytes: Buffer) => T | Promise<T>;
  readonly #onBytes: OnBytes | undefined;
  readonly #resolve: (used: T) => void;
  readonly #reject: (thrown: unknown) => void;
  /**
   * Nearly every body is one piece. Others are copied: a list of pieces of one byte would take 200 times the
   * memory of the body.
   */
  #bytes: Buffer = NO_BYTES;
  #length = 0;
  #isOver = false;
  #stopListening: (() => void) | undefined;

  constructor(
    request: Readable,
    maxBytes: number,
    use: (bytes: Buffer) => T | Promise<T>,
    onBytes: OnBytes | undefined,
    resolve: (used: T) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.#request = request;
    this.#maxBytes = maxBytes;
    this.#use = use;
    this.#onBytes = onBytes;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  listen(request: Readable): void {
    const data = (piece: Buffer) => this.data(piece);
    const end = () => this.end();
    const gone = () => this.gone();
    // A broken connection emits `error` and `close`; either is enough.
    request.on('error', gone);
    request.on('data', data).on('end', end).on('close', gone);
    this.#stopListening = () => request.off('data', data).off('end', end).off('close', gone);
  }

  data(piece: Buffer): void {
    const start = this.#length;
    this.#length += piece.length;
    try {
      if (this.#length > this.#maxBytes) throw payloadTooLarge(this.#maxBytes);
      this.#onBytes?.(piece.length);
    } catch (thrown) {
      this.#refuse(thrown);
      return;
    }
    if (start === 0) {
      this.#bytes = piece;
      return;
    }
    if (this.#length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(this.#maxBytes, 2 * this.#length));
      this.#bytes.copy(larger, 0, 0, start);
      this.#bytes = larger;
    }
    piece.copy(this.#bytes, start);
  }

  end(): void {
    this.#isOver = true; // the listeners stay: the request ends anyway, and removing them costs more
    const bytes = this.#bytes;
    const length = this.#length;
    try {
      const used = this.#use(bytes.length === length ? bytes : Buffer.from(bytes.subarray(0, length)));
      // Adopting a promise takes two more turns of the microtask queue.
      if (used instanceof Promise) used.then(this.#resolve, this.#reject);
      else this.#resolve(used);
    } catch (thrown) {
      this.#reject(thrown);
    }
  }

  gone(): void {
    if (!this.#isOver) this.#refuse(new ClientGone());
  }

  #refuse(thrown: unknown): void {
    this.#isOver = true;
    if (this.#request instanceof BodyRequest) this.#request.stopCollecting();
    this.#stopListening?.();
    this.#reject(thrown);
  }
}

/**
 * Makes the reader of management routes. koa-body only reads: its JSON parser replaces
 * broken UTF-8, takes an empty body for {}, refuses harmless keys and has no bound on depth, so the two readers would answer
 * differently. It cannot return bytes, hence the text of one character per byte. The first request loads it (100 ms).
 */
export function koaBodyReader(turn: () => Promise<void> = nextTurn): ReadBody<KoaContext> {
  let loaded: (() => ReturnType<typeof load>) | undefined;
  return async (context, maxBytes, use, onBytes) => {
    // The size is known only at the end, so the largest size is counted.
    if (context.req.headers['content-length'] === undefined) onBytes?.(maxBytes);
    loaded ??= loadOnce(() => load(maxBytes, turn));
    const middleware = await loaded();
    // body.ts refused every other encoding; koa-body knows the name in lower case only.
    context.req.headers['content-encoding'] = 'identity';
    await middleware(context, async () => {});
    const text: unknown = context.request.body;
    return use(typeof text === 'string' ? Buffer.from(text, 'latin1') : NO_BYTES);
  };
}

/** The modules that koa-body needs. */
export const BODY_MODULES = ['zod/v4/locales', 'zod/v4/core', 'zod', 'qs', 'formidable', 'co-body'];

async function load(maxBytes: number, turn: () => Promise<void>) {
  await loadInTurns(BODY_MODULES, turn);
  const { koaBody } = await import('koa-body');
  return koaBody({
    text: true,
    textTypes: ['application/json'],
    json: false,
    urlencoded: false,
    multipart: false,
    textLimit: maxBytes,
    // One character stands for one byte.
    encoding: 'binary',
    onError: (error, { req: request }) => {
      if ('type' in error && error.type === 'entity.too.large') throw payloadTooLarge(maxBytes);
      throw request.destroyed ? new ClientGone() : error;
    },
  });
}
