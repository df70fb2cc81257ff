// One event stream of a session, which several connections may carry one after the other. It numbers the events, stores them
// for a client that comes back, and ends once. It does not read the messages.
// Source: MCP 2025-11-25 basic/transports#sending-messages-to-the-server, #resumability-and-redelivery.

import { type JsonRpcId, RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { McpReply, McpStream } from '../endpoint-types.ts';
import { errorMessage } from '../rpc.ts';
import type { EventBudget, Spare } from './legacy-event-log.ts';
import { StreamLog } from './legacy-event-log.ts';

/** How long a client that lost a stream, or did not take all of it, may take to come back. */
const AWAITED_MS = 60_000;
/**
 * The same for a connection that took all of it. The kernel accepted the bytes, but the connection of the client may be dead.
 * Clients that notice come back within seconds (the SDK's after 1 and 2.5 s); nearly all others have the events.
 */
const TAKEN_MS = 15_000;

/**
 * `open`: something may be said on it. `leaving`: it ended, and its connection may have something of it left. `taken`: it
 * has nothing left. `missed`: it broke off before, or there was none. `forgotten`: nothing is kept.
 */
type Stage = 'open' | 'leaving' | 'taken' | 'missed' | 'forgotten';

/** Dependencies and callbacks of a stream. */
export interface StreamDeps {
  /** Unique in the process: event ids begin with it. */
  readonly key: string;
  readonly budget: EventBudget;
  /** The connection is gone before the stream ended. */
  readonly onLost?: () => void;
  /** The stream ended, and what it kept may have been taken by now. */
  readonly onTaken: () => void;
  /** Nothing is stored of it any more. */
  readonly onForgotten?: (stream: LegacyStream) => void;
}

/** Where a client that lost a stream wants to go on. */
export interface EventPosition {
  readonly key: string;
  readonly number: number;
}

/** One stream. It holds events of its budget until it is discarded, which its budget may do once they are spare. */
export class LegacyStream implements Spare {
  readonly #deps: StreamDeps;
  readonly #log: StreamLog;
  #stage: Stage = 'open';
  #socket: McpStream | undefined;
  /** A connection that was ended with the stream, and may still have something to hand over. */
  #leaving: McpStream | undefined;
  /** Connections so far: only the latest one matters. */
  #connections = 0;
  #lastNumber = 0;
  /** Its client got an event id before any message. */
  #isNamed = false;
  /** When a connection carried it last, or was found to have taken all of it. */
  #leftAtMs = 0;

  constructor(deps: StreamDeps) {
    this.#deps = deps;
    this.#log = new StreamLog(deps.budget);
  }

  get key(): string {
    return this.#deps.key;
  }

  /** True while a connection carries it. */
  get isLive(): boolean {
    return this.#socket !== undefined;
  }

  get isFinished(): boolean {
    return this.#stage !== 'open';
  }

  /** True when nothing is stored any more. */
  get isDone(): boolean {
    return this.#stage === 'forgotten';
  }

  /** Bytes it holds. */
  get bytes(): number {
    return this.#log.bytes;
  }

  /** True when its client stayed away for too long. */
  isForsaken(nowMs: number): boolean {
    return !this.isLive && nowMs - this.#leftAtMs >= (this.#stage === 'taken' ? TAKEN_MS : AWAITED_MS);
  }

  /**
   * Looks whether it ended and its connection took all of it. From then on it is spare; forgotten, if its client has no
   * event to come back with. False when looking again may tell more.
   */
  checkTaken(): boolean {
    if (this.#stage === 'open') return false;
    if (this.#leaving?.unsentBytes === 0) this.#becomeTaken();
    if (this.#log.bytes === 0) this.discard();
    return this.#stage !== 'leaving';
  }

  /**
   * Begins it on a connection; for a client that can poll, with an id to come back with. False when the client has left
   * already.
   */
  begin(reply: McpReply, canPoll: boolean): boolean {
    this.#carryOn(reply);
    this.#isNamed = canPoll;
    if (canPoll) this.#socket?.send({ data: '', id: this.#idOf(0) });
    return this.isLive;
  }

  /** Begins it, and ends the connection with that: the client is to come back. False when it has left already. */
  beginSuspended(reply: McpReply, retryMs: number | undefined): boolean {
    this.#carryOn(reply);
    const isThere = this.isLive;
    this.suspend(retryMs);
    return isThere;
  }

  /** Goes on, on another connection: first with what came after that event. A connection that is left is ended. */
  resume(reply: McpReply, after: number): void {
    const hasEnded = this.isFinished;
    this.#release()?.end();
    this.#become('open');
    this.#carryOn(reply);
    for (const { number, data } of this.#log.after(after)) {
      this.#socket?.send({ data, id: this.#idOf(number) });
    }
    if (hasEnded) this.#end();
  }

  /** Sends a message that must arrive: an answer, or a request of the server. */
  send(data: Uint8Array | string): void {
    if (this.isFinished) return;
    this.#lastNumber += 1;
    this.#log.append(this.#lastNumber, data);
    this.#socket?.send({ data, id: this.#idOf(this.#lastNumber) });
  }

  /** Sends a message that is left out for a client which reads too slowly. */
  notify(data: Uint8Array | string): void {
    if (this.#socket === undefined || this.#socket.unsentBytes <= LIMITS.unreadBytes) this.send(data);
  }

  /** The answer to request `id`, the last one if `isLast`. One that is too large to be kept is replaced for a return. */
  answer(message: Uint8Array | string, id: JsonRpcId, isLast: boolean): void {
    if (this.isFinished) return;
    this.#lastNumber += 1;
    if (!this.#log.append(this.#lastNumber, message)) this.#log.append(this.#lastNumber, tooLarge(id));
    this.#socket?.send({ data: message, id: this.#idOf(this.#lastNumber) });
    if (isLast) this.finish();
  }

  /** Ends the connection, not the stream: the client is to come back for the rest. */
  suspend(retryMs: number | undefined): void {
    const socket = this.#release();
    this.#isNamed = true;
    const id = this.#idOf(this.#lastNumber);
    socket?.send(retryMs === undefined ? { data: '', id } : { data: '', id, retryMs });
    socket?.end();
  }

  /** Nothing more will be said. What the connection has not taken is kept, and for a while what it has. */
  finish(): void {
    if (!this.isFinished) this.#end();
  }

  /** Ends the connection and forgets everything. */
  discard(): void {
    if (this.isDone) return;
    this.#become('forgotten');
    this.#release()?.end();
    this.#log.clear();
    this.#deps.onForgotten?.(this);
  }

  #carryOn(reply: McpReply): void {
    this.#connections += 1;
    const connection = this.#connections;
    this.#socket = reply.stream();
    reply.onGone(() => {
      if (connection === this.#connections) this.#lose();
    });
  }

  /** Its connection broke off; if the stream had ended, before all of it was handed over, whatever it looked like. */
  #lose(): void {
    if (this.#stage === 'leaving' || this.#stage === 'taken') {
      this.#become('missed');
    } else if (this.#release() !== undefined) {
      this.#deps.onLost?.();
    }
  }

  #end(): void {
    const socket = this.#release();
    this.#leftAtMs = Date.now();
    this.#leaving = socket;
    this.#stage = socket === undefined ? 'missed' : 'leaving';
    if (socket === undefined) return;
    socket.end();
    // What is written in this turn leaves with it, in nearly every case.
    if (socket.unsentBytes > 0) setImmediate(this.#deps.onTaken);
  }

  #becomeTaken(): void {
    this.#leaving = undefined; // a response and a socket hang on it
    if (!this.#isNamed && this.#lastNumber < 2) {
      this.discard();
      return;
    }
    this.#stage = 'taken';
    this.#leftAtMs = Date.now();
    this.#deps.budget.addSpare(this);
  }

  /** Whatever it was, what it keeps is not spare, and no connection has anything left of it. */
  #become(stage: Stage): void {
    this.#deps.budget.removeSpare(this);
    this.#leaving = undefined;
    this.#stage = stage;
  }

  #release(): McpStream | undefined {
    const socket = this.#socket;
    if (socket !== undefined) this.#leftAtMs = Date.now();
    this.#socket = undefined;
    return socket;
  }

  #idOf(number: number): string {
    return `${this.#deps.key}.${number}`;
  }
}

const EVENT_ID = /^([a-z0-9-]{1,20})\.(\d{1,9})$/;

/** Reads an event id; undefined for one that was never given. */
export function positionOf(eventId: string): EventPosition | undefined {
  const [, key, number] = EVENT_ID.exec(eventId) ?? [];
  return key === undefined ? undefined : { key, number: Number(number) };
}

function tooLarge(id: JsonRpcId): string {
  const message = 'The answer was lost with its connection: it is too large to be kept.';
  return errorMessage(id, { code: RPC.internalError, message });
}

// The event streams that answer the POSTs of one session: while they are open, and as long as their client may come back.

/** What all of them need to know. */
interface StreamsDeps extends Omit<StreamDeps, 'key' | 'onForgotten'> {
  /** Keys of streams; none comes twice in the process. */
  readonly nextKey: () => string;
}

/** The streams of one session. */
export class LegacyStreams {
  readonly #deps: StreamsDeps & Pick<StreamDeps, 'onForgotten'>;
  readonly #streams = new Map<string, LegacyStream>();
  /** Those of which it is not known yet whether they were taken: a call only looks at these. */
  readonly #unsettled = new Set<LegacyStream>();

  constructor(deps: StreamsDeps) {
    const onForgotten = (stream: LegacyStream) => {
      this.#streams.delete(stream.key);
      this.#unsettled.delete(stream);
    };
    this.#deps = { ...deps, onForgotten };
  }

  get size(): number {
    return this.#streams.size;
  }

  /** One that is not begun yet. */
  open(): LegacyStream {
    const stream = new LegacyStream({ ...this.#deps, key: this.#deps.nextKey() });
    this.#streams.set(stream.key, stream);
    this.#unsettled.add(stream);
    return stream;
  }

  /** Goes on with the stream of that event. False when it is gone, or another session's. */
  resume(reply: McpReply, { key, number }: EventPosition): boolean {
    const stream = this.#streams.get(key);
    if (stream === undefined) return false;
    this.#unsettled.add(stream);
    stream.resume(reply, number);
    return true;
  }

  /** Looks which of those that ended were taken by now. */
  checkTaken(): void {
    for (const stream of this.#unsettled) {
      if (stream.checkTaken()) this.#unsettled.delete(stream);
    }
  }

  /** Discards those that ended and whose client did not come back. */
  expire(nowMs: number): void {
    this.checkTaken();
    for (const stream of this.#streams.values()) {
      if (stream.isFinished && stream.isForsaken(nowMs)) stream.discard();
    }
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.discard();
  }
}
