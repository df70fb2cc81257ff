// The two readers of bodies: one that listens to the request, for hot routes, and koa-body, for management routes. parse.ts parses
// the bytes of both.

import type { Readable } from 'node:stream';
import { payloadTooLarge } from '../../domain/error-catalogue.ts';
import { ClientGone, type HttpContext, type HttpMiddleware } from '../request.ts';

/**
 * Resolves with the whole body. Rejects with PAYLOAD_TOO_LARGE, with ClientGone when the client disconnects, or with what
 * `onBytes` throws: it is called with a number of bytes before they are kept.
 */
export type ReadBody = (context: HttpContext, onBytes?: OnBytes) => Promise<Buffer>;

type OnBytes = (bytes: number) => void;

export function readDirect(maxBytes: number): ReadBody {
  return ({ req: request }, onBytes) => readAllOf(request, maxBytes, onBytes);
}

export function readAllOf(request: Readable, maxBytes: number, onBytes: OnBytes = () => {}): Promise<Buffer> {
  if (request.destroyed) return Promise.reject(new ClientGone()); // `close` may have been emitted already
  return new Promise((resolve, reject) => {
    // Nearly every body is one chunk: only a second one creates a list.
    let first: Buffer | undefined;
    let others: Buffer[] | undefined;
    let length = 0;
    let isWhole = false;
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      try {
        if (length > maxBytes) throw payloadTooLarge(maxBytes);
        onBytes(chunk.length);
      } catch (thrown) {
        leave();
        reject(thrown);
        return;
      }
      if (first === undefined) first = chunk;
      else if (others === undefined) others = [first, chunk];
      else others.push(chunk);
    };
    const onEnd = (): void => {
      isWhole = true; // the listeners stay: the request ends anyway, and removing them costs more
      resolve(others === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(others, length));
    };
    const onGone = (): void => {
      if (isWhole) return;
      leave();
      reject(new ClientGone());
    };
    const leave = (): void => {
      request.off('data', onData).off('end', onEnd).off('close', onGone);
    };
    // A broken connection emits `error` and `close`; either is enough.
    request.on('error', onGone);
    request.on('data', onData).on('end', onEnd).on('close', onGone);
  });
}

/**
 * Makes the reader of management routes; it refuses more than `maxBytes`. koa-body only reads: its JSON parser replaces
 * broken UTF-8, takes an empty body for {}, refuses harmless keys and has no bound on depth, so both readers would answer
 * differently. It has no way to return bytes, hence the text of one character per byte. Loaded by the first request (75 ms).
 */
export function readKoaBody(maxBytes: number): ReadBody {
  let loading: Promise<HttpMiddleware> | undefined;
  return async (context, onBytes) => {
    // The size is known only at the end, so the largest size is counted.
    if (context.req.headers['content-length'] === undefined) onBytes?.(maxBytes);
    loading ??= load(maxBytes);
    const middleware = await loading;
    await middleware(context, async () => {});
    const text: unknown = context.request.body;
    return typeof text === 'string' ? Buffer.from(text, 'latin1') : Buffer.alloc(0);
  };
}

async function load(maxBytes: number): Promise<HttpMiddleware> {
  const { koaBody } = await import('koa-body');
  return koaBody({
    text: true,
    textTypes: ['application/json', 'application/x-www-form-urlencoded'],
    json: false,
    urlencoded: false,
    multipart: false,
    textLimit: maxBytes,
    // One character per byte.
    encoding: 'binary',
    onError: (error, { req: request }) => {
      if ('type' in error && error.type === 'entity.too.large') throw payloadTooLarge(maxBytes);
      throw request.destroyed ? new ClientGone() : error;
    },
  });
}
