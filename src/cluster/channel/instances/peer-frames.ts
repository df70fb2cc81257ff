// The messages between two nodes about an instance: the request of an exchange, and frames, of which every answer consists. A
// frame is one byte for its kind, four for its length, and its content: JSON, or the bytes of a result, which no node parses.
// Source: ADR 170.

import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { TraceFields } from '../../../domain/calls/request-trace.ts';
import { backendUnavailable } from '../../../domain/errors/backend-errors.ts';
import {
  type Delivered,
  ERRORS,
  type ErrorCode,
  type ErrorFacts,
  GatewayError,
  type HttpRefusal,
} from '../../../domain/errors/errors.ts';
import type { ProgramEnd } from '../../../domain/instances/found-instances.ts';
import type { HostDuty } from '../../../domain/instances/instance.ts';
import {
  definedFields,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
  parseExact,
} from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { ClientAnswer } from '../../../domain/mcp/client.ts';
import type { JsonRpcError } from '../../../domain/mcp/jsonrpc.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import { withoutRest } from '../../../domain/memory/held-bytes.ts';
import type { Closed } from '../../../transports/transport.ts';

export type PeerFrame =
  | ({ readonly kind: 'opened' } & OpenedConversation)
  /** The backend has no dedicated conversations. */
  | { readonly kind: 'none' }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  | {
      readonly kind: 'question';
      readonly question: number;
      readonly method: string;
      readonly params: JsonObject;
    }
  | { readonly kind: 'interrupted'; readonly retryMs: number | undefined }
  | { readonly kind: 'error'; readonly error: JsonRpcError; readonly refusal?: HttpRefusal | undefined }
  /** The result follows. */
  | { readonly kind: 'cut'; readonly cut: string }
  | { readonly kind: 'result'; readonly result: JsonText }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | ClosedFrame
  | ({ readonly kind: 'duty' } & HostDuty)
  /** Calls at the instance that did not come by this link. */
  | { readonly kind: 'load'; readonly otherCalls: number };

/** The last frame of a conversation. `expected`: see Closed; nodes of earlier releases know it by this name. */
interface ClosedFrame extends ProgramEnd {
  readonly kind: 'closed';
  readonly expected: boolean;
}

/** The first frame of a conversation. */
export interface OpenedConversation {
  /** Names it in later requests. */
  readonly conversation: string;
  /** Names the conversation of the backend: the same one after the link to it was lost. Undefined for a dedicated one. */
  readonly backend?: string | undefined;
  readonly peer: Handshake;
  readonly pid?: number | undefined;
  readonly isIndependent?: boolean | undefined;
  readonly endsAfterCall?: boolean | undefined;
  /** True when the node has the connection that exchanges share. */
  readonly sharesExchanges?: boolean | undefined;
}

export interface PeerConversationRequest {
  readonly template: string;
  readonly id: string;
  /** The client that it is opened for. Default: it is the one that clients share. */
  readonly profile?: JsonObject | undefined;
  readonly isShared?: boolean | undefined;
  /** Names the link of a node to the instance: the same one for all of its conversations there. Default: it is the only one. */
  readonly way?: string | undefined;
}

export interface NotificationRequest {
  readonly conversation: string;
  readonly method: string;
  readonly params: JsonObject;
}

export interface ClientAnswerRequest {
  readonly conversation: string;
  readonly question: number;
  readonly reply: ClientAnswer;
}

type Failure = Readonly<Record<string, unknown>>;

const JSON_KIND = 0;
const RESULT_KIND = 1;
const HEAD_BYTES = 5;
/** The most bytes of a frame: a result, and the bytes that JSON adds to it. */
const MAX_FRAME_BYTES = LIMITS.backendMessageBytes + 1024;

/** The bytes of a frame: see the head of this file. */
export function frameOf(frame: PeerFrame): Buffer {
  const isResult = frame.kind === 'result';
  const content = isResult ? frame.result.bytes : Buffer.from(JSON.stringify(frame));
  const whole = Buffer.allocUnsafe(HEAD_BYTES + content.length);
  whole[0] = isResult ? RESULT_KIND : JSON_KIND;
  whole.writeUInt32BE(content.length, 1);
  content.copy(whole, HEAD_BYTES);
  return whole;
}

export function closedFrame({ isExpected, ...end }: Closed): ClosedFrame {
  return { kind: 'closed', ...end, expected: isExpected };
}

export function closedIn({ kind, expected, ...end }: ClosedFrame): Closed {
  return { ...end, isExpected: expected };
}

/** Finds the frames in the parts of an answer. */
export class FrameReader {
  readonly #onFrame: (frame: PeerFrame) => void;
  #parts: Buffer[] = [];
  /** Bytes of an incomplete frame. */
  heldBytes = 0;

  constructor(onFrame: (frame: PeerFrame) => void) {
    this.#onFrame = onFrame;
  }

