// Records the answer of the MCP endpoint to one request, as a client would see it. It honours the contract of
// protocol/endpoint-types.ts: a second answer is an error.

import type { JsonObject } from '../../src/domain/json/json.ts';
import type { McpEvent, McpLog, McpStream, ReplyWriter } from '../../src/protocol/endpoint-types.ts';

/** Records one answer, and throws at a second one. */
export class RecordedReply implements ReplyWriter {
  status: number | undefined;
  /** What was written in one piece: a JSON body, or the data of the only event. */
  body: Uint8Array | string | undefined;
  contentType: string | undefined;
  headers: readonly string[] = [];
  opened: RecordedStream | undefined;
  isGone = false;
  readonly log: McpLog = {};
  readonly #listeners: (() => void)[] = [];

  json(status: number, body: Uint8Array | string, headers: readonly string[] = []): void {
    this.#begin(status, headers, 'application/json');
    this.body = body;
  }

  event(data: Uint8Array | string, headers: readonly string[] = []): void {
    this.#begin(200, headers, 'text/event-stream');
    this.body = data;
  }

  empty(status: number): void {
    this.#begin(status);
  }

  stream(): RecordedStream {
    this.#begin(200, undefined, 'text/event-stream');
    this.opened = new RecordedStream();
    return this.opened;
  }

  onGone(listener: () => void): void {
    if (this.isGone) listener();
    else this.#listeners.push(listener);
  }

  /** The client loses its connection. */
  lose(): void {
    this.isGone = true;
    for (const listener of this.#listeners) listener();
  }

  get isAnswered(): boolean {
    return this.status !== undefined;
  }

  /** The JSON body, or the only event, parsed. */
  get message(): JsonObject {
    if (this.body === undefined) throw new Error('there is no body');
    return parsed(this.body);
  }

  /** The stream that was opened. */
  get events(): RecordedStream {
    if (this.opened === undefined) throw new Error('there is no stream');
    return this.opened;
  }

  #begin(status: number, headers: readonly string[] = [], contentType?: string): void {
    if (this.isAnswered) throw new Error('it was answered already');
    this.status = status;
    this.headers = headers;
    this.contentType = contentType;
  }
}

export class RecordedStream implements McpStream {
  readonly events: McpEvent[] = [];
  isEnded = false;
  unsentBytes = 0;

  send(event: McpEvent): void {
    if (this.isEnded) throw new Error('the stream has ended');
    this.events.push(event);
  }

  end(): void {
    this.isEnded = true;
  }

  /** The messages on it, parsed. */
  get messages(): JsonObject[] {
    return this.events.filter(({ data }) => data.length > 0).map(({ data }) => parsed(data));
  }

  /** The methods of the messages on it; of an answer the id. */
  get methods(): unknown[] {
    return this.messages.map(({ method, id }) => method ?? id);
  }

  get lastEventId(): string {
    return this.events.at(-1)?.id ?? '';
  }
}

export function parsed(data: Uint8Array | string): JsonObject {
  return JSON.parse(typeof data === 'string' ? data : Buffer.from(data).toString('utf8'));
}
