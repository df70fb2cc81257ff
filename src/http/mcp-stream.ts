// An event stream of the MCP endpoint on one response. What is sent is src/protocol's; how it is written is here.

import type { ServerResponse } from 'node:http';
import { LIMITS } from '../domain/limits.ts';
import type { McpEvent, McpStream } from '../protocol/endpoint-types.ts';
import { latin1Of, SMALL_BYTES } from './bytes-as-text.ts';
import type { HttpContext } from './context.ts';
import type { EventStreams, TrackedStream } from './event-stream.ts';
import { commentText, inLines } from './server-sent-events.ts';
import { limitReader, limitWriteTime } from './write-timeout.ts';

const END = '\n\n';
/** What can be written with the bytes of an event in one text. */
const ASCII = /^[\x20-\x7e]*$/;

/**
 * A stream whose head was written already. It ends with the app, with the patience for its reader, or when its caller may
 * not have it any more.
 */
export class HttpMcpStream implements McpStream, TrackedStream {
  readonly #context: HttpContext;
  readonly #response: ServerResponse;
  readonly #streams: EventStreams;
  readonly #release: () => void;
  readonly #onBarred: () => void;
  #isOpen = true;

  /** `onBarred` is called when it was ended because its caller may not have it any more. */
  constructor(context: HttpContext, streams: EventStreams, onBarred: () => void = () => {}) {
    const { res: response } = context;
    this.#context = context;
    this.#response = response;
    this.#streams = streams;
    this.#onBarred = onBarred;
    this.#release = streams.keep(this, context);
    response.once('close', () => this.#leave());
    limitReader(response, streams.unreadMs);
    // The head goes out with the first event, or soon without one: a client waits for it.
    process.nextTick(() => {
      if (this.#isOpen) response.flushHeaders();
    });
  }

  /** What was written in this turn of the event loop is among it: Node sends it at the end of the turn. */
  get unsentBytes(): number {
    return this.#response.writableLength;
  }

  send({ data, id, retryMs, name }: McpEvent): void {
    if (!this.#isOpen) return;
    const response = this.#response;
    // Whoever sends looks at `unsentBytes`; this is for those who do not. One message of any size is let through.
    if (response.writableLength > LIMITS.backendMessageBytes) {
      response.destroy();
      return;
    }
    const head = headOf(name ?? (data.length > 0 ? 'message' : undefined), id, retryMs);
    const lines = inLines(data);
    if (typeof lines === 'string') response.write(`${head}${lines}${END}`);
    else if (lines.byteLength <= SMALL_BYTES && ASCII.test(id ?? '')) {
      response.write(`${head}${latin1Of(lines)}${END}`, 'latin1');
    } else {
      response.cork();
      response.write(head);
      response.write(lines);
      response.write(END);
      response.uncork();
    }
    this.#streams.unread.count(this.#context);
  }

  end(): void {
    if (!this.#isOpen) return;
    this.#leave();
    this.#response.end();
    limitWriteTime(this.#response, this.#streams.unreadMs);
  }

  /** Keeps the connection alive; who has something to read already needs no comment. */
  comment(text: string): void {
    if (this.#isOpen && this.#response.writableLength === 0) this.#response.write(commentText(text));
  }

  /** The app stops. Whoever waits for an answer here was told by the endpoint. */
  shutDown(): void {
    this.end();
  }

  /** Its client comes back, and is told why it may not: there is no message that says so. */
  bar(): void {
    this.end();
    this.#onBarred();
  }

  #leave(): void {
    this.#isOpen = false;
    this.#release();
  }
}

/**
 * Everything in front of the data. An event without data only carries an id: it has no name, so that clients that go by
 * the name of an event alone do not take it for a message. Source: MCP 2025-11-25 basic/transports, "Sending Messages".
 */
function headOf(event: string | undefined, id: string | undefined, retryMs: number | undefined): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const place = id === undefined ? '' : `id: ${id}\n`;
  const wait = retryMs === undefined ? '' : `retry: ${Math.round(retryMs)}\n`;
  return `${name}${place}${wait}data: `;
}

const SOLE_HEAD = headOf('message', undefined, undefined);
const SOLE_HEAD_BYTES = Buffer.from(SOLE_HEAD);
const END_BYTES = Buffer.from(END);

/** A whole stream of one event: JSON text that no client comes back for. */
export function soleEvent(data: Uint8Array | string): Uint8Array | string {
  const lines = inLines(data);
  if (typeof lines === 'string') return `${SOLE_HEAD}${lines}${END}`;
  return Buffer.concat([SOLE_HEAD_BYTES, lines, END_BYTES]);
}
