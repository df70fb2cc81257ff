// The two readers of bodies: one that listens to the request, for hot routes and logins, and koa-body, for management routes.
// The bytes of both are parsed strictly, as JSON or as a form.

import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ValidationItem } from '../../domain/errors/errors.ts';
import { malformedJson, payloadTooLarge, validationFailed } from '../../domain/errors/request-errors.ts';
import { inspect } from '../../domain/errors/validation.ts';
import { fieldValue, type JsonFields, JsonText } from '../../domain/json/json.ts';
import {
  type Excess,
  NO_INDEX,
  OPEN_BRACE,
  readFields,
  type Scanned,
  SHORT_TEXT,
  scanned,
  setField,
  skipSpace,
  skipValue,
} from '../../domain/json/json-scanner.ts';
import { LIMITS } from '../../domain/limits.ts';
import { loadOnce } from '../../domain/memory/load-once.ts';
import { HIDES_BAD_TEXT, NOT_UNICODE } from '../../domain/text.ts';
import { ClientGone } from '../client-gone.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { loadInTurns } from '../load-in-turns.ts';
import type { HttpContext, KoaContext } from '../request.ts';
import { BodyRequest, type BodySink } from './body-request.ts';

/**
 * Resolves with the result of `use` for the whole body. Calls `onBytes` with a number of bytes before they are kept.
 * Rejects with an error of either, with PAYLOAD_TOO_LARGE over `maxBytes`, which is the same for all requests of a
 * reader, or with ClientGone when the client disconnects.
 */
export type ReadBody<C = HttpContext> = <T>(
  context: C,
  maxBytes: number,
  use: (bytes: Buffer) => T | Promise<T>,
  onBytes?: OnBytes,
) => Promise<T>;

type OnBytes = (bytes: number) => void;

export function readDirect<T>(
  { req: request }: { readonly req: Readable },
  maxBytes: number,
  use: (bytes: Buffer) => T | Promise<T>,
  onBytes?: OnBytes,
): Promise<T> {
  if (request.destroyed) return Promise.reject(new ClientGone()); // `close` may have been emitted already
  return new Promise((resolve, reject) => {
    const body = new Incoming(request, maxBytes, use, onBytes, resolve, reject);
    if (!(request instanceof BodyRequest && request.collectBody(body))) body.listen(request);
  });
}

/** A body that is read. Positional arguments here and in the other classes of each request: an object would be one more. */
class Incoming<T> implements BodySink {
  readonly #request: Readable;
  readonly #maxBytes: number;
  readonly #use: (bytes: Buffer) => T | Promise<T>;
  readonly #onBytes: OnBytes | undefined;
  readonly #resolve: (used: T) => void;
  readonly #reject: (thrown: unknown) => void;
  /**
   * Nearly every body is one piece. Others are copied: a list of pieces of one byte would take 200 times the
   * memory of the body.
   */
  #bytes: Buffer = NO_BYTES;
  #length = 0;
  #isOver = false;
  #stopListening: (() => void) | undefined;

  constructor(
    request: Readable,
    maxBytes: number,
    use: (bytes: Buffer) => T | Promise<T>,
    onBytes: OnBytes | undefined,
    resolve: (used: T) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.#request = request;
    this.#maxBytes = maxBytes;
    this.#use = use;
    this.#onBytes = onBytes;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  listen(request: Readable): void {
    const data = (piece: Buffer) => this.data(piece);
    const end = () => this.end();
    const gone = () => this.gone();
    // A broken connection emits `error` and `close`; either is enough.
    request.on('error', gone);
    request.on('data', data).on('end', end).on('close', gone);
    this.#stopListening = () => request.off('data', data).off('end', end).off('close', gone);
  }

