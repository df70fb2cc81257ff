// Reads a body with koa-body: the reader of the control-plane routes, where forms and files may follow.
// It takes the bytes only. koa-body's own JSON would mend broken UTF-8, take an empty body for {} and refuse harmless
// keys, so that the two readers would answer differently.

import { payloadTooLarge } from '../../domain/request-errors.ts';
import type { HttpMiddleware } from '../request.ts';
import { ClientGone } from '../request.ts';
import type { ReadBody } from './read-direct.ts';

/** Makes a reader that refuses more than `maxBytes`. The library is loaded by the first request (75 ms). */
export function readKoaBody(maxBytes: number): ReadBody {
  let loading: Promise<HttpMiddleware> | undefined;
  return async (context, onBytes) => {
    // How much comes is known afterwards only.
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
    // One character per byte: the bytes come back as they were.
    encoding: 'binary',
    onError: (error, { req: request }) => {
      if ('type' in error && error.type === 'entity.too.large') throw payloadTooLarge(maxBytes);
      throw request.destroyed ? new ClientGone() : error;
    },
  });
}
