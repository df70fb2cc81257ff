// The messages of two nodes on a multiplexed connection, which exchanges share, after an upgrade of HTTP. A message is four
// bytes for its length, one for its kind, four for the number of the exchange, and its content. Both ends write once per turn
// of the event loop, which is what makes it cheaper than a request per exchange. A large answer goes in parts, in turn with
// others. Source: ADR 170.

import type { Socket } from 'node:net';
import { LIMITS } from '../../../domain/limits.ts';
import { NO_BYTES } from '../../../domain/memory/bounded-bytes.ts';
import { INSTANCE_PATHS } from '../peer-protocol.ts';

/** Named in the header `Upgrade`. Another form of the messages gets another name. */
export const MULTIPLEXED_PROTOCOL = 'stagedoor-exchanges-1';

export const MESSAGE = {
  // Kinds of messages from the node of the call:
  /** A token; the number is its slot, which may have had another token before. An empty one frees the slot. */
  token: 1,
  request: 2,
  cancel: 3,
  /** Asks whether the node still answers; `pong` is the answer. */
  ping: 9,
  // Kinds of messages from the node of the instance:
  /** A part of an answer. */
  part: 4,
  /** The last part of an answer. */
  last: 5,
  /** The request was not carried out. The content is the reason. */
  refused: 6,
  /** The answer breaks off. */
  broken: 7,
  /** The sender takes no further requests. */
  leaving: 8,
  pong: 10,
} as const;

/** The paths of requests; a request names its path by the index. */
export const REQUEST_PATHS = [
  INSTANCE_PATHS.exchange,
  INSTANCE_PATHS.notification,
  INSTANCE_PATHS.reply,
] as const;
/**
 * The head of a request: two bytes for the slot of its token, one for its path, one for the length of its id. The id and the body
 * follow.
 */
export const REQUEST_HEAD_BYTES = 4;

/**
 * Content of a message, at most. Larger requests, and those with larger tokens, get a connection of their own,
 * larger answers several messages.
 */
export const PART_BYTES = 64 * 1024;
/** Exchanges under way on one connection. */
export const MAX_MULTIPLEXED = 1_024;
/** Tokens that both ends of a connection remember. */
export const TOKEN_SLOTS = 4_096;
/** The most bytes of all of these: most have some 500, those of callers with long lists of rights up to PART_BYTES. */
export const MAX_TOKEN_BYTES = 16 * 1024 * 1024;
const HEAD_BYTES = 9;
/** A request has a head besides. */
const MAX_MESSAGE_BYTES = 2 * PART_BYTES;
/** Bytes that may wait in a socket before answers wait in their own lists. */
const BUSY_BYTES = 256 * 1024;
/** The most bytes of answers that wait for a node, if more than one waits: as many as of two of the largest. */
const MAX_WAITING_BYTES = 2 * LIMITS.backendMessageBytes;

type Kind = (typeof MESSAGE)[keyof typeof MESSAGE];

/** Finds the messages in the bytes that a socket reads. */
export class MessageReader {
  readonly #onMessage: (kind: number, number: number, content: Buffer) => void;
  #rest: Buffer | undefined;

  constructor(onMessage: (kind: number, number: number, content: Buffer) => void) {
    this.#onMessage = onMessage;
  }

  /** Reads the messages in `bytes`, of which their contents are parts. Throws for bytes that are not a message. */
  push(bytes: Buffer): void {
    const all = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = undefined;
    let at = 0;
    while (all.length - at >= HEAD_BYTES) {
      const length = all.readUInt32BE(at);
      if (length > MAX_MESSAGE_BYTES) throw new RangeError('a message of another node is too large');
      const end = at + HEAD_BYTES + length;
      if (all.length < end) break;
      this.#onMessage(all[at + 4] ?? 0, all.readUInt32BE(at + 5), all.subarray(at + HEAD_BYTES, end));
      at = end;
    }
    if (at < all.length) this.#rest = all.subarray(at);
  }
}

type PartKind = typeof MESSAGE.part | typeof MESSAGE.last;

/** The part of one answer that waits for the socket. */
interface WaitingAnswer {
  readonly parts: Buffer[];
  bytes: number;
  /** The kind of its newest part: `last` once it is whole. */
  kind: PartKind;
}