  data(piece: Buffer): void {
    const start = this.#length;
    this.#length += piece.length;
    try {
      if (this.#length > this.#maxBytes) throw payloadTooLarge(this.#maxBytes);
      this.#onBytes?.(piece.length);
    } catch (thrown) {
      this.#refuse(thrown);
      return;
    }
    if (start === 0) {
      this.#bytes = piece;
      return;
    }
    if (this.#length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(this.#maxBytes, 2 * this.#length));
      this.#bytes.copy(larger, 0, 0, start);
      this.#bytes = larger;
    }
    piece.copy(this.#bytes, start);
  }

  end(): void {
    this.#isOver = true; // the listeners stay: the request ends anyway, and removing them costs more
    const bytes = this.#bytes;
    const length = this.#length;
    try {
      const used = this.#use(bytes.length === length ? bytes : Buffer.from(bytes.subarray(0, length)));
      // Adopting a promise takes two more turns of the microtask queue.
      if (used instanceof Promise) used.then(this.#resolve, this.#reject);
      else this.#resolve(used);
    } catch (thrown) {
      this.#reject(thrown);
    }
  }

  gone(): void {
    if (!this.#isOver) this.#refuse(new ClientGone());
  }

  #refuse(thrown: unknown): void {
    this.#isOver = true;
    if (this.#request instanceof BodyRequest) this.#request.stopCollecting();
    this.#stopListening?.();
    this.#reject(thrown);
  }
}

export const NO_BYTES = Buffer.alloc(0);

/**
 * Makes the reader of management routes. koa-body only reads: its JSON parser replaces
 * broken UTF-8, takes an empty body for {}, refuses harmless keys and has no bound on depth, so the two readers would answer
 * differently. It cannot return bytes, hence the text of one character per byte. The first request loads it (100 ms).
 */
export function koaBodyReader(turn: () => Promise<void> = nextTurn): ReadBody<KoaContext> {
  let loaded: (() => ReturnType<typeof load>) | undefined;
  return async (context, maxBytes, use, onBytes) => {
    // The size is known only at the end, so the largest size is counted.
    if (context.req.headers['content-length'] === undefined) onBytes?.(maxBytes);
    loaded ??= loadOnce(() => load(maxBytes, turn));
    const middleware = await loaded();
    // body.ts refused every other encoding; koa-body knows the name in lower case only.
    context.req.headers['content-encoding'] = 'identity';
    await middleware(context, async () => {});
    const text: unknown = context.request.body;
    return use(typeof text === 'string' ? Buffer.from(text, 'latin1') : NO_BYTES);
  };
}

/** The modules that koa-body needs. */
export const BODY_MODULES = ['zod/v4/locales', 'zod/v4/core', 'zod', 'qs', 'formidable', 'co-body'];

async function load(maxBytes: number, turn: () => Promise<void>) {
  await loadInTurns(BODY_MODULES, turn);
  const { koaBody } = await import('koa-body');
  return koaBody({
    text: true,
    textTypes: ['application/json'],
    json: false,
    urlencoded: false,
    multipart: false,
    textLimit: maxBytes,
    // One character stands for one byte.
    encoding: 'binary',
    onError: (error, { req: request }) => {
      if ('type' in error && error.type === 'entity.too.large') throw payloadTooLarge(maxBytes);
      throw request.destroyed ? new ClientGone() : error;
    },
  });
}

/**
 * Parses JSON. Raises MALFORMED_JSON for broken UTF-8 and broken JSON; VALIDATION_ERROR for an empty body, for NUL
 * characters and lone surrogates anywhere, for more levels than the limit and for more than `mostValues` values.
 */
export function parseJsonBody(bytes: Buffer, mostValues: number = LIMITS.bodyValues): unknown {
  const { text, source } = checkedBody(bytes, mostValues);
  skipValue(source, skipSpace(bytes, 0));
  refuseExcess(source, mostValues);
  const value = parse(text);
  // A body without an escape has no invalid string: most bodies are not inspected.
  const issues = text.includes('\\u') ? inspect(value) : [];
  if (issues.length > 0) throw validationFailed(issues);
  return value;
}

/**
 * Reads the JSON of a call: its fields are put into `fields`, as text for forwarding (readFields), and returned as
 * values, with an empty object or array for `arguments`, which are not parsed. Texts in arrays and objects pass as
 * they are, and the values in `arguments` are not counted. Optional fields that are null are absent. Raises the
 * same errors.
 */
export function parseCallBody(bytes: Buffer, fields: Record<string, JsonFields[string]>): unknown {
  const { text, source } = checkedBody(bytes, LIMITS.bodyValues);
  const start = skipSpace(bytes, 0);
  const isObject = bytes[start] === OPEN_BRACE;
  const end = isObject ? readFields(source, start, fields) : skipValue(source, start);
  refuseExcess(source, LIMITS.bodyValues);
  if (!isObject || end === NO_INDEX || skipSpace(bytes, end) !== bytes.length) return parse(text);
  for (const name of OPTIONAL_FIELDS) if (fields[name] === null) delete fields[name];
  if (text.includes('\\u')) {
    const names = Object.entries(fields).filter(([, field]) => typeof field === 'string');
    const issues = inspect(Object.fromEntries(names));
    if (issues.length > 0) throw validationFailed(issues);
  }
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) setField(values, name, checkedValue(name, fields[name]));
  return values;
}

const OPTIONAL_FIELDS = ['arguments', 'context', '_meta'];

function checkedValue(name: string, field: JsonFields[string]): unknown {
  if (name !== 'arguments' || !(field instanceof JsonText)) return fieldValue(field);
  if (field.text.startsWith('{')) return {};
  return field.text.startsWith('[') ? [] : field.value;
}

function checkedBody(bytes: Buffer, mostValues: number) {
  if (bytes.length === 0) throw validationFailed([MISSING_BODY]);
  if (!isUtf8(bytes)) throw malformedJson('it is not UTF-8');
  const text = bytes.toString('utf8');
  const bounds = { levels: LIMITS.nestingDepth, values: mostValues };
  return { text, source: scanned(bytes, bounds, bytes.length <= SHORT_TEXT ? text : '') };
}

function refuseExcess({ excess }: Scanned, mostValues: number): void {
  if (excess !== undefined) throw validationFailed([tooMuch(excess, mostValues)]);
}

const MISSING_BODY: ValidationItem = { loc: ['body'], msg: 'Field required', type: 'missing' };

function tooMuch(excess: Excess, mostValues: number): ValidationItem {
  const what =
    excess === 'depth'
      ? `nested deeper than ${LIMITS.nestingDepth} levels`
      : `more than ${mostValues} values`;
  return { loc: ['body'], msg: `Value error, ${what}`, type: 'value_error' };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // A bare NUL is always a syntax error.
    if (text.includes('\0')) throw validationFailed([{ loc: ['body'], ...NOT_UNICODE }]);
    throw malformedJson(syntaxErrorOf(cause), cause);
  }
}

/** The position from the message of V8, which quotes the input and is therefore not repeated. */
function syntaxErrorOf(thrown: unknown): string {
  const position = thrown instanceof Error ? /at position (\d+)/.exec(thrown.message)?.[1] : undefined;
  return position === undefined
    ? 'it ends too early or is not JSON at all'
    : `syntax error at character ${position}`;
}

/**
 * Parses `application/x-www-form-urlencoded`, the body of a login. Raises VALIDATION_ERROR for broken UTF-8, NUL
 * characters, encoded surrogates, and repeated fields. Source: RFC 6749 section 3.2 for repeated fields.
 */
export function parseFormBody(bytes: Buffer): Readonly<Record<string, string>> {
  const text = bytes.toString('utf8');
  const isBad = !isUtf8(bytes) || text.includes('\0') || HIDES_BAD_TEXT.test(text);
  if (isBad) throw validationFailed([{ loc: ['body'], ...NOT_UNICODE }]);
  if (hasManyFields(text)) throw validationFailed([tooMuch('values', HTTP_LIMITS.formFields)]);
  const pairs = [...new URLSearchParams(text)];
  if (new Set(pairs.map(([name]) => name)).size < pairs.length) throw validationFailed([TWICE]);
  return Object.fromEntries(pairs);
}

/** Whether a form or a query has more than HTTP_LIMITS.formFields. */
export function hasManyFields(text: string): boolean {
  const { formFields } = HTTP_LIMITS;
  return text.split('&', formFields + 1).length > formFields;
}

const TWICE: ValidationItem = {
  loc: ['body'],
  msg: 'Value error, a field occurs more than once',
  type: 'value_error',
};
