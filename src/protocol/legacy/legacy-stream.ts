// One event stream of a session, which several connections may carry one after the other. It numbers its events, stores
// them for a client that resumes it, and ends once. Below: the stored events, and the bounds of their memory (ADR 30).
// Source: MCP 2025-11-25 basic/transports#sending-messages-to-the-server, #resumability-and-redelivery.

import { parseExact } from '../../domain/json/json.ts';
import { idValue, type JsonRpcId, RPC, readId } from '../../domain/mcp/jsonrpc.ts';
import { BYTES_PER_PIECE, inOwnMemory } from '../../domain/memory/held-bytes.ts';
import { UserShares } from '../../domain/memory/user-shares.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { MAX_UNREAD_BYTES } from '../client-bounds.ts';
import type { McpStream, ReplyWriter } from '../endpoint-types.ts';
import { errorMessage } from '../rpc.ts';

const MIB = 1024 * 1024;
/** The most bytes of one log. */
const MAX_LOG_BYTES = MIB;
/** The most bytes of one session, without its spare streams. */
const MAX_BYTES_PER_SESSION = 4 * MIB;
/** The most bytes of all sessions of one endpoint, of which a quarter is for spare streams. */
const MAX_ENDPOINT_BYTES = 256 * MIB;
/** The most spare streams. */
const MAX_SPARE_STREAMS = 4_096;
/** The most stored events of one stream, the latest ones. */
const MAX_EVENTS = 256;
/** The time in which a client may resume a stream after its last connection, in ms. */
const KEPT_MS = 60_000;

/** The dependencies of all streams of a session. */
export interface SessionStreamOptions extends LogOptions {
  readonly clock: Clock;
  /** The generation of the session, with which event ids begin. */
  readonly generation: number;
}

interface StreamOptions extends SessionStreamOptions {
  /** The key of the stream, unique in the process. */
  readonly key: string;
  /** The id of the request, if the stream answers only one: see EventPosition. */
  readonly request?: JsonRpcId | undefined;
  /** Called when the connection is lost before the stream has ended. */
  readonly onLost?: () => void;
  readonly onDiscarded?: () => void;
}

/** The last event that a client has of the stream that it resumes. */
export interface EventPosition {
  /** The generation of the session when the event was sent. */
  readonly generation: number;
  readonly key: string;
  readonly number: number;
  /** The id of the request that the stream answers, if it is only one and its id is short. */
  readonly request?: JsonRpcId | undefined;
}

/**
 * One event stream. When it ends on a connection, the client has probably received all events, but the connection may
 * be dead: the stream is spare then, until the connection breaks off or the client resumes the stream.
 */
