// Reads the JSON body of a route that takes one and leaves it in `state.body`. It checks what the headers promise;
// bytes are read by ../body/read-*.ts and parsed by ../body/parse-json.ts.

import type { IncomingHttpHeaders } from 'node:http';
import { payloadTooLarge, unsupportedMediaType } from '../../domain/errors.ts';
import { parseJsonBody } from '../body/parse-json.ts';
import type { ReadBody } from '../body/read-direct.ts';
import type { HttpMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../limits.ts';

/** Makes the middleware around one reader. 413 over `maxBytes`, 415 for anything but plain UTF-8 JSON. */
export function body(read: ReadBody, maxBytes: number): HttpMiddleware {
  return async (context, next) => {
    const { headers } = context.req;
    if (hasBody(headers)) {
      requireJson(headers);
      // Known before a byte is read: an honest client is told at once.
      if (Number(headers['content-length']) > maxBytes) throw payloadTooLarge(maxBytes);
      context.state.body = parseJsonBody(await read(context));
    } else {
      context.state.body = parseJsonBody(NO_BYTES);
    }
    return next();
  };
}

const NO_BYTES = Buffer.alloc(0);

function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}

/** `application/json`, with no parameter but `charset=utf-8`. Source: RFC 8259 section 8.1. */
const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?;?\s*$/i;

function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers['content-type'] ?? '';
  if (type !== 'application/json' && !isJsonType(type)) throw unsupportedMediaType(clip(type));
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw unsupportedMediaType(`${clip(type)} with content-encoding ${clip(encoding)}`);
  }
}

/** The pattern is not made for 64 KiB of spaces, which it would try in every split. */
function isJsonType(type: string): boolean {
  return type.length <= HTTP_LIMITS.mediaTypeCharacters && JSON_TYPE.test(type);
}

function clip(text: string): string {
  return text.slice(0, HTTP_LIMITS.mediaTypeCharacters);
}
