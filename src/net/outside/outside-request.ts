// One request to a server that an outsider names, or that signs users in: for documents of clients, keys of issuers, tokens of a
// provider of accounts, and the metadata of a backend about its accounts. It has a connection of its own, follows no redirect,
// and ends in time, whatever the server sends. Callers decide which servers may be asked.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { LookupFunction } from 'node:net';
import { bytesWithin } from '../../domain/memory/bounded-bytes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { OutsideHandshakes } from '../tls/outside-handshakes.ts';

/** The most interim answers (1xx) before the answer: few servers send more than one. */
const MAX_INTERIM = 16;

/** An `import` would load Node's `fetch`, too (14 MB). */
const http = process.getBuiltinModule('node:http');
const https = process.getBuiltinModule('node:https');

export interface OutsideRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly lookup?: LookupFunction;
  /** Certificates of authorities, in PEM. */
  readonly ca?: string | undefined;
  /** Reads the handshakes of TLS with servers that outsiders name. Default: the server is one of the operator. */
  readonly handshakes?: OutsideHandshakes;
  readonly alarm: Clock['alarm'];
  /** The longest time until the whole answer was read. */
  readonly timeoutMs: number;
  readonly mostBytes: number;
  /**
   * Reads the body in another way; the connection discards the rest. `untimed`: called when the reading has a bound of its own
   * from here on.
   */
  readonly read?: ((response: IncomingMessage, untimed: () => void) => Promise<Buffer>) | undefined;
}

export interface OutsideAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The reason why there is no answer, as the end of a sentence about the server, without any text that it sent. */
export class OutsideFailure extends Error {}

/** The server did not answer in time. */
export class OutsideSilence extends OutsideFailure {}

/** Asks a server. Throws OutsideFailure, the errors of `read` and `lookup`, or the error of the connection. */
export function askOutside(
  url: URL,
  { alarm, timeoutMs, mostBytes, read, body, handshakes, ...options }: OutsideRequest,
): Promise<OutsideAnswer> {
  const isSecure = url.protocol === 'https:';
  const { request } = isSecure ? https : http;
  const connection =
    isSecure && handshakes !== undefined
      ? { createConnection: () => handshakes.connect({ ...addressOf(url), ...options }) }
      : { agent: false };
  const { promise, resolve, reject } = Promise.withResolvers<OutsideAnswer>();
  const asked = request(url, { ...options, ...connection });
  const untimed = alarm(timeoutMs, () => {
    reject(new OutsideSilence(`gave no answer within ${timeoutMs} ms`));
    asked.destroy();
  });
  let isAnswered = false;
  let interim = 0;
  asked.on('information', () => {
    interim += 1;
    if (interim > MAX_INTERIM)
      asked.destroy(new OutsideFailure(`gave more than ${MAX_INTERIM} interim answers`));
  });
  asked.on('response', (response) => {
    isAnswered = true;
    const { statusCode = 0, headers } = response;
    const reading = read?.(response, untimed) ?? wholeBody(response, mostBytes);
    reading
      .then((read) => resolve({ status: statusCode, headers, body: read }), reject)
      .finally(() => asked.destroy());
  });
  asked.on('error', reject);
  asked.on('close', () => {
    untimed();
    // Neither an answer nor an error comes when the server switches to another protocol (101).
    if (!isAnswered) reject(new OutsideFailure('closed the connection without an answer'));
  });
  asked.end(body);
  return promise;
}

function addressOf({ hostname, port }: URL): { readonly host: string; readonly port: number } {
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 443) };
}

async function wholeBody(response: IncomingMessage, mostBytes: number): Promise<Buffer> {
  const body = await bytesWithin(response, mostBytes);
  if (body === undefined) throw new OutsideFailure(`answered with more than ${mostBytes} bytes`);
  return body;
}

const KEPT_HEADERS = [
  ...['content-type', 'content-encoding', 'www-authenticate', 'retry-after', 'cache-control', 'location'],
  'mcp-session-id',
];

/** The answer in the form in which libraries for OAuth take it, with the headers that they read. */
export function responseOf({ status, headers, body }: OutsideAnswer): Response {
  const kept = KEPT_HEADERS.flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, String(value)] as [string, string]];
  });
  const hasNoBody = [204, 205, 304].includes(status);
  return new Response(hasNoBody ? null : new Uint8Array(body), {
    // A `Response` can have no other status.
    status: status < 200 || status > 599 ? 500 : status,
    headers: kept,
  });
}
