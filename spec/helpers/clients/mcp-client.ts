// Raw MCP clients of both eras, without an SDK. Specs choose messages and ids, so that ids of different clients can collide
// on purpose. The clients answer server requests.
// Sources: MCP 2025-11-25 basic/transports; MCP 2026-07-28 basic/patterns/mrtr, basic/patterns/subscriptions.

import { META } from '../../../src/domain/mcp/mcp.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import type { Message, OpenStream, Received, Wire } from './mcp-wire.ts';

export const LEGACY_VERSION = '2025-11-25';
const MODERN_VERSION = '2026-07-28';

/** The headers of every POST in both eras. */
export const POST_HEADERS = {
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
} as const;

/** The maximum number of rounds of one call. */
const mostRounds = 8;

/** The client's answers to server requests, by method. */
export type Replies = Readonly<Record<string, (params: Json) => Json>>;

export interface ClientOptions {
  readonly capabilities?: Json;
  /** Headers of every request, such as credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly replies?: Replies;
  readonly withinMs?: number;
}

export interface AskOptions {
  /** Default: counted from 0, as every SDK does. */
  readonly id?: string | number;
  readonly meta?: Json;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How one request ended. */
export interface Outcome {
  readonly status: number;
  readonly instanceId: string | undefined;
  readonly result: Json | undefined;
  readonly error: Message['error'];
  /** Notifications that came before the answer. */
  readonly notifications: readonly Message[];
  /** The methods of the server requests meanwhile, in order. */
  readonly asked: readonly string[];
}

/** One session of the legacy era. */
export class LegacyClient {
  readonly wire: Wire;
  readonly path: string;
  readonly sessionId: string;
  readonly #options: ClientOptions;
  #lastId = 0;

  private constructor(wire: Wire, path: string, options: ClientOptions, sessionId: string) {
    this.wire = wire;
    this.path = path;
    this.#options = options;
    this.sessionId = sessionId;
  }

  /** Initializes; rejects with the answer when that is refused. */
  static async open(wire: Wire, path: string, options: ClientOptions = {}): Promise<LegacyClient> {
    const { capabilities = {}, headers, withinMs } = options;
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: LEGACY_VERSION, capabilities, clientInfo };
    const body = requestText(0, 'initialize', params);
    const opened = await wire.exchange(path, { headers: { ...POST_HEADERS, ...headers }, body, withinMs });
    const sessionId = opened.headers['mcp-session-id'];
    if (opened.status !== 200 || sessionId === undefined) {
      throw new Error(`no session at ${path}: ${opened.status} ${opened.text}`);
    }
    const client = new LegacyClient(wire, path, options, String(sessionId));
    await client.notify('notifications/initialized');
    return client;
  }

  /** The headers of every request in this session. */
  get headers(): Readonly<Record<string, string>> {
    const session = { 'Mcp-Session-Id': this.sessionId, 'MCP-Protocol-Version': LEGACY_VERSION };
    return { ...POST_HEADERS, ...session, ...this.#options.headers };
  }

  /** Sends a request and answers server requests meanwhile. */
  async ask(method: string, params: Json = {}, { id, meta, headers }: AskOptions = {}): Promise<Outcome> {
    this.#lastId += 1;
    const ownId = id ?? this.#lastId;
    const answering: Promise<unknown>[] = [];
    const received = await this.wire.exchange(this.path, {
      headers: { ...this.headers, ...headers },
      body: requestText(ownId, method, meta === undefined ? params : { ...params, _meta: meta }),
      withinMs: this.#options.withinMs,
      onMessage: (message) => isQuestion(message) && answering.push(this.answer(message)),
    });
    await Promise.all(answering);
    return outcomeOf(received, ownId);
  }

  call(name: string, args: Json = {}, options: AskOptions = {}): Promise<Outcome> {
    return this.ask('tools/call', { name, arguments: args }, options);
  }

  notify(method: string, params: Json = {}): Promise<Received> {
    return this.#send({ method, params });
  }

  /** Answers a server request. */
  answer({ id, method = '', params = {} }: Message): Promise<Received> {
    const reply = this.#options.replies?.[method];
    const outcome = reply ? { result: reply(params) } : { error: { code: -32601, message: 'not here' } };
    return this.#send({ id, ...outcome });
  }

  /** Opens the GET stream and answers server requests on it. */
  listen(): Promise<OpenStream> {
    const headers = { ...this.headers, 'Content-Type': undefined };
    const onMessage = (message: Message) => {
      if (isQuestion(message)) this.answer(message).catch(() => undefined); // a spec that ends closes its connections
    };
    return this.wire.stream(this.path, { method: 'GET', headers, onMessage });
  }

  /** Ends the session. */
  async close(): Promise<number> {
    const { status } = await this.wire.exchange(this.path, { method: 'DELETE', headers: this.headers });
    return status;
  }

  #send(message: object): Promise<Received> {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    return this.wire.exchange(this.path, { headers: this.headers, body, withinMs: this.#options.withinMs });
  }
}