  /** Reads the next part, which the reader keeps. Throws for bytes that are not a frame. */
  push(part: Buffer): void {
    this.#parts.push(part);
    this.heldBytes += part.length;
    while (this.heldBytes >= HEAD_BYTES) {
      const first = this.#first(HEAD_BYTES);
      const length = first.readUInt32BE(1);
      if (length > MAX_FRAME_BYTES) throw new RangeError('a frame of another node is too large');
      if (this.heldBytes < HEAD_BYTES + length) return;
      const whole = this.#first(HEAD_BYTES + length);
      const rest = whole.subarray(HEAD_BYTES + length);
      this.#parts = rest.length === 0 ? [] : [rest]; // an empty one would keep the whole frame
      this.heldBytes -= HEAD_BYTES + length;
      this.#onFrame(frameIn(whole[0], whole.subarray(HEAD_BYTES, HEAD_BYTES + length)));
    }
  }

  /** A buffer that begins with these bytes; the parts of a large frame are joined once, when it is complete. */
  #first(bytes: number): Buffer {
    const [first] = this.#parts;
    if (first !== undefined && first.length >= bytes) return first;
    const whole = Buffer.concat(this.#parts);
    this.#parts = [whole];
    return whole;
  }
}

function frameIn(kind: number | undefined, content: Buffer): PeerFrame {
  if (kind === RESULT_KIND) return { kind: 'result', result: JsonText.ofBytes(withoutRest(content)) };
  const frame = kind === JSON_KIND ? parsedOrUndefined(content) : undefined;
  if (!isFrame(frame)) throw new TypeError('a frame of its node is not of its form');
  return frame;
}

function parsedOrUndefined(content: Buffer): unknown {
  try {
    return parseExact(content.toString());
  } catch {
    return undefined;
  }
}

type Check = (value: unknown) => boolean;
const isText: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => typeof value === 'number';
/** Also one that JavaScript would change, which is kept as text. */
const isErrorCode: Check = (value) => isNumber(value) || value instanceof JsonText;
/** A wait in ms: a longer one, of a node that is broken, would never end. */
const isWait: Check = (value) => Number(value) >= 0 && Number(value) <= LIMITS.refusedLongestMs;
const isBoolean: Check = (value) => typeof value === 'boolean';
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const hasFields =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isJsonObject(value) && Object.entries(fields).every(([name, check]) => check(value[name]));

const isHandshake = hasFields({
  era: isText,
  protocolVersion: isText,
  serverInfo: isJsonObject,
  capabilities: isJsonObject,
  greeting: isJsonObject,
});

const isBackendError = hasFields({ code: isErrorCode, message: isText });
const isRefusal = hasFields({ status: isNumber, waitMs: optional(isWait) });

/** The fields without which a frame cannot be used, by its kind. That of a later release is not used. */
const FRAME_FIELDS: Readonly<Record<Exclude<PeerFrame['kind'], 'result'>, Check>> = {
  opened: hasFields({ conversation: isText, backend: optional(isText), peer: isHandshake }),
  none: isJsonObject,
  notification: hasFields({ method: isText, params: isJsonObject }),
  question: hasFields({ question: isNumber, method: isText, params: isJsonObject }),
  interrupted: hasFields({ retryMs: optional(isNumber) }),
  error: hasFields({
    error: isBackendError,
    refusal: optional(isRefusal),
  }),
  cut: hasFields({ cut: isText }),
  failed: hasFields({ failure: isJsonObject }),
  closed: hasFields({ reason: isText, expected: isBoolean }),
  duty: hasFields({ isDraining: isBoolean }),
  load: hasFields({ otherCalls: isNumber }),
};

function isFrame(value: unknown): value is PeerFrame {
  if (!isJsonObject(value) || typeof value.kind !== 'string') return false;
  const check: Check | undefined = Object.hasOwn(FRAME_FIELDS, value.kind)
    ? FRAME_FIELDS[value.kind as keyof typeof FRAME_FIELDS]
    : undefined;
  return check === undefined ? value.kind !== 'result' : check(value);
}

/** The part of an exchange that crosses. Parameters that are kept as text follow as they are, behind the first line. */
interface ExchangeHead {
  readonly conversation: string;
  readonly method: string;
  readonly params?: JsonObject;
  /** Names and lengths in bytes of the parameters that follow. */
  readonly texts?: readonly (readonly [name: string, bytes: number])[];
  readonly wantsProgress?: boolean;
  /** True when the request is resent: its `isResent`. */
  readonly isRepeat?: boolean;
  readonly longestMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly trace?: TraceFields;
}

