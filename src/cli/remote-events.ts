// Reads the server-sent events of a gateway's answer.

import { SseReader } from '../transports/http/sse-reader.ts';

/** One event that carries data. */
export interface RemoteEvent {
  readonly name: string;
  readonly data: string;
  /** Of the event, or of the last one that had any; empty without. */
  readonly id: string;
}

/** Bytes of one event; the result of a tool may be as long as a message of a backend. */
const EVENT_BYTES = 65 * 1024 * 1024;

/** Resolves when the stream ends. Rejects with what `onEvent` throws, and with the error of the stream. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
  onEvent: (event: RemoteEvent) => void,
): Promise<void> {
  const reader = new SseReader(EVENT_BYTES, (data, name) => {
    onEvent({ name, data: data.toString('utf8'), id: reader.lastEventId });
  });
  for await (const chunk of body) {
    onBytes();
    if (!reader.push(Buffer.from(chunk))) throw new Error('an event is too long');
  }
}
