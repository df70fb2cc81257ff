// The multiplexed connection to one other node, which exchanges share, at the node of the calls.

import type { Socket } from 'node:net';
import { LIMITS } from '../../../domain/limits.ts';
import { CallMap } from '../../../domain/memory/call-map.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import type { Connector } from '../../../net/http1/connector.ts';
import { READ_BUFFER } from '../../../net/http1/http1-connection.ts';
import type { Carrier, PeerExchange } from '../peer-exchange.ts';
import { LOST_PING_MS } from '../peer-ping.ts';
import { INSTANCE_PATHS, PEER_HEADERS, refusalIn } from '../peer-protocol.ts';
import {
  MAX_MULTIPLEXED,
  MAX_TOKEN_BYTES,
  MESSAGE,
  MessageReader,
  MessageWriter,
  MULTIPLEXED_PROTOCOL,
  PART_BYTES,
  REQUEST_HEAD_BYTES,
  REQUEST_PATHS,
  TOKEN_SLOTS,
} from './multiplexed-wire.ts';

/** The answer to the upgrade. */
const MAX_HEAD_BYTES = 4 * 1024;
const HEAD_END = '\r\n\r\n';
/** The looks at a silent connection, one each LOST_PING_MS, after which the exchanges on it fail. */
const MAX_SILENT_LOOKS = 5;
/** The most characters of a request's id, since one byte of the head has their number. */
const MAX_ID = 255;
const PATHS: readonly string[] = REQUEST_PATHS;

interface Pending {
  readonly exchange: PeerExchange;
  readonly token: string;
}

interface MultiplexedConnectionOptions {
  readonly clock: Clock;
  readonly connector: Connector;
  /** The value of the `host` header. */
  readonly host: string;
  /** Token of this node. */
  readonly token: string;
  /** Called once, when it takes no more requests. */
  readonly over: () => void;
  /** Called with each request that was taken and is not sent. */
  readonly returned: (exchange: PeerExchange, token: string) => void;
}

/**
 * One multiplexed connection, until its first fault or `destroy`; PeerClient opens the next one. It is only a faster way: a
 * request that it does not take is sent on a connection of its own, and the progress of one that it took is reported as there.
 * Source: ADR 170.
 */
export class MultiplexedConnection {
  readonly #options: MultiplexedConnectionOptions;
  readonly #socket: Socket;
  readonly #writer: MessageWriter;
  readonly #reader = new MessageReader((kind, number, content) => this.#message(kind, number, content));
  #exchanges = new CallMap<PeerExchange>();
  /** Requests of this turn of the event loop. */
  #pending: Pending[] = [];
  /** The slot of each token, the oldest first, and the token of each slot; a free one has ''. */
  readonly #slots = new Map<string, number>();
  readonly #tokens: string[] = [];
  #tokenBytes = 0;
  #nextSlot = 0;
  #nextNumber = 0;
  /** The answer to the upgrade, until it is complete. */
  #head: string | undefined = '';
  /** The time at which it asked for a sign of life; undefined once one came. */
  #askedAtMs: number | undefined;
  #isLeaving = false;
  #isClosed = false;
  #silentLooks = 0;
  #stopLooking: (() => void) | undefined;
  readonly #cancelOpening: () => void;

