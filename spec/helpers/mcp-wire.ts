// HTTP of the raw MCP clients (mcp-client.ts): any request, also one that no client library would send; its answer as JSON
// or as an event stream; every wait bounded. It knows messages by their shape only, and neither era.

import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { createParser } from 'eventsource-parser';
import { isObject, type Json } from '../fixtures/wire.ts';
import { eventually } from './eventually.ts';

/** Longest wait for a whole answer unless somebody says otherwise: nothing here is slow, so this is a hang. */
const patienceMs = 30_000;

/** A JSON-RPC message as it came. */
export interface Message {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: Json;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface Sent {
  readonly method?: 'POST' | 'GET' | 'DELETE' | 'PUT';
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | undefined;
  /** Hears each message of the answer as it comes. */
  readonly hear?: ((message: Message) => void) | undefined;
  readonly withinMs?: number | undefined;
}

/** A whole answer. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly messages: readonly Message[];
  /** The body, unless it was an event stream. */
  readonly text: string;
}

/** An answer that goes on. */
export interface OpenStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** What came so far. */
  readonly messages: readonly Message[];
  /** Ids of its events so far. */
  readonly eventIds: readonly string[];
  readonly hasEnded: boolean;
  /** Waits for a message; fails after the time. */
  sees(isWanted: (message: Message) => boolean, withinMs?: number): Promise<Message>;
  /** Breaks it off. */
  close(): void;
}

/** What several clients reach one server over. Close it in the end, and no socket is left. */
export class Wire {
  readonly #origin: string;
  readonly #agent = new Agent({ keepAlive: true, scheduling: 'fifo' });

  constructor(url: string) {
    this.#origin = new URL(url).origin;
  }

  /** Sends a request and reads its answer to the end. Rejects when it takes too long, or breaks off. */
  async exchange(path: string, { hear, withinMs = patienceMs, ...sent }: Sent): Promise<Received> {
    const signal = AbortSignal.timeout(withinMs);
    try {
      const response = await this.#send(path, sent, signal);
      const { statusCode: status = 0, headers } = response;
      const messages: Message[] = [];
      if (!isEventStream(response)) {
        const body = await text(response);
        messages.push(...messagesIn(body));
        for (const message of messages) hear?.(message);
        return { status, headers, messages, text: body };
      }
      await readEvents(response, { messages, eventIds: [], hear });
      return { status, headers, messages, text: '' };
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new Error(`no answer within ${withinMs} ms to ${String(sent.body).slice(0, 200)}`, {
        cause: error,
      });
    }
  }

  /** Sends a request whose answer is a stream that stays open. */
  async stream(path: string, { hear, withinMs = patienceMs, ...sent }: Sent): Promise<OpenStream> {
    const breaking = new AbortController();
    const late = setTimeout(() => breaking.abort(), withinMs);
    const response = await this.#send(path, sent, breaking.signal).finally(() => clearTimeout(late));
    const messages: Message[] = [];
    const eventIds: string[] = [];
    let hasEnded = false;
    // However it ends: what matters is what came before.
    const ending = () => {
      hasEnded = true;
    };
    readEvents(response, { messages, eventIds, hear }).then(ending, ending);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      messages,
      eventIds,
      get hasEnded() {
        return hasEnded;
      },
      sees: (isWanted, waitMs = patienceMs) => waitFor(messages, isWanted, waitMs),
      close: () => response.destroy(),
    };
  }

  /** Closes every socket; streams break off. */
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

/** Messages in a body: one, the members of a batch, or none. */
function messagesIn(body: string): Message[] {
  if (body === '') return [];
  try {
    const value: unknown = JSON.parse(body);
    return (Array.isArray(value) ? value : [value]).filter(isObject);
  } catch {
    return []; // a page for people, perhaps: whoever wants messages finds none
  }
}

function isEventStream({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.startsWith('text/event-stream') === true;
}

/** Reads an event stream to its end. */
async function readEvents(
  response: IncomingMessage,
  {
    messages,
    eventIds,
    hear,
  }: { readonly messages: Message[]; readonly eventIds: string[]; readonly hear: Sent['hear'] },
): Promise<void> {
  const parser = createParser({
    onEvent: ({ id, data }) => {
      if (id !== undefined) eventIds.push(id);
      for (const message of messagesIn(data)) {
        messages.push(message);
        hear?.(message);
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