/** Writes messages to a socket, together at the end of each turn of the event loop. */
export class MessageWriter {
  readonly #socket: Pick<Socket, 'write' | 'writableLength'>;
  readonly #beforeWrite: () => void;
  #messages: Buffer[] = [];
  #bytes = 0;
  #hasTurn = false;
  /** The answers that wait to be written, by the number of the exchange, in the order of turns. */
  readonly #waiting = new Map<number, WaitingAnswer>();
  #waitingBytes = 0;

  /** `beforeWrite`: adds the last messages of a turn. */
  constructor(socket: Pick<Socket, 'write' | 'writableLength'>, beforeWrite: () => void = () => {}) {
    this.#socket = socket;
    this.#beforeWrite = beforeWrite;
  }

  /** True while too much waits that the other end does not read. */
  get isBusy(): boolean {
    return this.#bytes + this.#socket.writableLength > BUSY_BYTES;
  }

  /** Bytes of this answer that wait for the other end. */
  waitingBytes(number: number): number {
    return this.#waiting.get(number)?.bytes ?? 0;
  }

  /** The head of `contents` and they themselves become one message, which is written in this turn. */
  message(kind: Kind, number: number, ...contents: readonly Buffer[]): void {
    let length = 0;
    for (const content of contents) length += content.length;
    const whole = Buffer.allocUnsafe(HEAD_BYTES + length);
    whole.writeUInt32BE(length, 0);
    whole[4] = kind;
    whole.writeUInt32BE(number, 5);
    let at = HEAD_BYTES;
    for (const content of contents) at += content.copy(whole, at);
    this.#messages.push(whole);
    this.#bytes += whole.length;
    this.turn();
  }

  /** A part of an answer; it waits while the socket is busy, or when it is large. An answer for which there is no room breaks off. */
  part(kind: PartKind, number: number, content: Buffer): void {
    const waiting = this.#waiting.get(number);
    if (waiting === undefined && content.length <= PART_BYTES && !this.isBusy) {
      this.message(kind, number, content);
      return;
    }
    const { parts, bytes }: Pick<WaitingAnswer, 'parts' | 'bytes'> = waiting ?? { parts: [], bytes: 0 };
    const others = this.#waitingBytes - bytes;
    // Messages before the last part have a bound of their own, for each answer.
    if (kind === MESSAGE.last && others > 0 && this.#waitingBytes + content.length > MAX_WAITING_BYTES) {
      this.breakOff(number);
      return;
    }
    this.#waitingBytes += content.length;
    parts.push(content);
    this.#waiting.set(number, { parts, bytes: bytes + content.length, kind });
    this.turn();
  }

  /** Drops the rest of the answer, and tells the other end that it breaks off. */
  breakOff(number: number): void {
    this.drop(number);
    this.message(MESSAGE.broken, number);
  }

  /** Drops the rest of the answer, which the other end has cancelled. */
  drop(number: number): void {
    this.#waitingBytes -= this.waitingBytes(number);
    this.#waiting.delete(number);
  }

  turn(): void {
    if (this.#hasTurn) return;
    this.#hasTurn = true;
    setImmediate(this.#write);
  }

  readonly #write = (): void => {
    this.#hasTurn = false;
    this.#beforeWrite();
    while (this.#waiting.size > 0 && !this.isBusy) this.#nextPart();
    const messages = this.#messages;
    const [first] = messages;
    if (first === undefined) return;
    const whole = messages.length === 1 ? first : Buffer.concat(messages, this.#bytes);
    this.#messages = [];
    this.#bytes = 0;
    this.#socket.write(whole, this.#written);
  };

  /** Called after a write: writes the answers that wait, also those that began to wait meanwhile. */
  readonly #written = (): void => {
    if (this.#waiting.size > 0) this.turn();
  };

  /** Writes the next part of the answer that is first in turn. */
  #nextPart(): void {
    const [entry] = this.#waiting;
    if (entry === undefined) return;
    const [number, { parts, bytes, kind }] = entry;
    this.#waiting.delete(number);
    const [first = NO_BYTES] = parts;
    const content = first.subarray(0, PART_BYTES);
    this.#waitingBytes -= content.length;
    if (content.length < first.length) parts[0] = first.subarray(PART_BYTES);
    else parts.shift();
    this.message(parts.length === 0 ? kind : MESSAGE.part, number, content);
    if (parts.length > 0) this.#waiting.set(number, { parts, bytes: bytes - content.length, kind });
  }
}
