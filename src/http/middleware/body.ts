// Reads the body of a request into `state.body`: checks its headers, counts its memory and its requests.
// body/readers.ts reads the bytes, parse-body.ts parses them.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { RateLimit, RateLimiter } from '../../auth/limits/rate-limiter.ts';
import { NO_PRINCIPAL } from '../../domain/accounts/principal.ts';
import { rateLimitExceeded } from '../../domain/errors/account-errors.ts';
import { payloadTooLarge, unsupportedMediaType } from '../../domain/errors/request-errors.ts';
import type { JsonFields } from '../../domain/json/json.ts';
import { NO_BYTES } from '../../domain/memory/bounded-bytes.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import type { HeldBodies } from '../body/held-bodies.ts';
import { parseCallBody, parseFormBody, parseJsonBody } from '../body/parse-body.ts';
import type { ReadBody } from '../body/readers.ts';
import { consumeRateLimit, requestsIn } from '../callers/caller-check.ts';
import { ClientGone } from '../client-gone.ts';
import type { HttpContext, HttpMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import type { BodyKind } from '../routing/route.ts';

/** The longest time from the head to the end of a body that came with it, in ms. */
const WITH_HEAD_MS = 1;

export interface BodyCosts extends Timing {
  readonly held: HeldBodies;
  readonly limiter: Pick<RateLimiter, 'take' | 'peek'>;
}

/** The bodies that are read. */
interface BodyRule {
  readonly kind: BodyKind;
  /** The largest body, in bytes. */
  readonly maxBytes: number;
  /** The most values in a JSON body, keys included. Default: LIMITS.bodyValues. */
  readonly mostValues?: number;
}

/**
 * Makes the middleware around one reader: 413 over `maxBytes`, 415 for an encoding or another media type, 429. The
 * caller of a body that came later than its head is authorized again, because its credentials may have been revoked meanwhile.
 */
export function body<C extends HttpContext>(
  read: ReadBody<C>,
  { kind, maxBytes, mostValues }: BodyRule,
  costs: BodyCosts,
): HttpMiddleware<C> {
  const parsers: Partial<Record<BodyKind, ParseBody>> = { bytes: (bytes) => bytes, call: parseCallBody };
  const parseJson: ParseBody = parsers[kind] ?? ((bytes) => parseJsonBody(bytes, mostValues));
  return (context, next) => {
    const { req: request, state } = context;
    const { headers } = request;
    if (!hasBody(headers)) {
      state.body = parseJson(NO_BYTES, {});
      return next();
    }
    const parse = parserFor(headers, parseJson, kind === 'form');
    const length = Number(headers['content-length'] ?? Number.NaN);
    // Refused before a byte is read.
    if (length > maxBytes) throw payloadTooLarge(maxBytes);
    const isSmall = length <= HTTP_LIMITS.uncountedBodyBytes;
    const startMs = costs.clock.now();
    const proceed = (bytes: Buffer): unknown => {
      const isLate = costs.clock.now() - startMs > WITH_HEAD_MS;
      return whenKnown(isLate ? state.check?.(context) : undefined, (refusal) => {
        if (refusal !== undefined) throw refusal;
        const fields = {};
        state.body = parse(bytes, fields);
        state.bodyFields = fields;
        return next();
      });
    };
    if (isSmall) return read(context, maxBytes, proceed);
    const readBytes = (onBytes?: (bytes: number) => void) => read(context, maxBytes, unchanged, onBytes);
    return readCounted(readBytes, context, length, costs).then(proceed);
  };
}

/**
 * Reads a body and counts its memory and its requests, as early as its size is known. A large body without a
 * length (NaN) is refused when its caller has no request left; its requests are counted at the end. It waits for a
 * turn, in which it is parsed: many may end together.
 */
async function readCounted(
  read: (onBytes?: (bytes: number) => void) => Promise<Buffer>,
  { res: response, state }: HttpContext,
  length: number,
  { held, limiter, scheduler }: BodyCosts,
): Promise<Buffer> {
  const { principal = NO_PRINCIPAL } = state;
  requireClient(response); // it may have disconnected during authentication
  const body = held.open(principal);
  response.once('close', () => body.release());
  state.heldBody = body;
  let uploaded: (() => void) | undefined;
  try {
    if (length > HTTP_LIMITS.requestBlockBytes) {
      await consumeRateLimit(state, limiter, requestsIn(length));
      requireClient(response);
      uploaded = held.upload(principal);
    }
    if (!Number.isNaN(length)) {
      body.add(length);
      const bytes = await read();
      if (uploaded !== undefined) await scheduler.turn();
      return bytes;
    }
    let received = 0;
    const bytes = await read((more) => {
      received += more;
      body.add(more);
      if (uploaded !== undefined || received <= HTTP_LIMITS.requestBlockBytes) return;
      requireRequestLeft(limiter.peek(principal));
      uploaded = held.upload(principal);
    });
    if (uploaded === undefined) return bytes;
    await consumeRateLimit(state, limiter, requestsIn(bytes.length));
    await scheduler.turn();
    return bytes;
  } finally {
    uploaded?.();
  }
}

const unchanged = (bytes: Buffer): Buffer => bytes;

/** Memory counted after the end of the response would never be released. */
function requireClient({ destroyed }: ServerResponse): void {
  if (destroyed) throw new ClientGone();
}

function requireRequestLeft(window: RateLimit | undefined): void {
  if (window?.retryAfterSeconds !== undefined)
    throw rateLimitExceeded(window.limit, window.retryAfterSeconds);
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}

/** Puts the fields that are forwarded into `fields`. */
type ParseBody = (bytes: Buffer, fields: Record<string, JsonFields[string]>) => unknown;

function parserFor(headers: IncomingHttpHeaders, parseJson: ParseBody, takesForms: boolean): ParseBody {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (type === 'application/json' && encoding === 'identity') return parseJson; // as most clients write it
  const accepted = takesForms ? 'a form or application/json' : 'application/json';
  if (encoding.toLowerCase() !== 'identity')
    throw unsupportedMediaType(`${clip(type)} with content-encoding ${clip(encoding)}`, accepted);
  // A charset is not read: JSON and forms are UTF-8. Source: RFC 8259 section 8.1, the URL standard.
  const name = type.split(';', 1)[0]?.trim().toLowerCase();
  if (name === 'application/json') return parseJson;
  if (takesForms && name === 'application/x-www-form-urlencoded') return parseFormBody;
  throw unsupportedMediaType(clip(type), accepted);
}

function clip(text: string): string {
  return text.slice(0, HTTP_LIMITS.mediaTypeCharacters);
}
