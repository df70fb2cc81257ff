// One event stream of a session, whatever connections carry it one after the other. It numbers what is sent, keeps it for
// a client that comes back, and ends once. What is said on it is not its business.
// Source: MCP 2025-11-25 basic/transports#sending-messages-to-the-server, #resumability-and-redelivery.

import { RPC } from '../domain/jsonrpc.ts';
import type { McpReply, McpStream } from './endpoint-types.ts';
import { errorMessage } from './envelope.ts';
import { type EventBudget, EventLog } from './legacy-event-log.ts';

/** Bytes that a client may leave unread; while it does, notifications are left out. */
const MOST_UNREAD_BYTES = 1024 * 1024;
/** How long a client that lost a stream, or did not take all of it, may take to come back. */
const AWAITED_MS = 60_000;

/** What a stream needs to know, and who hears of it. */
export interface StreamFacts {
  /** Unique in the process: event ids begin with it. */
  readonly key: string;
  readonly budget: EventBudget;
  /** The connection is gone before the stream ended. */
  readonly onLost?: () => void;
  /** The stream ended, and what it kept may have been taken by now. */
  readonly onTaken: () => void;
}

/** Where a client that lost a stream wants to go on. */
export interface EventPosition {
  readonly key: string;
  readonly number: number;
}

/** One stream. It holds events of its budget until it is discarded. */
export class LegacyStream {
  readonly #facts: StreamFacts;
  readonly #log: EventLog;
  #socket: McpStream | undefined;
  /** A connection that was ended with the stream, and may still have something to hand over. */
  #leaving: McpStream | undefined;
  #lastNumber = 0;
  #isFinished = false;
  /** When a connection carried it last. */
  #leftAtMs = 0;

  constructor(facts: StreamFacts) {
    this.#facts = facts;
    this.#log = new EventLog(facts.budget);
  }

  get key(): string {
    return this.#facts.key;
  }

  /** True while a connection carries it. */
  get isLive(): boolean {
    return this.#socket !== undefined;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** True when nobody can want anything of it any more: it ended, and a connection took all of it. */
  get isDone(): boolean {
    return this.#isFinished && (this.#log.bytes === 0 || this.#leaving?.unsentBytes === 0);
  }

  /** True when its client stayed away for so long that it is not waited for any more. */
  isForsaken(nowMs: number): boolean {
    return !this.isLive && nowMs - this.#leftAtMs >= AWAITED_MS;
  }

  /**
   * Begins it on a connection; for a client that can poll, with an id to come back with. False when the client has left
   * already.
   */
  begin(reply: McpReply, canPoll: boolean): boolean {
    this.#carryOn(reply);
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
    this.#release()?.end();
    this.#carryOn(reply);
    for (const { number, data } of this.#log.after(after)) {
      this.#socket?.send({ data, id: this.#idOf(number) });
    }
    if (this.#isFinished) this.#end();
  }

  /** Says something that must arrive: an answer, or a request of the server. */
  send(data: Uint8Array | string): void {
    if (this.#isFinished) return;
    this.#lastNumber += 1;
    this.#log.append(this.#lastNumber, data);
    this.#socket?.send({ data, id: this.#idOf(this.#lastNumber) });
  }

  /** Says something that a client which reads too slowly goes without. */
  notify(data: Uint8Array | string): void {
    if (this.#socket === undefined || this.#socket.unsentBytes <= MOST_UNREAD_BYTES) this.send(data);
  }

  /** The answer to request `id`, the last one if `isLast`. One that is too large to be kept is replaced for a return. */
  answer(message: Uint8Array | string, id: string | number, isLast: boolean): void {
    if (this.#isFinished) return;
    this.#lastNumber += 1;
    if (!this.#log.append(this.#lastNumber, message)) this.#log.append(this.#lastNumber, tooLarge(id));
    this.#socket?.send({ data: message, id: this.#idOf(this.#lastNumber) });
    if (isLast) this.finish();
  }

  /** Ends the connection, not the stream: the client is to come back for the rest. */
  suspend(retryMs: number | undefined): void {
    const socket = this.#release();
    const id = this.#idOf(this.#lastNumber);
    socket?.send(retryMs === undefined ? { data: '', id } : { data: '', id, retryMs });
    socket?.end();
  }

  /** Nothing more will be said. What the connection has not taken is kept. */
  finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#end();
  }

  /** Ends the connection and forgets everything. */
  discard(): void {
    this.#isFinished = true;
    this.#release()?.end();
    this.#leaving = undefined;
    this.#log.clear();
  }

  #carryOn(reply: McpReply): void {
    const socket = reply.stream();
    this.#socket = socket;
    reply.onGone(() => {
      if (this.#leaving === socket) this.#leaving = undefined;
      if (this.#socket !== socket) return;
      this.#release();
      this.#facts.onLost?.();
    });
  }

  #end(): void {
    const socket = this.#release();
    this.#leftAtMs = Date.now();
    if (socket === undefined) return;
    socket.end();
    this.#leaving = socket;
    // What is written in this turn leaves with it, in nearly every case.
    if (!this.isDone) setImmediate(this.#facts.onTaken);
  }

  #release(): McpStream | undefined {
    const socket = this.#socket;
    if (socket !== undefined) this.#leftAtMs = Date.now();
    this.#socket = undefined;
    return socket;
  }

  #idOf(number: number): string {
    return `${this.#facts.key}.${number}`;
  }
}

const EVENT_ID = /^([a-z0-9-]{1,20})\.(\d{1,9})$/;

/** Reads an event id; undefined for one that was never given. */
export function positionOf(eventId: string): EventPosition | undefined {
  const [, key, number] = EVENT_ID.exec(eventId) ?? [];
  return key === undefined ? undefined : { key, number: Number(number) };
}

function tooLarge(id: string | number): string {
  const message = 'The answer was lost with its connection: it is too large to be kept.';
  return errorMessage(id, { code: RPC.internalError, message });
}
