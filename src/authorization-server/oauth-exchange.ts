// One request of the authorization server: its form, its answer, and the copy that the library sees. The copy has
// the address of the gateway instead of the one that the client wrote, no origin, and the fields as they were
// checked.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { hasManyFields } from '../domain/text.ts';
import type { Page } from './pages/page.ts';

export interface OAuthExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  /** Address of the client. */
  readonly address: string;
  readonly isLocal: boolean;
  readonly requestId: string;
  /** True when the request came from a page of another origin. */
  readonly isForeign: boolean;
}

const FORM = 'application/x-www-form-urlencoded';
const MAX_FORM_BYTES = 16 * 1024;
/** A longer body ends the connection. */
const MAX_READ = 1024 * 1024;

/** Resolves with undefined for a body of another type, for one that is too long, and for a form with too many fields. */
export async function formOf(request: IncomingMessage, type = FORM): Promise<string | undefined> {
  const isForm = (request.headers['content-type'] ?? '').toLowerCase().split(';')[0]?.trim() === type;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length <= MAX_FORM_BYTES) chunks.push(chunk);
    if (length > MAX_READ) request.destroy();
  }
  if (!isForm || length > MAX_FORM_BYTES) return undefined;
  const text = Buffer.concat(chunks).toString();
  return type === FORM && hasManyFields(text) ? undefined : text;
}

/** The query of the request, in which a further question mark is part of a value. Source: RFC 3986, 3.4. */
export function queryOf({ url = '' }: Pick<IncomingMessage, 'url'>): URLSearchParams {
  const mark = url.indexOf('?');
  return new URLSearchParams(mark === -1 ? '' : url.slice(mark + 1));
}

/** `issuer`: the address of the gateway. `url`: path and query. `body`: of a POST. */
export function copyFor(
  { request }: Pick<OAuthExchange, 'request'>,
  issuer: string,
  { url = request.url ?? '', body }: { readonly url?: string; readonly body?: string } = {},
): IncomingMessage {
  const { protocol, host } = new URL(issuer);
  const { origin: _, 'content-length': __, 'transfer-encoding': ___, ...headers } = request.headers;
  const { IncomingMessage: Request } = process.getBuiltinModule('node:http'); // see server/sockets/listeners.ts
  const copy = new Request(new Socket());
  copy.method = request.method ?? 'GET';
  copy.url = url;
  copy.headers = {
    ...headers,
    host,
    'x-forwarded-host': host,
    'x-forwarded-proto': protocol.slice(0, -1),
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  };
  if (body !== undefined && body !== '') copy.push(body);
  copy.push(null);
  copy.complete = true;
  return copy;
}

/** `further`: header names and values in turn, after those of the page. */
export function sendPage(
  response: ServerResponse,
  { status, text, headers }: Page,
  further: readonly string[] = [],
): void {
  send(response, status, text, [...headers, ...further]);
}

const NO_STORE = ['Cache-Control', 'no-store'];

/** `further`: header names and values in turn, after the media type. Default: caches must not store the answer. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: object,
  further: readonly string[] = NO_STORE,
): void {
  send(response, status, JSON.stringify(value), ['Content-Type', 'application/json', ...further]);
}

/** Fields of the form of a client. Undefined when the request was refused, because it has none. */
export async function fieldsOf({
  request,
  response,
}: Pick<OAuthExchange, 'request' | 'response'>): Promise<URLSearchParams | undefined> {
  const form = await formOf(request);
  if (form !== undefined) return new URLSearchParams(form);
  sendJson(response, 400, BAD_FORM);
  return undefined;
}

const BAD_FORM = {
  error: 'invalid_request',
  error_description: 'send a form of at most 16 KiB and 100 fields',
};

/** An error of OAuth after which the same request may be sent again. */
export function sendBusy(
  response: ServerResponse,
  status: 429 | 503,
  reason: string,
  retryAfterSeconds: number,
): void {
  const body = { error: 'temporarily_unavailable', error_description: reason };
  sendJson(response, status, body, [...NO_STORE, 'Retry-After', String(retryAfterSeconds)]);
}

/** Sends the browser to another page of the gateway. */
export function redirect(response: ServerResponse, location: string, further: readonly string[] = []): void {
  send(response, 303, '', ['Location', location, ...NO_STORE, ...further]);
}

function send(response: ServerResponse, status: number, text: string, headers: readonly string[]): void {
  const cookies: string[] = [];
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2);
    if (name === 'Set-Cookie') cookies.push(value);
    else response.setHeader(name, value);
  }
  if (cookies.length > 0) response.appendHeader('Set-Cookie', cookies);
  response.statusCode = status;
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(response.req?.method === 'HEAD' ? undefined : text);
}