export class LegacyStream {
  readonly #options: StreamOptions;
  readonly #log: MessageLog;
  /** The end of the event ids. */
  readonly #suffix: string;
  #stage: 'open' | 'ended' | 'discarded' = 'open';
  #socket: McpStream | undefined;
  /** The number of connections so far; only the latest one matters. */
  #connections = 0;
  #lastNumber = 0;
  /** True when the client got an event id before any message. */
  #hasFirstId = false;
  /** The last time at which a connection carried the stream. */
  #carriedAtMs = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#log = new MessageLog(options, { most: MAX_EVENTS });
    this.#suffix = suffixFor(options.request);
  }

  get key(): string {
    return this.#options.key;
  }

  get sessionId(): string {
    return this.#options.sessionId;
  }

  get ownerId(): string {
    return this.#options.ownerId;
  }

  get isLive(): boolean {
    return this.#socket !== undefined;
  }

  /** False when the connection is lost, and the client has no event after which it could resume the stream. */
  get isReachable(): boolean {
    return this.isLive || this.#hasFirstId || this.#lastNumber > 0;
  }

  get hasMessages(): boolean {
    return this.#lastNumber > 0;
  }

  /** True when the client leaves too much unread. */
  get isSlow(): boolean {
    return this.#socket !== undefined && this.#socket.unsentBytes > MAX_UNREAD_BYTES;
  }

  get isFinished(): boolean {
    return this.#stage !== 'open';
  }

  get bytes(): number {
    return this.#log.bytes;
  }

  /** True when the client has had enough time to resume the stream. */
  isAbandoned(nowMs: number): boolean {
    return !this.isLive && nowMs - this.#carriedAtMs >= KEPT_MS;
  }

  /**
   * Begins the stream; for a client that can poll, with an id to resume it with. Returns false when the client has
   * already left.
   */
  begin(reply: ReplyWriter, canPoll: boolean): boolean {
    this.#attach(reply);
    this.#hasFirstId = canPoll;
    if (canPoll) this.#socket?.send({ data: '', id: this.#idOf(0) });
    return this.isLive;
  }

  /**
   * Continues on another connection, first with the events after number `after`, and ends the previous connection.
   * Returns false when not all of these events are stored.
   */
  resume(reply: ReplyWriter, after: number): boolean {
    const hasEnded = this.isFinished;
    this.#detach()?.end();
    this.#options.budget.deleteSpare(this);
    this.#stage = 'open';
    this.#attach(reply);
    const later = this.#log.messages.filter(({ number }) => number > after);
    const isWhole = later.length >= this.#lastNumber - after;
    for (const { number, data } of later) this.#socket?.send({ data, id: this.#idOf(number) });
    if (hasEnded) this.#end();
    return isWhole;
  }

  /** Sends a message that must arrive: an answer, or a request of the server. */
  send(data: Uint8Array | string): void {
    if (this.isFinished) return;
    this.#lastNumber += 1;
    this.#log.append(this.#lastNumber, data);
    this.#socket?.send({ data, id: this.#idOf(this.#lastNumber) });
  }

  /** Sends a message, unless the client reads too slowly: then it is dropped, and false returned. */
  notify(data: Uint8Array | string): boolean {
    if (this.isSlow) return false;
    this.send(data);
    return true;
  }

  /**
   * Sends the answer to request `id`; `isLast`: the stream ends with it. If the answer is too large, an error is
   * stored instead.
   */
  answer(message: Uint8Array | string, id: JsonRpcId, isLast: boolean): void {
    if (this.isFinished) return;
    this.#lastNumber += 1;
    if (!this.#log.append(this.#lastNumber, message)) this.#log.append(this.#lastNumber, tooLarge(id));
    this.#socket?.send({ data: message, id: this.#idOf(this.#lastNumber) });
    if (isLast) this.finish();
  }

  /** Ends the connection, not the stream: the client is to resume the stream for the rest. */
  suspend(retryMs: number | undefined): void {
    const socket = this.#detach();
    this.#hasFirstId = true;
    const id = this.#idOf(this.#lastNumber);
    socket?.send(retryMs === undefined ? { data: '', id } : { data: '', id, retryMs });
    socket?.end();
  }

  /** Ends the stream. Its events are stored for a client that may resume it. */
  finish(): void {
    if (!this.isFinished) this.#end();
  }

  /** Ends the connection and discards the events. */
  discard(): void {
    if (this.#stage === 'discarded') return;
    this.#options.budget.deleteSpare(this);
    this.#stage = 'discarded';
    this.#log.clear();
    this.#detach()?.end();
    this.#options.onDiscarded?.();
  }

  #attach(reply: ReplyWriter): void {
    this.#connections += 1;
    const connection = this.#connections;
    this.#socket = reply.stream();
    reply.onGone(() => {
      if (connection !== this.#connections) return;
      if (this.isFinished) this.#options.budget.deleteSpare(this);
      else if (this.#detach() !== undefined) this.#options.onLost?.();
    });
  }

  #end(): void {
    const canResume = this.#hasFirstId || this.#lastNumber > 1;
    if (!canResume || this.#log.bytes === 0) {
      this.discard();
      return;
    }
    const socket = this.#detach();
    this.#stage = 'ended';
    this.#carriedAtMs = this.#options.clock.now();
    socket?.end();
    if (socket !== undefined) this.#options.budget.addSpare(this);
  }

  #detach(): McpStream | undefined {
    const socket = this.#socket;
    if (socket !== undefined) this.#carriedAtMs = this.#options.clock.now();
    this.#socket = undefined;
    this.#log.own();
    return socket;
  }

  #idOf(number: number): string {
    const { generation, key } = this.#options;
    return `${generation}-${key}.${number}${this.#suffix}`;
  }
}

const EVENT_ID = /^(\d{1,9})-([a-z0-9-]{1,20})\.(\d{1,9})(?:\.([\w-]{1,86}))?$/;
/** The longest id of a request that event ids contain, in bytes of its JSON. */
const MAX_REQUEST_BYTES = 64;

/**
 * The end of event ids with the id of the request: after a restart of the gateway, a client that resumes the
 * stream gets the error for this request.
 */
function suffixFor(request: JsonRpcId | undefined): string {
  const json = Buffer.from(request === undefined ? '' : JSON.stringify(idValue(request)));
  return json.length === 0 || json.length > MAX_REQUEST_BYTES ? '' : `.${json.toString('base64url')}`;
}

/** Reads the request id in an event id; undefined for text that no gateway wrote. */
function requestIn(suffix: string): JsonRpcId | undefined {
  try {
    return readId(parseExact(Buffer.from(suffix, 'base64url').toString()));
  } catch {
    return undefined; // the client changed it
  }
}

/** Reads an event id; undefined for text that is not an event id of this gateway. */
export function positionOf(eventId: string): EventPosition | undefined {
  const [, generation, key, number, suffix] = EVENT_ID.exec(eventId) ?? [];
  if (key === undefined) return undefined;
  const position = { generation: Number(generation), key, number: Number(number) };
  if (suffix === undefined) return position;
  const request = requestIn(suffix);
  return request === undefined ? undefined : { ...position, request };
}

function tooLarge(id: JsonRpcId): string {
  const message = 'The answer was lost with its connection: it is too large to be stored.';
  return errorMessage(id, { code: RPC.internalError, message });
}

/** The memory in which the messages of a log are counted, and the session and the caller to which they belong. */
export interface LogOptions {
  readonly budget: EventBudget;
  readonly sessionId: string;
  readonly ownerId: string;
}

