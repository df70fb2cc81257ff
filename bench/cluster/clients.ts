// Clients of the official SDKs in both eras that call until they are stopped: each call has a token of its own, which the answer must
// contain. A client whose session is lost opens another one. Nothing is tried again here.

import { setTimeout as delay } from 'node:timers/promises';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { initializeBody, openSession } from '../open-session.ts';
import { type Call, type Ending, nowMs, type Opening } from './history.ts';
import { nameOf } from './owners.ts';

/**
 * `legacy`: SDK 1, with sessions and their streams. `sse`: the same over HTTP+SSE, with a `fetch` that names the last event when the stream is opened
 * again, as browsers do. `bare sse`: without it; the SDK leaves that header out, so its sessions end with their stream. `asked`: like `legacy`, and its unsafe calls ask it a question
 * (elicitation), with a `fetch` that sends an answer again when it went with a node; the SDK does not. `modern`: SDK 2 and revision 2026-07-28, without sessions. `plain`: sessions without a stream and without an SDK, so that many
 * are cheap.
 */
export type Kind = 'legacy' | 'sse' | 'bare sse' | 'asked' | 'modern' | 'plain';

export interface ClientOptions {
  readonly name: string;
  readonly kind: Kind;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of unsafe calls. */
  readonly unsafeShare: number;
  /** Mean pause between two calls, in ms. */
  readonly pauseMs: number;
  /** After so many calls the client ends its session and opens another. */
  readonly callsPerSession: number;
  readonly random: () => number;
}

/** Longest wait for an answer; longer than every wait that the gateway promises. */
const PATIENCE_MS = 20_000;
/** Pause after an opening, or an answer to a question, that failed. */
const AGAIN_MS = 100;
/** Most times that the answer to a question is sent. */
const MAX_ANSWERS = 20;
/** A part of the calls takes a while, so that faults meet calls in flight. */
const SLOW_SHARE = 0.2;
const SLOW_MS = 300;

/** What both SDKs have. */
interface Connection {
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
  /** Undefined in the modern era, which has none. */
  sessionId?(): string | undefined;
}

export class CallingClient {
  readonly #options: ClientOptions;
  readonly calls: Call[] = [];
  readonly failedOpenings: Opening[] = [];
  #openings = 0;
  #turn = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const connection = await this.#open();
      if (connection === undefined) {
        await delay(AGAIN_MS);
        continue;
      }
      await this.#use(connection, isOver);
      // The DELETE of a session that no node knows may fail.
      await connection.close().catch(() => undefined);
    }
  }

  async #open(): Promise<Connection | undefined> {
    const sentMs = nowMs();
    try {
      const connection = await connect(this.#options);
      this.#openings += 1;
      return connection;
    } catch (thrown) {
      const reason = `${this.#options.name}: ${reasonOf(thrown)}`;
      this.failedOpenings.push({ sentMs, endedMs: nowMs(), reason });
      return undefined;
    }
  }

  /** Until the end, or until the session is lost. */
  async #use(connection: Connection, isOver: () => boolean): Promise<void> {
    const unsafeTool = this.#options.kind === 'asked' ? 'ask' : 'write';
    const { name, random, unsafeShare, pauseMs, callsPerSession } = this.#options;
    const session = `${name}/${this.#openings}`;
    const endsWithStream = this.#options.kind === 'bare sse';
    let isAfterUnsafe = false;
    for (let left = callsPerSession; left > 0 && !isOver(); left -= 1) {
      this.#turn += 1;
      const token = `${name}.${this.#turn}`;
      const isUnsafe = random() < unsafeShare;
      const ms = random() < SLOW_SHARE ? SLOW_MS : 0;
      const sentMs = nowMs();
      const { ending, reason } = await called(connection, isUnsafe ? unsafeTool : 'read', { token, ms });
      const id = connection.sessionId?.();
      const about = { token, session, isUnsafe, isAfterUnsafe, endsWithStream, name: nameOf(id) };
      this.calls.push({ ...about, sentMs, endedMs: nowMs(), ending, reason });
      isAfterUnsafe ||= isUnsafe;
      if (ending === 'lost session') return;
      await delay(random() * 2 * pauseMs);
    }
  }
}

async function connect({ kind, url, headers }: ClientOptions): Promise<Connection> {
  const requestInit = { headers: { ...headers } };
  const information = { name: 'cluster', version: '1.0.0' };
  const options = { timeout: PATIENCE_MS };
  if (kind === 'plain') return connectPlainly(url, headers);
  if (kind !== 'modern') {
    const isAsked = kind === 'asked';
    const client = new Client(information, { capabilities: isAsked ? { elicitation: {} } : {} });
    if (isAsked) client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
    let ofEvents: string | undefined;
    const noting: typeof fetch = (target, init) => {
      ofEvents = new URL(String(target)).searchParams.get('sessionId') ?? undefined;
      return fetch(target, init);
    };
    const transport =
      kind === 'sse' || kind === 'bare sse'
        ? new SSEClientTransport(new URL(`${url.href}/sse`), {
            requestInit,
            fetch: noting,
            eventSourceInit: { fetch: kind === 'sse' ? resuming(withKey(headers)) : withKey(headers) },
          })
        : new StreamableHTTPClientTransport(url, { requestInit, ...(isAsked && { fetch: answering }) });
    await client.connect(transport, options);
    return {
      callTool: (call) => client.callTool(call, undefined, options),
      close: () => client.close(),
      sessionId: () => (transport instanceof SSEClientTransport ? ofEvents : transport.sessionId),
    };
  }
  const client = new ModernClient(information, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new ModernTransport(url, { requestInit }));
  return { callTool: (call) => client.callTool(call, options), close: () => client.close() };
}

