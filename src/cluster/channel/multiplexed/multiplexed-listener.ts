// A multiplexed connection, which exchanges share, at the node of the instances: each request is served like one on a connection
// of its own, above all with the check of its token. Source: ADR 170.

import type { Duplex } from 'node:stream';
import type { Principal } from '../../../domain/accounts/principal.ts';
import { NO_BYTES } from '../../../domain/memory/bounded-bytes.ts';
import { CallMap } from '../../../domain/memory/call-map.ts';
import type { ForwardedCaller } from '../../../domain/nodes/forwarding.ts';
import { PEER_KEEP_ALIVE_MS, type RefusalReason } from '../peer-protocol.ts';
import {
  MAX_MULTIPLEXED,
  MAX_TOKEN_BYTES,
  MESSAGE,
  MessageReader,
  MessageWriter,
  MULTIPLEXED_PROTOCOL,
  REQUEST_HEAD_BYTES,
  REQUEST_PATHS,
  TOKEN_SLOTS,
} from './multiplexed-wire.ts';

/** Where the answer of one exchange is written: to a connection of its own, or to a multiplexed one. */
export interface ExchangeAnswer {
  /** True for an answer that has ended, or that nothing receives. */
  readonly isOver: boolean;
  /** Bytes that the other node has not read. */
  readonly unreadBytes: number;
  write(frame: Buffer): void;
  end(frame?: Buffer): void;
  breakOff(): void;
  /** The listener is called once, when it is over; at once if it is. */
  onOver(listener: () => void): void;
}

/** Serves a request at one of REQUEST_PATHS. */
export type ServeExchange = (
  path: string,
  body: Buffer,
  answer: ExchangeAnswer,
  caller: ForwardedCaller,
) => void;

export interface MultiplexedListenerOptions {
  readonly serve: ServeExchange;
  /** Checks a token: calls `accept` or `refuse`, once. */
  readonly admit: (
    token: string,
    accept: (principal: Principal) => void,
    refuse: (reason: RefusalReason) => void,
    path: string,
  ) => void;
}

/** One connection with its exchanges. */
export class MultiplexedListener {
  readonly #options: MultiplexedListenerOptions;
  readonly #socket: Duplex;
  readonly #writer: MessageWriter;
  /** The answers by number of the exchange; a request whose token is still checked has none yet. */
  #answers = new CallMap<MultiplexedAnswer>();
  readonly #tokens: string[] = [];
  #tokenBytes = 0;
  #isClosed = false;

  /** `head`: the bytes after the request for the upgrade. `over`: called once. */
  constructor(socket: Duplex, head: Buffer, options: MultiplexedListenerOptions, over: () => void) {
    this.#socket = socket;
    this.#options = options;
    this.#writer = new MessageWriter(socket);
    const reader = new MessageReader((kind, number, content) => this.#message(kind, number, content));
    const read = (bytes: Buffer): void => {
      try {
        reader.push(bytes);
      } catch {
        this.destroy();
      }
    };
    if ('setKeepAlive' in socket && typeof socket.setKeepAlive === 'function')
      socket.setKeepAlive(true, PEER_KEEP_ALIVE_MS);
    socket.on('data', read);
    socket.on('end', () => this.destroy());
    socket.on('error', () => this.destroy());
    socket.on('close', () => {
      this.destroy();
      over();
    });
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${MULTIPLEXED_PROTOCOL}\r\n\r\n`,
    );
    if (head.length > 0) read(head);
  }

  /** Asks the other node to send no more requests, and to close the connection after the last answer. */
  leave(): void {
    this.#writer.message(MESSAGE.leaving, 0);
  }

  /** Closes the connection: exchanges under way are cancelled. */
  destroy(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    for (const answer of this.#answers.values()) answer.over();
    this.#answers = new CallMap();
  }

  #message(kind: number, number: number, content: Buffer): void {
    if (kind === MESSAGE.request) this.#request(number, content);
    else if (kind === MESSAGE.cancel) {
      this.#writer.drop(number);
      this.#end(number);
    } else if (kind === MESSAGE.token && number < TOKEN_SLOTS) this.#token(number, content);
    else if (kind === MESSAGE.ping) this.#writer.message(MESSAGE.pong, number);
    else throw new RangeError('a message of another node has an unknown kind');
  }

  #token(slot: number, content: Buffer): void {
    this.#tokenBytes += content.length - (this.#tokens[slot]?.length ?? 0);
    if (this.#tokenBytes > MAX_TOKEN_BYTES) throw new RangeError('tokens of another node are too large');
    this.#tokens[slot] = content.toString('latin1');
  }

  #request(number: number, content: Buffer): void {
    const token = this.#tokens[content.readUInt16BE(0)] ?? '';
    const path = REQUEST_PATHS[content.readUInt8(2)];
    const bodyAt = REQUEST_HEAD_BYTES + content.readUInt8(3);
    const requestId = content.toString('latin1', REQUEST_HEAD_BYTES, bodyAt);
    if (path === undefined || this.#answers.has(number) || this.#answers.size >= MAX_MULTIPLEXED)
      throw new RangeError('a request of another node is invalid');
    const answer = new MultiplexedAnswer(this.#writer, number, () => this.#end(number));
    this.#answers.set(number, answer);
    this.#options.admit(
      token,
      (principal) => {
        if (answer.isOver) return;
        const caller = { principal, requestId, address: undefined };
        this.#options.serve(path, content.subarray(bodyAt), answer, caller);
      },
      (reason) => {
        if (answer.isOver) return;
        this.#end(number);
        this.#writer.message(MESSAGE.refused, number, Buffer.from(reason));
      },
      path,
    );
  }

  #end(number: number): void {
    const answer = this.#answers.get(number);
    this.#answers.delete(number);
    answer?.over();
  }
}

class MultiplexedAnswer implements ExchangeAnswer {
  readonly #writer: MessageWriter;
  readonly #number: number;
  readonly #ended: () => void;
  readonly #listeners: (() => void)[] = [];
  isOver = false;

  /** `ended`: calls `over`. */
  constructor(writer: MessageWriter, number: number, ended: () => void) {
    this.#writer = writer;
    this.#number = number;
    this.#ended = ended;
  }

  get unreadBytes(): number {
    return this.#writer.waitingBytes(this.#number);
  }

  write(frame: Buffer): void {
    if (!this.isOver) this.#writer.part(MESSAGE.part, this.#number, frame);
  }

  end(frame: Buffer = NO_BYTES): void {
    if (this.isOver) return;
    this.#writer.part(MESSAGE.last, this.#number, frame);
    this.#ended();
  }

  breakOff(): void {
    if (this.isOver) return;
    this.#writer.breakOff(this.#number);
    this.#ended();
  }

  onOver(listener: () => void): void {
    if (this.isOver) listener();
    else this.#listeners.push(listener);
  }

  over(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const listener of this.#listeners) listener();
  }
}