/** Each counts BYTES_PER_PIECE besides its content. */
interface StoredMessage {
  readonly number: number;
  readonly data: Uint8Array | string;
  readonly bytes: number;
}

/** The messages of one log, oldest first, each with a number that the owner of the log chooses. */
export class MessageLog {
  readonly #options: LogOptions;
  readonly #most: number;
  readonly #dropsOldest: boolean;
  #isOwn = false;
  /** The stored messages, oldest first. */
  messages: StoredMessage[] = [];
  bytes = 0;

  /** `most`: the most messages. `dropsOldest`: the oldest messages make room for new ones. Default: true. */
  constructor(options: LogOptions, { most, dropsOldest = true }: { most: number; dropsOldest?: boolean }) {
    this.#options = options;
    this.#most = most;
    this.#dropsOldest = dropsOldest;
  }

  /** Stores a message. Returns false when there is no room. */
  append(number: number, data: Uint8Array | string): boolean {
    const bytes = Buffer.byteLength(data) + BYTES_PER_PIECE;
    if (bytes > MAX_LOG_BYTES) return false;
    while (!this.#takeRoom(bytes)) {
      if (!this.#dropsOldest || this.messages.length === 0) return false;
      this.#dropOldest();
    }
    this.messages.push({ number, data: this.#isOwn ? ownDataOf(data) : data, bytes });
    this.bytes += bytes;
    return true;
  }

  /** Copies all messages, now and later, out of the buffers that they share with others: they are stored for long. */
  own(): void {
    if (this.#isOwn) return;
    this.#isOwn = true;
    this.messages = this.messages.map((message) => ({ ...message, data: ownDataOf(message.data) }));
  }

  clear(): void {
    this.#options.budget.release(this.#options, this.bytes);
    this.messages = [];
    this.bytes = 0;
  }

  /** Drops the messages up to this number. */
  clearUntil(last: number): void {
    while ((this.messages[0]?.number ?? Number.POSITIVE_INFINITY) <= last) this.#dropOldest();
  }

  #dropOldest(): void {
    const { bytes } = this.messages.shift() ?? { bytes: 0 };
    this.bytes -= bytes;
    this.#options.budget.release(this.#options, bytes);
  }

  #takeRoom(bytes: number): boolean {
    const isWithinBounds = this.messages.length < this.#most && this.bytes + bytes <= MAX_LOG_BYTES;
    return isWithinBounds && this.#options.budget.take(this.#options, bytes);
  }
}

function ownDataOf(data: Uint8Array | string): Uint8Array | string {
  return typeof data === 'string'
    ? data
    : inOwnMemory(Buffer.from(data.buffer, data.byteOffset, data.length));
}

type LogOwner = Pick<LogOptions, 'sessionId' | 'ownerId'>;

/** Bounds the memory of the stored events of all sessions of one endpoint. */
export class EventBudget {
  /** The bytes of needed events, by owner, and by session. */
  readonly #byOwner: UserShares;
  readonly #bySession: UserShares;
  readonly #mostSpareBytes: number;
  /** The ended streams whose clients have probably received all events. Only the bounds of spare memory apply to them. */
  readonly #spare = new Set<LegacyStream>();
  #spareBytes = 0;

  /** `bytes`: the memory that the process can spare, if that is less than the usual bound. */
  constructor(bytes: number = MAX_ENDPOINT_BYTES) {
    const most = Math.min(bytes, MAX_ENDPOINT_BYTES);
    this.#mostSpareBytes = Math.floor(most / 4);
    this.#byOwner = new UserShares(most - this.#mostSpareBytes);
    this.#bySession = new UserShares(most - this.#mostSpareBytes, MAX_BYTES_PER_SESSION);
  }

  get neededBytes(): number {
    return this.#byOwner.total;
  }

  /** Counts these bytes and returns true, if they are within the bounds of the session, its owner and all. */
  take({ sessionId, ownerId }: LogOwner, bytes: number): boolean {
    if (!this.#bySession.fits(sessionId, bytes) || !this.#byOwner.take(ownerId, bytes)) return false;
    this.#bySession.add(sessionId, bytes);
    return true;
  }

  release({ sessionId, ownerId }: LogOwner, bytes: number): void {
    this.#bySession.release(sessionId, bytes);
    this.#byOwner.release(ownerId, bytes);
  }

  /** Counts the bytes of the stream as spare from now on; the oldest spare streams are discarded to make room. */
  addSpare(stream: LegacyStream): void {
    this.release(stream, stream.bytes);
    this.#spare.add(stream);
    this.#spareBytes += stream.bytes;
    for (const oldest of this.#spare) {
      if (this.#spareBytes <= this.#mostSpareBytes && this.#spare.size <= MAX_SPARE_STREAMS) break;
      oldest.discard();
    }
  }

  /** Counts the bytes of the stream for its session and owner again. Without effect for a stream that is not spare. */
  deleteSpare(stream: LegacyStream): void {
    if (!this.#spare.delete(stream)) return;
    this.#spareBytes -= stream.bytes;
    this.#bySession.add(stream.sessionId, stream.bytes);
    this.#byOwner.add(stream.ownerId, stream.bytes);
  }
}
