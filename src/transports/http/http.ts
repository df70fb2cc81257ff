// The http row of the table of transports: Streamable HTTP, in every protocol era, with or without a program to run. A server
// that refuses it and speaks the older transport, HTTP+SSE, gets that. See http-transport.ts and sse/sse.ts.

import { GatewayError } from '../../domain/errors.ts';
import { openSse } from '../sse/sse.ts';
import type { TransportType } from '../transport.ts';
import { openHttp } from './http-transport.ts';
import { type OpenEndpoint, openManaged } from './managed-http.ts';

/** Reaches `endpoint`; when the definition has a `command` too, the gateway runs the program that serves it. */
export const http: TransportType = {
  kind: 'http',
  open: (definition, options) =>
    definition.command === undefined
      ? openEither(definition, options)
      : openManaged(definition, options, openEither),
};

/** Statuses at `initialize` of a server without Streamable HTTP. Source: MCP 2025-03-26 basic/transports#backwards-compatibility. */
const NOT_KNOWN: ReadonlySet<number> = new Set([400, 404, 405]);
/** Longest wait for the `endpoint` event, with which a stream of HTTP+SSE begins. */
const LOCATED_MS = 3_000;

/** Tries HTTP+SSE at the same URL, and nowhere else, when Streamable HTTP was refused. If that fails, too, the first failure counts. */
const openEither: OpenEndpoint = async (definition, options) => {
  const startedAtMs = performance.now();
  let status: number | undefined;
  try {
    const onRefused = (refused: number): void => {
      status = refused;
    };
    return await openHttp(definition, options, { onRefused });
  } catch (thrown) {
    if (status === undefined || !NOT_KNOWN.has(status)) throw thrown;
    const handshakeTimeoutMs = Math.max(1, options.handshakeTimeoutMs - (performance.now() - startedAtMs));
    try {
      return await openSse(definition, { ...options, handshakeTimeoutMs }, LOCATED_MS);
    } catch (second) {
      throw isForSse(definition.endpoint) ? withReason(thrown, second) : thrown;
    }
  }
};

/** The usual path of the older transport. */
function isForSse(endpoint = ''): boolean {
  return URL.canParse(endpoint) && /\/sse\/?$/.test(new URL(endpoint).pathname);
}

/** Names the failures of both attempts. */
function withReason(first: unknown, second: unknown): unknown {
  if (!(first instanceof GatewayError && second instanceof GatewayError)) return first;
  const { reason = first.message } = first.facts;
  const both = `${reason}; as HTTP+SSE: ${second.facts.reason ?? second.message}`;
  return new GatewayError(first.code, first.message.replace(reason, both), { ...first.facts, reason: both });
}