  /** Throws when the system cannot connect. */
  constructor(options: MultiplexedConnectionOptions) {
    const { connector, clock } = options;
    this.#options = options;
    const socket = connector.connect({ buffer: READ_BUFFER, callback: (length) => this.#read(length) });
    this.#socket = socket;
    this.#cancelOpening = clock.background.alarm(LIMITS.connectMs, () => this.destroy());
    this.#writer = new MessageWriter(socket, () => this.#sendPending());
    socket.once(connector.connectedEvent, () => this.#upgrade());
    socket.on('end', () => this.destroy());
    socket.on('error', () => this.destroy());
    socket.on('close', () => this.destroy());
    socket.unref();
  }

  /** Takes the request and returns true, if it may. */
  dispatch(exchange: PeerExchange, token: string): boolean {
    const { body, caller } = exchange.request;
    const isOpen = this.#head === undefined && !this.#isLeaving && !this.#isClosed;
    if (!isOpen || this.#exchanges.size + this.#pending.length >= MAX_MULTIPLEXED || this.#writer.isBusy)
      return false;
    if (body.length > PART_BYTES || token.length > PART_BYTES || caller.requestId.length > MAX_ID)
      return false;
    this.#pending.push({ exchange, token });
    this.#writer.turn();
    return true;
  }

  /**
   * Called each second while exchanges are under way. A device between the nodes may have forgotten this connection
   * alone: then it leaves.
   */
  probe(nowMs: number): void {
    if (this.#head !== undefined || this.#exchanges.size === 0) return;
    if (this.#askedAtMs === undefined) {
      this.#askedAtMs = nowMs;
      this.#writer.message(MESSAGE.ping, 0);
    } else if (nowMs - this.#askedAtMs >= LOST_PING_MS) this.leaveSilent();
  }

  /** Takes no more requests, and closes after the last answer. */
  leave(): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#options.over();
    this.#closeIfUnused();
  }

  /** As `leave`, of a connection that may be dead: it closes when it stays silent, also while the node answers on others. */
  leaveSilent(): void {
    if (this.#isLeaving) return;
    this.leave();
    if (this.#isClosed) return;
    // Counted, since a process that slept has not yet read what came meanwhile.
    this.#stopLooking = this.#options.clock.background.every(LOST_PING_MS, () => {
      this.#silentLooks += 1;
      if (this.#silentLooks > MAX_SILENT_LOOKS) this.destroy();
      else this.#writer.message(MESSAGE.ping, 0);
    });
  }

  /** Closes the connection: requests under way fail. */
  destroy(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelOpening();
    this.#stopLooking?.();
    this.#socket.destroy();
    this.leave();
    const failed = this.#exchanges.values();
    const unsent = this.#pending;
    this.#exchanges = new CallMap();
    this.#pending = [];
    for (const exchange of failed) exchange.onResponseError(connectionLost());
    for (const { exchange, token } of unsent) this.#options.returned(exchange, token);
  }

  #upgrade(): void {
    const { host, token } = this.#options;
    this.#socket.write(
      `GET ${INSTANCE_PATHS.multiplexed} HTTP/1.1\r\nhost: ${host}\r\n${PEER_HEADERS.token}: ${token}\r\n${
        PEER_HEADERS.hops
      }: instance\r\nconnection: upgrade\r\nupgrade: ${MULTIPLEXED_PROTOCOL}${HEAD_END}`,
      'latin1',
    );
  }

  /** Must not throw. Returns true: reading goes on. */
  #read(length: number): boolean {
    this.#askedAtMs = undefined;
    this.#silentLooks = 0;
    try {
      const bytes = Buffer.from(READ_BUFFER.subarray(0, length));
      if (this.#head === undefined) this.#reader.push(bytes);
      else this.#readHead(this.#head + bytes.toString('latin1'));
    } catch {
      this.destroy();
    }
    return true;
  }

  #readHead(head: string): void {
    this.#head = head;
    const end = head.indexOf(HEAD_END);
    if (end === -1) {
      if (head.length > MAX_HEAD_BYTES) this.destroy();
      return;
    }
    if (!head.startsWith('HTTP/1.1 101 ')) {
      this.destroy();
      return;
    }
    this.#cancelOpening();
    this.#head = undefined;
    this.#reader.push(Buffer.from(head.slice(end + HEAD_END.length), 'latin1'));
  }

  #sendPending(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const { exchange, token } of pending) {
      const number = this.#number();
      if (exchange.onRequestStart(this.#carrierOf(number))) this.#send(number, exchange, token);
    }
    this.#closeIfUnused();
  }

  #send(number: number, exchange: PeerExchange, token: string): void {
    const { target, body, caller } = exchange.request;
    const { requestId } = caller;
    this.#exchanges.set(number, exchange);
    const head = Buffer.allocUnsafe(REQUEST_HEAD_BYTES + requestId.length);
    head.writeUInt16BE(this.#slotOf(token), 0);
    head[2] = PATHS.indexOf(target);
    head[3] = requestId.length;
    head.write(requestId, REQUEST_HEAD_BYTES, 'latin1');
    this.#writer.message(MESSAGE.request, number, head, body);
  }

  /** The slot of the token, which is sent first unless the other node has it. */
  #slotOf(token: string): number {
    const known = this.#slots.get(token);
    if (known !== undefined) return known;
    const slot = this.#nextSlot;
    this.#nextSlot = (slot + 1) % TOKEN_SLOTS;
    this.#free(slot);
    for (const place of this.#slots.values()) {
      if (this.#tokenBytes + token.length <= MAX_TOKEN_BYTES) break;
      this.#free(place);
      this.#writer.message(MESSAGE.token, place);
    }
    this.#tokens[slot] = token;
    this.#slots.set(token, slot);
    this.#tokenBytes += token.length;
    this.#writer.message(MESSAGE.token, slot, Buffer.from(token, 'latin1'));
    return slot;
  }

  /** Forgets the token of this slot, if it has one: the same token may have another slot later. */
  #free(slot: number): void {
    const token = this.#tokens[slot] ?? '';
    this.#slots.delete(token);
    this.#tokens[slot] = '';
    this.#tokenBytes -= token.length;
  }

  #number(): number {
    do this.#nextNumber = (this.#nextNumber + 1) >>> 0;
    while (this.#exchanges.has(this.#nextNumber));
    return this.#nextNumber;
  }

  /** Answers of exchanges are read to their end: `pause` has no meaning. */
  #carrierOf(number: number): Carrier {
    const nothing = (): void => {};
    return { pause: nothing, resume: nothing, abort: () => this.#abort(number) };
  }

  #abort(number: number): void {
    if (!this.#exchanges.delete(number)) return;
    this.#writer.message(MESSAGE.cancel, number);
    this.#closeIfUnused();
  }

  #message(kind: number, number: number, content: Buffer): void {
    if (kind === MESSAGE.leaving) {
      this.leave();
      return;
    }
    const exchange = kind === MESSAGE.pong ? undefined : this.#exchanges.get(number);
    if (exchange === undefined) return; // cancelled
    if (kind !== MESSAGE.part) this.#exchanges.delete(number);
    if (kind === MESSAGE.part) exchange.part(content);
    else if (kind === MESSAGE.last) exchange.last(content);
    else if (kind === MESSAGE.refused) exchange.refused(refusalIn(content.toString('latin1')));
    else exchange.onResponseError(connectionLost());
    this.#closeIfUnused();
  }

  #closeIfUnused(): void {
    if (this.#isLeaving && this.#exchanges.size + this.#pending.length === 0) this.destroy();
  }
}

function connectionLost(): Error {
  return Object.assign(new Error('the other node closed the connection'), { code: 'ECONNRESET' });
}