/** The event stream of HTTP+SSE has a fetch of its own. */
function withKey(key: ClientOptions['headers']): typeof fetch {
  return (url, init) => {
    const headers = new Headers(init?.headers);
    for (const [name, value] of Object.entries(key)) headers.set(name, value);
    return fetch(url, { ...init, headers });
  };
}

/** Sends the answer to a question until it arrives. The gateway drops one that it has. */
const answering: typeof fetch = async (url, init) => {
  const isAnswer = typeof init?.body === 'string' && 'result' in Object(JSON.parse(init.body));
  for (let left = MAX_ANSWERS; ; left -= 1) {
    const isLast = !isAnswer || left === 1;
    try {
      const response = await fetch(url, init);
      if (isLast || response.ok) return response;
      await response.text();
    } catch (thrown) {
      if (isLast) throw thrown;
    }
    await delay(AGAIN_MS);
  }
};

/** Names the last event that had an id when the stream is opened again. */
function resuming(open: typeof fetch): typeof fetch {
  let lastId: string | undefined;
  return async (url, init) => {
    const headers = new Headers(init?.headers);
    if (lastId !== undefined) headers.set('Last-Event-ID', lastId);
    const response = await open(url, { ...init, headers });
    const noting = new TransformStream<Uint8Array, Uint8Array>({
      transform: (bytes, controller) => {
        // A part of a stream has whole events.
        for (const [, id] of Buffer.from(bytes)
          .toString()
          .matchAll(/^id: (\S+)$/gm))
          lastId = id;
        controller.enqueue(bytes);
      },
    });
    return new Response(response.body?.pipeThrough(noting), response);
  };
}

async function connectPlainly(url: URL, key: ClientOptions['headers']): Promise<Connection> {
  const session = await openSession(url.href, initializeBody, key);
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...key,
    ...session,
  };
  let id = 0;
  return {
    callTool: async (params) => {
      id += 1;
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
      const signal = AbortSignal.timeout(PATIENCE_MS);
      const response = await fetch(url, { method: 'POST', headers, body, signal });
      const text = await response.text();
      const { result, error } = response.ok
        ? messageIn(text)
        : { result: undefined, error: { message: text } };
      if (result !== undefined) return result;
      throw Object.assign(new Error(`${response.status} ${text}`), {
        status: response.status,
        data: error?.data,
      });
    },
    close: async () => void (await (await fetch(url, { method: 'DELETE', headers })).text()),
    sessionId: () => session['Mcp-Session-Id'],
  };
}

/** The answer, alone or as the last event of a stream. */
function messageIn(text: string): {
  readonly result?: unknown;
  readonly error?: { readonly data?: unknown };
} {
  const events = text.startsWith('{')
    ? [text]
    : text.split('\n').flatMap((line) => line.split(/^data: /)[1] ?? []);
  return JSON.parse(events.at(-1) || '{}');
}

async function called(
  connection: Connection,
  name: string,
  values: { readonly token: string; readonly ms: number },
): Promise<{ readonly ending: Ending; readonly reason: string }> {
  try {
    const result = JSON.stringify(await connection.callTool({ name, arguments: { ...values } }));
    const isOwn = result.includes(`"text":"${values.token}"`);
    return isOwn ? { ending: 'answered', reason: '' } : { ending: 'failed', reason: result.slice(0, 300) };
  } catch (thrown) {
    return { ending: endingOf(thrown), reason: reasonOf(thrown) };
  }
}

/** From the code, the status and the data of an error of either SDK. */
function endingOf(thrown: unknown): Ending {
  const { code, status = code, data } = Object(thrown);
  const text = `${thrown} ${JSON.stringify(data)}`;
  if (/timed out|due to timeout/i.test(text) || code === 'REQUEST_TIMEOUT') return 'hung';
  // Over HTTP+SSE a client that was disconnected gets a new stream, where it has to initialize.
  if (
    status === 404 ||
    Object(data).status === 404 ||
    /HTTP 404|not initialized|SESSION_NOT_FOUND/.test(text)
  )
    return 'lost session';
  if (/delivered\W+unknown/.test(text)) return 'unknown';
  if (/delivered\W+no\b|"error_code"/.test(text)) return 'refused';
  if (
    status === 502 ||
    Object(data).status === 502 ||
    /fetch failed|terminated|socket|ECONNRESET/i.test(text)
  )
    return 'unknown';
  return 'failed';
}

function reasonOf(thrown: unknown): string {
  const { code, cause, data } = Object(thrown);
  return `${thrown} ${JSON.stringify({ code, cause: String(cause ?? ''), data })}`.slice(0, 400);
}
