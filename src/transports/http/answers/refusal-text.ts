// The text of a server in the body of a refusal, as one line for the caller: the beginning of a text, without
// markup, control characters and the secrets that the gateway sent. answer-body.ts bounds the body, http-failures.ts
// makes the error.

import { cutWithoutSecrets, withoutSecrets } from '../../../domain/instances/hidden-secrets.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { type BackendMessage, readBatch, readMessage } from '../../../domain/mcp/jsonrpc.ts';
import { cutText, type HttpHeaders, plainLine } from '../../../domain/text.ts';
import { SseReader } from '../../../net/http1/sse-reader.ts';
import type { RefusedStatus } from './http-failures.ts';

/** The largest body of an HTTP refusal without JSON; the rest is not read. */
export const MAX_REFUSAL_BYTES = 256 * 1024;
/** Beginning of the text of a refusal that callers get, in UTF-16 units. */
const REFUSAL_CHARACTERS = 300;

/** The request that was refused, and the texts that are hidden. */
interface RefusedRequest {
  readonly method?: string;
  readonly path?: string;
  readonly origin?: string | undefined;
  readonly secrets?: readonly string[] | undefined;
  /** True when the content coding of the body was undone. */
  readonly isDecoded: boolean;
}

/** The content of an answer whose status is not a success: its JSON-RPC error, if any, and everything for callers. */
export function readRefusal(
  status: number,
  headers: HttpHeaders,
  body: Buffer,
  { method = '', path = '', origin = '', secrets = [], isDecoded }: RefusedRequest,
): RefusedStatus & { readonly error: Extract<BackendMessage, { kind: 'error' }> | undefined } {
  const message = readMessage(body);
  const messages = message === undefined ? readBatch(body) : [message];
  const error = messages.find((each) => each.kind === 'error');
  const type = String(headers['content-type'] ?? '');
  const encoding = isDecoded ? '' : String(headers['content-encoding'] ?? '');
  const said = error === undefined ? body : Buffer.from(error.error.message);
  const { allow } = headers;
  const [plainPath = ''] = path.split('?');
  return {
    status,
    error,
    text:
      /^\s*text\/event-stream/i.test(type) && error === undefined
        ? textOfStream(body, secrets)
        : refusalText(said, error === undefined ? { type, encoding } : PLAIN_TEXT, secrets),
    asked: withoutSecrets(`${method} ${plainPath}`, secrets),
    location: targetOf(headers.location, `${origin}${path}`, secrets),
    allow: typeof allow === 'string' ? plainLine(allow).slice(0, MAX_ALLOW_LENGTH) : undefined,
    waitMs: waitOf(headers['retry-after'], headers.date),
  };
}

const MAX_ALLOW_LENGTH = 64;

/** The message of the error in an event stream, or else its first data. */
function textOfStream(body: Buffer, secrets: readonly string[]): string {
  const all: Buffer[] = [];
  new SseReader(MAX_REFUSAL_BYTES, (data) => all.push(data)).push(body);
  const [data = body] = all;
  const message = readMessage(data);
  const said = message?.kind === 'error' ? Buffer.from(message.error.message) : data;
  return refusalText(said, PLAIN_TEXT, secrets);
}

/** The target of a redirect, without a query, which may hold secrets of the server. */
function targetOf(written: unknown, base: string, secrets: readonly string[]): string | undefined {
  if (typeof written !== 'string' || !URL.canParse(written, base)) return undefined;
  const { origin, pathname } = new URL(written, base);
  const target = base.startsWith(`${origin}/`) ? pathname : `${origin}${pathname}`;
  return cutText(withoutSecrets(plainLine(target), secrets), REFUSAL_CHARACTERS);
}

/** Seconds or a date, as ms after the date of the answer, at most LIMITS.refusedLongestMs. Source: RFC 9110, 10.2.3. */
function waitOf(written: unknown, date: unknown): number | undefined {
  if (typeof written !== 'string') return undefined;
  const seconds = /^\s*\d{1,9}\s*$/.test(written) ? Number(written) : undefined;
  const waitMs = seconds === undefined ? Date.parse(written) - Date.parse(String(date)) : seconds * 1_000;
  return Number.isNaN(waitMs) || waitMs <= 0 ? undefined : Math.min(waitMs, LIMITS.refusedLongestMs);
}

/** Beginning of a body that is read, in UTF-16 units. */
const READ_UNITS = 8_192;
export const PLAIN_TEXT = { type: 'text/plain', encoding: '' } as const;

/**
 * The first REFUSAL_CHARACTERS of the text; '' for a body that is not text, or is compressed. `secrets`: see
 * `secretsOf`; each is replaced by `***`.
 */
export function refusalText(
  body: Buffer,
  { type, encoding }: { readonly type: string; readonly encoding: string },
  secrets: readonly string[],
): string {
  if (!isText(type) || (encoding !== '' && encoding !== 'identity')) return '';
  const text = cutWithoutSecrets(decoded(body, type), READ_UNITS, secrets);
  return cutText(
    plainLine(IS_MARKUP.test(type) || STARTS_MARKUP.test(text) ? unmarked(text) : text),
    REFUSAL_CHARACTERS,
  );
}

/** True for text; a body without a type is usually one. */
function isText(type: string): boolean {
  return (
    type.trim() === '' ||
    /^\s*(text\/|application\/([\w.+-]*\b)?(json|xml|problem|x-www-form-urlencoded))/i.test(type)
  );
}

const IS_MARKUP = /html|xml/i;
const STARTS_MARKUP = /^\s*<(!doctype|html|\?xml)/i;

function unmarked(text: string): string {
  return text
    .replace(/<!--[\s\S]*?-->|<(script|style)\b[\s\S]*?<\/\1\s*>/gi, ' ')
    .replace(/<[^<>]{0,2048}>/g, ' ');
}

function decoded(body: Buffer, type: string): string {
  const bytes = body.subarray(0, READ_BYTES);
  const charset = /charset\s*=\s*"?([\w.:-]+)/i.exec(type)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return bytes.toString('utf8'); // an unknown charset
  }
}

const READ_BYTES = 64 * 1024;
