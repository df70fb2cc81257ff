// What a server says in the body of a refusal, as one line for the caller: the beginning of a text, without markup, control characters
// and the secrets that the gateway sent. http-answer.ts bounds the body, http-failures.ts makes the error.

import { type BackendMessage, type JsonRpcError, readBatch, readMessage } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { cutText, plainLine } from '../../domain/text.ts';
import type { RefusedStatus } from './http-failures.ts';
import type { ResponseHeaders } from './response-parser.ts';
import { SseReader } from './sse-reader.ts';

type RefusalError = Extract<BackendMessage, { kind: 'error' }>;

/** The request that was refused, and what is hidden. */
interface RefusedRequest {
  readonly method?: string;
  readonly path?: string;
  readonly origin?: string | undefined;
  readonly secrets?: readonly string[] | undefined;
  /** The content coding of the body was undone. */
  readonly isDecoded: boolean;
}

/** What a status that is not a success says: its JSON-RPC error, if any, and everything for callers. */
export function readRefusal(
  status: number,
  headers: ResponseHeaders,
  body: Buffer,
  { method = '', path = '', origin = '', secrets = [], isDecoded }: RefusedRequest,
): RefusedStatus & { readonly error: RefusalError | undefined } {
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
    allow: typeof allow === 'string' ? plainLine(allow).slice(0, LONGEST_ALLOW) : undefined,
    waitMs: waitOf(headers['retry-after'], headers.date),
  };
}

const LONGEST_ALLOW = 64;

/** The message of the error in an event stream, or else its first data. */
function textOfStream(body: Buffer, secrets: readonly string[]): string {
  const all: Buffer[] = [];
  new SseReader(LIMITS.refusalBytes, (data) => all.push(data)).push(body);
  const [data = body] = all;
  const message = readMessage(data);
  const said = message?.kind === 'error' ? Buffer.from(message.error.message) : data;
  return refusalText(said, PLAIN_TEXT, secrets);
}

/** Without a query, which may hold secrets of the server. */
function targetOf(written: unknown, base: string, secrets: readonly string[]): string | undefined {
  if (typeof written !== 'string' || !URL.canParse(written, base)) return undefined;
  const { origin, pathname } = new URL(written, base);
  const target = base.startsWith(`${origin}/`) ? pathname : `${origin}${pathname}`;
  return cutText(withoutSecrets(plainLine(target), secrets), LIMITS.refusalCharacters);
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
/** A shorter value is not a secret, and stands in many texts. */
const SHORTEST_SECRET = 3;
/** A shorter one may be a part of other words, and is only hidden as a whole one. */
const SHORTEST_PART = 5;
const NO_SECRETS: ReadonlySet<string> = new Set(['true', 'false', 'null', 'none', 'yes', 'off']);

export const PLAIN_TEXT = { type: 'text/plain', encoding: '' } as const;

/**
 * The first LIMITS.refusalCharacters of the text; '' for a body that is not text, or is compressed. `secrets`: see `secretsOf`; each is
 * replaced by `***`.
 */
export function refusalText(
  body: Buffer,
  { type, encoding }: { readonly type: string; readonly encoding: string },
  secrets: readonly string[],
): string {
  if (!isText(type) || (encoding !== '' && encoding !== 'identity')) return '';
  const longest = secrets.reduce((most, { length }) => Math.max(most, length), 0);
  // A secret is hidden before the text is cut, so that no part of it remains.
  const hidden = withoutSecrets(decoded(body, type).slice(0, READ_UNITS + longest), secrets);
  const text = hidden.slice(0, READ_UNITS);
  return cutText(
    plainLine(IS_MARKUP.test(type) || STARTS_MARKUP.test(text) ? unmarked(text) : text),
    LIMITS.refusalCharacters,
  );
}

/** The text with `***` for each secret. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((hidden, secret) => hidden.replaceAll(patternOf(secret), '***'), text);
}

function patternOf(secret: string): string | RegExp {
  if (secret.length >= SHORTEST_PART) return secret;
  return new RegExp(`(?<![A-Za-z0-9])${secret.replace(/[^A-Za-z0-9]/g, '\\$&')}(?![A-Za-z0-9])`, 'g');
}

/** An error of a server with `***` for each secret in its message and in the texts and numbers of its data. */
export function errorWithoutSecrets(error: JsonRpcError, secrets: readonly string[]): JsonRpcError {
  if (secrets.length === 0) return error;
  const { data, ...rest } = error;
  const shown = { ...rest, message: withoutSecrets(error.message, secrets) };
  if (data === undefined) return shown;
  const written = JSON.stringify(data);
  const hidden = written.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?/g, (token) => {
    const plain = token.startsWith('"') ? String(JSON.parse(token)) : token;
    const safe = withoutSecrets(plain, secrets);
    return safe === plain ? token : JSON.stringify(safe);
  });
  return { ...shown, data: hidden === written ? data : JSON.parse(hidden) };
}

/**
 * The values of headers and variables of an instance and of the query of its endpoint, as servers may repeat them: whole, a credential
 * without its scheme, the name and password of Basic, each cookie, and with the escapes of JSON, URLs and HTML. Longest first.
 */
export function secretsOf({
  endpoint = '',
  headers,
  env = {},
}: {
  readonly endpoint?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}): readonly string[] {
  const query = URL.canParse(endpoint) ? [...new URL(endpoint).searchParams.values()] : [];
  const values = [...Object.values(headers).flatMap(partsOf), ...Object.values(env), ...query];
  const written = values.flatMap((value) => [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value.toWellFormed()),
    value.replace(/[&<>"']/g, (sign) => HTML_SIGNS[sign] ?? sign),
  ]);
  const secrets = written.filter((value) => value.length >= SHORTEST_SECRET && !NO_SECRETS.has(value));
  return [...new Set(secrets)].sort((one, other) => other.length - one.length);
}

/**
 * The variables of a program that its errors must not show: those with names of credentials, and the passwords in URLs. Not all
 * of them, because errors of programs name the folders, modes and levels that they got.
 */
export function secretVariables(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const named = Object.entries(env).filter(([name]) => SECRET_NAME.test(name) && !NAMED_PLACE.test(name));
  const inUrls = Object.entries(env).flatMap(([name, value]) => {
    const { password = '' } = URL.canParse(value) ? new URL(value) : {};
    return [
      [`${name} as written`, password],
      [`${name} decoded`, decodedPart(password)],
    ];
  });
  return Object.fromEntries([...named, ...inUrls]);
}

const SECRET_NAME =
  /key|token(?!s|_?(?:limit|count))|secret|passw|passphrase|pwd|credential|auth(?!or)|cookie|(?:^|_)(?:pat|pass|pin|dsn)(?:_|$)/i;
/** A file or a folder that has the secret. */
const NAMED_PLACE = /(?:path|file|dir|folder|home|sock|url|uri|host|user|name|type|mode|level|enabled)$/i;

function decodedPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // it is not escaped
  }
}

const HTML_SIGNS: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function partsOf(header: string): string[] {
  const [, scheme = '', credential = ''] = /^(\S+) +(.+)$/.exec(header) ?? [];
  const parts = [header, credential, ...header.split(/; */).map((cookie) => cookie.replace(/^[^=]*=/, ''))];
  if (scheme.toLowerCase() !== 'basic') return parts;
  const plain = Buffer.from(credential, 'base64').toString('utf8');
  return [...parts, plain, ...plain.split(/:(.*)/s)];
}

/** A body without a type is usually text. */
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