/** A client of the modern era, which has no session. */
export class ModernClient {
  readonly wire: Wire;
  readonly path: string;
  readonly #options: ClientOptions;
  #lastId = 0;

  constructor(wire: Wire, path: string, options: ClientOptions = {}) {
    this.wire = wire;
    this.path = path;
    this.#options = options;
  }

  /** Sends a request with as many rounds as it takes, each under a new id. */
  async ask(method: string, params: Json = {}, options: AskOptions = {}): Promise<Outcome> {
    const asked: string[] = [];
    let notifications: readonly Message[] = [];
    let carried: Json = {};
    for (let round = 0; round < mostRounds; round += 1) {
      const outcome = await this.#once(method, { ...params, ...carried }, options);
      notifications = [...notifications, ...outcome.notifications];
      const { resultType, requestState, inputRequests } = outcome.result ?? {};
      if (resultType !== 'input_required') return { ...outcome, notifications, asked };
      const inputResponses: Json = {};
      for (const [key, question] of Object.entries(objectOr(inputRequests))) {
        const { method: wanted = '', params: about } = objectOr(question);
        asked.push(String(wanted));
        inputResponses[key] = this.#options.replies?.[String(wanted)]?.(objectOr(about));
      }
      carried = { inputResponses, ...(requestState === undefined ? {} : { requestState }) };
    }
    throw new Error(`${method} still asked after ${mostRounds} rounds`);
  }

  call(name: string, args: Json = {}, options: AskOptions = {}): Promise<Outcome> {
    return this.ask('tools/call', { name, arguments: args }, options);
  }

  /** Opens a `subscriptions/listen` stream for these notifications. */
  listen(notifications: Json): Promise<OpenStream> {
    return this.wire.stream(this.path, this.request('subscriptions/listen', { notifications }));
  }

  /** Headers and body of a valid request. */
  request(method: string, params: Json = {}, { id, meta, headers }: AskOptions = {}) {
    this.#lastId += 1;
    const { name, taskId = name, uri = taskId } = params;
    const named = typeof uri === 'string' ? { 'Mcp-Name': uri } : {};
    const mirrored = { 'MCP-Protocol-Version': MODERN_VERSION, 'Mcp-Method': method, ...named };
    const { capabilities = {} } = this.#options;
    const era = { [META.protocolVersion]: MODERN_VERSION, [META.clientCapabilities]: capabilities };
    const _meta = { ...era, ...meta };
    return {
      headers: { ...POST_HEADERS, ...mirrored, ...this.#options.headers, ...headers },
      body: requestText(id ?? this.#lastId, method, { ...params, _meta }),
      id: id ?? this.#lastId,
    };
  }

  async #once(method: string, params: Json, options: AskOptions): Promise<Outcome> {
    const { id, ...sent } = this.request(method, params, options);
    const { withinMs } = this.#options;
    return outcomeOf(await this.wire.exchange(this.path, { ...sent, withinMs }), id);
  }
}

/** The text of a tool's result, or of the first message of a prompt. */
export function textOf({ result }: { readonly result?: Json | undefined }): string {
  const { content, messages } = result ?? {};
  const [first] = Array.isArray(content) ? content : [];
  const [message] = Array.isArray(messages) ? messages : [];
  return String(objectOr(first ?? objectOr(message).content).text);
}

export function requestText(id: unknown, method: string, params: Json = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

/** Whether a message is a server request. */
function isQuestion({ id, method }: Message): boolean {
  return id !== undefined && method !== undefined;
}

/** The outcome of a request. Fails when an answer belongs to another request. */
function outcomeOf({ status, headers, messages }: Received, id: string | number): Outcome {
  const answers = messages.filter(({ method }) => method === undefined);
  const unmatched = answers.find((answer) => answer.id !== id && answer.id !== null);
  if (unmatched !== undefined)
    throw new Error(`asked with id ${JSON.stringify(id)}, got ${JSON.stringify(unmatched)}`);
  const [answer] = answers;
  const instanceId = headers['x-instance-id'];
  return {
    status,
    instanceId: typeof instanceId === 'string' ? instanceId : undefined,
    result: answer?.result,
    error: answer?.error,
    notifications: messages.filter((message) => message.method !== undefined && message.id === undefined),
    asked: messages.filter(isQuestion).map(({ method = '' }) => method),
  };
}
