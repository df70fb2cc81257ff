// Reads a body by listening to the request: the reader of the hot routes. read-koa-body.ts is the other one; both are
// held to the same table of bad inputs.

import type { Readable } from 'node:stream';
import { payloadTooLarge } from '../../domain/request-errors.ts';
import type { HttpContext } from '../request.ts';
import { ClientGone } from '../request.ts';

/**
 * Resolves with the whole body. Rejects with PAYLOAD_TOO_LARGE, ClientGone when it never ends, or what `onBytes` throws: it is
 * called with a number of bytes before so many more are kept.
 */
export type ReadBody = (context: HttpContext, onBytes?: OnBytes) => Promise<Buffer>;

type OnBytes = (bytes: number) => void;

/** Makes a reader that refuses more than `maxBytes`. */
export function readDirect(maxBytes: number): ReadBody {
  return ({ req: request }, onBytes) => readAllOf(request, maxBytes, onBytes);
}

/** Reads one stream to its end. */
export function readAllOf(request: Readable, maxBytes: number, onBytes: OnBytes = () => {}): Promise<Buffer> {
  return new Promise((resolve, reject) => listen(request, maxBytes, onBytes, resolve, reject));
}

function listen(
  request: Readable,
  maxBytes: number,
  onBytes: OnBytes,
  resolve: (body: Buffer) => void,
  reject: (reason: unknown) => void,
): void {
  if (request.destroyed) {
    reject(new ClientGone()); // its `close` may be over already
    return;
  }
  // Nearly every body is one chunk; only a second one makes a list.
  let first: Buffer | undefined;
  let others: Buffer[] | undefined;
  let length = 0;
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
    leave();
    resolve(others === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(others, length));
  };
  const onGone = (): void => {
    leave();
    reject(new ClientGone());
  };
  const leave = (): void => {
    request.off('data', onData).off('end', onEnd).off('close', onGone);
  };
  // A broken connection is told twice, as an error and as the end without an end; `close` is enough.
  request.on('error', onGone);
  request.on('data', onData).on('end', onEnd).on('close', onGone);
}
