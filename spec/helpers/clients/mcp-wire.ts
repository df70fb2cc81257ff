// HTTP for the raw MCP clients (mcp-client.ts): sends any request and reads its answer as JSON or as an event stream. Every
// wait is bounded. It does not depend on the protocol era.

import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { createParser } from 'eventsource-parser';
import { isObject, type Json } from '../../fixtures/wire.ts';
import { eventually } from '../eventually.ts';

/** The default timeout for a complete answer. */
const timeoutMs = 30_000;

/** A JSON-RPC message as received. */
export interface Message {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: Json;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface Sent {
  readonly method?: 'POST' | 'GET' | 'DELETE';
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | undefined;
  /** Called with each message of the answer as it arrives. */
  readonly onMessage?: ((message: Message) => void) | undefined;
  readonly withinMs?: number | undefined;
}

/** A complete answer. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly messages: readonly Message[];
  /** The body, unless it is an event stream. */
  readonly text: string;
}

/** An answer whose stream stays open. */
export interface OpenStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The messages received so far. */
  readonly messages: readonly Message[];
  readonly hasEnded: boolean;
  /** Waits for a message; fails after the time limit. */
  sees(isWanted: (message: Message) => boolean, withinMs?: number): Promise<Message>;
  /** Closes the connection. */
  close(): void;
}

/** The connections of several clients to one server. The caller closes it, and with it all sockets. */
export class Wire {
  readonly #origin: string;
  readonly #agent = new Agent({ keepAlive: true, scheduling: 'fifo' });

  constructor(url: string) {
    this.#origin = new URL(url).origin;
  }

  /** Sends a request and reads its answer to the end. Rejects when it times out or the connection breaks. */
  async exchange(path: string, { onMessage, withinMs = timeoutMs, ...sent }: Sent): Promise<Received> {
    const signal = AbortSignal.timeout(withinMs);
    try {
      const response = await this.#send(path, sent, signal);
      const { statusCode: status = 0, headers } = response;
      const messages: Message[] = [];
      if (headers['content-type']?.startsWith('text/event-stream') !== true) {
        const body = await text(response);
        messages.push(...messagesIn(body));
        for (const message of messages) onMessage?.(message);
        return { status, headers, messages, text: body };
      }
      await readEvents(response, messages, onMessage);
      return { status, headers, messages, text: '' };
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new Error(`no answer within ${withinMs} ms to ${String(sent.body).slice(0, 200)}`, {
        cause: error,
      });
    }
  }

  /** Sends a request whose answer is a stream that stays open. */
  async stream(path: string, { onMessage, withinMs = timeoutMs, ...sent }: Sent): Promise<OpenStream> {
    const breaking = new AbortController();
    const late = setTimeout(() => breaking.abort(), withinMs);
    const response = await this.#send(path, sent, breaking.signal).finally(() => clearTimeout(late));
    const messages: Message[] = [];
    let hasEnded = false;
    // A broken stream ends like a complete one; specs check the messages.
    const ending = () => {
      hasEnded = true;
    };
    readEvents(response, messages, onMessage).then(ending, ending);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      messages,
      get hasEnded() {
        return hasEnded;
      },
      sees: (isWanted, waitMs = timeoutMs) => waitFor(messages, isWanted, waitMs),
      close: () => response.destroy(),
    };
  }

  /** Closes every socket, which ends the streams. */
  close(): void {
    this.#agent.destroy();
  }

  async #send(path: string, { method = 'POST', headers = {}, body }: Sent, signal: AbortSignal) {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(this.#origin + path, {
        method,
        agent: this.#agent,
        signal,
        headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
      });
      outgoing.once('response', resolve).once('error', reject);
      outgoing.end(body);
    });
    return response.setEncoding('utf8');
  }
}

/** The messages in a body: one, those of a batch, or none. */
function messagesIn(body: string): Message[] {
  if (body === '') return [];
  try {
    const value: unknown = JSON.parse(body);
    return (Array.isArray(value) ? value : [value]).filter(isObject);
  } catch {
    return []; // not JSON, so it has no messages
  }
}

/** Reads an event stream to its end. */
async function readEvents(
  response: IncomingMessage,
  messages: Message[],
  onMessage: Sent['onMessage'],
): Promise<void> {
  const parser = createParser({
    onEvent: ({ data }) => {
      for (const message of messagesIn(data)) {
        messages.push(message);
        onMessage?.(message);
      }
    },
  });
  for await (const chunk of response) parser.feed(String(chunk));
}

async function waitFor(
  messages: readonly Message[],
  isWanted: (message: Message) => boolean,
  withinMs: number,
): Promise<Message> {
  const found = await eventually(async () => messages.find(isWanted), Boolean, withinMs);
  if (found !== undefined) return found;
  throw new Error(`not seen within ${withinMs} ms; there was ${JSON.stringify(messages).slice(0, 2_000)}`);
}