/** The body of the request that begins an exchange; parameters cross as the bytes that were received. */
export function exchangeBody(conversation: string, request: ExchangeRequest): Buffer {
  const { method, params, wantsProgress, isResent: isRepeat, longestMs, headers, trace } = request;
  const fields = Object.entries(params ?? {});
  const texts = fields.flatMap(([name, field]) =>
    field instanceof JsonText ? [[name, field.bytes] as const] : [],
  );
  const values = Object.fromEntries(fields.filter(([, field]) => !(field instanceof JsonText)));
  const optional = definedFields({ wantsProgress, isRepeat, longestMs, headers, trace: trace?.fields });
  const head = {
    conversation,
    method,
    ...optional,
    ...(params === undefined
      ? {}
      : { params: values, texts: texts.map(([name, bytes]) => [name, bytes.length]) }),
  };
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...texts.map(([, bytes]) => bytes)]);
}

/**
 * The exchange in the body of a request. Throws BACKEND_UNAVAILABLE, not delivered, for anything else. `trace`: the fields
 * for the backend.
 */
export function exchangeIn(body: Buffer): {
  readonly conversation: string;
  readonly request: ExchangeRequest;
  readonly trace: TraceFields | undefined;
} {
  const end = body.indexOf('\n');
  const head = objectIn(body.subarray(0, Math.max(0, end)));
  if (!isExchangeHead(head, body.length - end - 1)) throw notUnderstood();
  const {
    conversation,
    method,
    params,
    texts = [],
    wantsProgress,
    isRepeat: isResent,
    longestMs,
    headers,
    trace,
  } = head;
  let at = end + 1;
  const kept = texts.map(([name, bytes]) => {
    at += bytes;
    return [name, JsonText.ofBytes(body.subarray(at - bytes, at))] as const;
  });
  const fields: JsonFields = Object.fromEntries([...Object.entries(params ?? {}), ...kept]);
  const request = {
    method,
    ...definedFields({ wantsProgress, isResent, longestMs, headers }),
    ...(params === undefined ? {} : { params: fields }),
  };
  return { conversation, request, trace };
}

/** True for the fields without which nothing can be sent. Conversations are looked up, the rest is passed on. */
function isExchangeHead(
  head: JsonObject & Partial<ExchangeHead>,
  restBytes: number,
): head is JsonObject & ExchangeHead {
  const { method, params = {}, texts = [] } = head;
  if (typeof method !== 'string' || !isJsonObject(params) || !Array.isArray(texts)) return false;
  let bytes = 0;
  for (const text of texts as readonly unknown[]) {
    if (
      !Array.isArray(text) ||
      typeof text[0] !== 'string' ||
      !(Number.isSafeInteger(text[1]) && text[1] >= 0)
    )
      return false;
    bytes += text[1];
  }
  return bytes <= restBytes;
}

/** The object in the body of any other request. Throws BACKEND_UNAVAILABLE, not delivered, for anything else. */
export function objectIn(body: Buffer): JsonObject {
  let value: unknown;
  try {
    value = parseExact(body.toString());
  } catch (cause) {
    throw notUnderstood(cause);
  }
  if (!isJsonObject(value)) throw notUnderstood();
  return value;
}

function notUnderstood(cause?: unknown): GatewayError {
  return backendUnavailable('its node does not understand the request', { delivered: 'no', cause });
}

/**
 * The facts of an error that cross, with their form: those that decide about the next step, and those that callers see. An
 * instance that is unreachable becomes unhealthy at its node, which says so: of its health only `suspicious` crosses.
 */
const CROSSING = {
  delivered: (value) => value === 'no' || value === 'unknown' || value === 'yes',
  retryAfterSeconds: (value) => typeof value === 'number' && isWait(value * 1_000),
  reason: isText,
  plainMessage: isText,
  backendError: isBackendError,
  refusal: isRefusal,
  isSessionLost: isBoolean,
  isRepaired: isBoolean,
  health: (value) => value === 'suspicious',
} satisfies Partial<Record<keyof ErrorFacts, Check>>;

function crossingFacts(facts: object): ErrorFacts {
  const known: Readonly<Record<string, unknown>> = { ...facts };
  const names = Object.entries(CROSSING).filter(([name, check]) => check(known[name]));
  return Object.fromEntries(names.map(([name]) => [name, known[name]]));
}

/** An error without the facts that are only for its own node. */
export function failureToSend({ code, message, facts }: GatewayError): Failure {
  return { code, message, facts: crossingFacts(facts) };
}

/** The error of another node; one with an unknown code is BACKEND_UNAVAILABLE. `delivered`: unless its facts say it. */
export function errorIn({ code, message, facts }: Failure, delivered: Delivered): GatewayError {
  const isKnown = typeof code === 'string' && Object.hasOwn(ERRORS, code);
  const known = isKnown ? (code as ErrorCode) : 'BACKEND_UNAVAILABLE';
  return new GatewayError(known, String(message), { delivered, ...crossingFacts(Object(facts)) });
}
