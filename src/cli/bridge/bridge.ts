// Connects one client on standard input and output to the MCP endpoint of a gateway.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../domain/errors/errors.ts';
import { definedFields, type JsonText, jsonIn } from '../../domain/json/json.ts';
import { idValue, type JsonRpcId, numberMeant, RPC, readId, readMessage } from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED, INITIALIZED, LISTEN, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE } from '../../domain/mcp/mcp.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE, MCP_ACCEPT } from '../../domain/mcp/media-types.ts';
import { eraHeaders } from '../../transports/era-metadata.ts';
import { ToolHeaders } from '../../transports/tool-headers.ts';
import { CommandFailure } from '../failures.ts';
import { beginningOf, textWithin } from '../remote/answering-url.ts';
import { fields } from '../remote/answers.ts';
import { type BridgeMessage, idKey, mayBeSentTwice, readBridgeMessage } from './bridge-message.ts';
import { type GatewayLink, type LinkRequest, LostRequest, readMessages } from './gateway-link.ts';

interface BridgeOptions {
  readonly link: GatewayLink;
  /** Writes one line to the client; resolves when the next line may follow. */
  readonly write: (line: string) => Promise<void>;
  readonly log: (text: string) => void;
  /**
   * The wait after a stream was refused, and before a session is opened in place of one whose stream was never
   * accepted, in ms: the next one may be refused, too. Default: REFUSED_MS.
   */
  readonly refusedMs?: number;
}

/** The longest wait at the end for pending answers, and for the end of the session, in ms. */
const [ANSWERS_MS, DELETE_MS] = [5_000, 2_000];
/**
 * The wait before a stream is requested again, unless the gateway gives another, in ms. It doubles, up to that after a refusal,
 * while streams end without a message.
 */
const RETRY_MS = 500;
const REFUSED_MS = 30_000;
/** The most bytes of a refusal whose text is reported; of a longer one only the status is. */
const MAX_REPORTED_BYTES = 64 * 1024;

interface BridgeSession {
  readonly id: string | undefined;
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
}

interface Pending {
  readonly message: BridgeMessage;
  readonly abort: AbortController;
}

/**
 * The connection of one client, until `close`. Messages pass unchanged in both eras; the bridge adds what HTTP needs:
 * headers, the session, and a new session when the gateway was restarted.
 */
export class Bridge {
  readonly #options: BridgeOptions;
  readonly #ended = new AbortController();
  readonly #pending = new Map<string, Pending>();
  readonly #work = new Set<Promise<void>>();
  /** A client on standard input and output does not know that its arguments have to be in headers, too. */
  readonly #toolHeaders = new ToolHeaders();
  #session: BridgeSession | undefined;
  /** The opening of the session; later messages of the era with sessions wait for it. */
  #opening: Promise<unknown> = Promise.resolve();
  #reopening: Promise<void> | undefined;
  #listening = new AbortController();
  /** The client's messages that set state on its server, in order, from `initialize` on. A new session gets them again. */
  readonly #remembered = new Map<string, BridgeMessage>();

  constructor(options: BridgeOptions) {
    this.#options = options;
  }

  receive(line: string): void {
    if (line.trim() === '' || this.#ended.signal.aborted) return;
    const message = readBridgeMessage(line);
    const work =
      message === undefined ? this.#refuse(null, RPC.parseError, 'not JSON-RPC') : this.#pass(message);
    const counted = work
      .catch((error: unknown) => this.#report(error))
      .finally(() => this.#work.delete(counted));
    this.#work.add(counted);
  }

  /** Ends the session and everything that is open; with `isImmediate`, without waiting for pending answers. */
  async close({ isImmediate = false } = {}): Promise<void> {
    if (!isImmediate) await Promise.race([this.#answered(), delay(ANSWERS_MS, undefined, { ref: false })]);
    const session = this.#session;
    this.#ended.abort();
    this.#listening.abort();
    for (const { abort } of this.#pending.values()) abort.abort();
    if (session?.id === undefined) return;
    const signal = AbortSignal.timeout(DELETE_MS);
    const headers = this.#sessionHeaders(session);
    try {
      const request = { method: 'DELETE', headers, signal, isRepeatable: false } as const;
      await beginningOf(await this.#options.link.send(request));
    } catch {
      // The gateway ends an idle session by itself.
    }
  }

  /** Resolves when all requests from before the end of the input are answered, except streams that stay open. */
  async #answered(): Promise<void> {
    while (this.#work.size > 0) {
      const left = [...this.#pending.values()];
      if (left.length > 0 && left.every(({ message }) => message.method === LISTEN)) return;
      await Promise.race(this.#work);
    }
  }

  async #pass(message: BridgeMessage): Promise<void> {
    const cancelled = this.#cancelledBy(message);
    if (message.method === INITIALIZE) {
      this.#session = undefined;
      this.#remembered.clear();
      this.#remembered.set(INITIALIZE, message);
      this.#opening = this.#request(message);
      await this.#opening;
    } else if (message.modernVersion !== undefined && message.method !== CANCELLED) {
      await this.#request(message);
    } else if (
      message.modernVersion !== undefined ||
      cancelled?.pending.message.modernVersion !== undefined
    ) {
      cancelled?.pending.abort.abort(); // without sessions the end of the connection cancels
    } else {
      // It is not sent again, and not answered.
      if (cancelled?.pending.message.ids.length === 1) cancelled.pending.abort.abort();
      else if (cancelled !== undefined) this.#pending.delete(cancelled.key);
      const before = this.#opening;
      const passed = before.then(() =>
        message.ids.length > 0 ? this.#request(message) : this.#notify(message),
      );
      if (message.method === INITIALIZED) this.#opening = Promise.allSettled([passed]);
      await passed;
    }
  }

  // --- requests --------------------------------------------------------------------------------------------

  async #request(message: BridgeMessage): Promise<void> {
    const abort = new AbortController();
    const pending: Pending = { message, abort };
    for (const id of message.ids) this.#pending.set(idKey(id), pending);
    try {
      await this.#exchange(pending);
    } catch (error) {
      if (!abort.signal.aborted) await this.#fail(message, error);
    } finally {
      for (const id of message.ids) this.#pending.delete(idKey(id));
    }
  }

  /** Sends the request and reads its stream, continuing a broken one, until the request is answered. */
  async #exchange(pending: Pending): Promise<void> {
    const { message, abort } = pending;
    const { signal } = abort;
    const { refusedMs = REFUSED_MS } = this.#options;
    let lastEventId: string | undefined;
    let isReopened = false;
    let waitMs = RETRY_MS;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const session = message.modernVersion === undefined ? this.#session : undefined;
      const isFresh = lastEventId === undefined;
      const request = isFresh
        ? this.#post(message, session, signal)
        : this.#get(session, lastEventId, signal);
      const response = await this.#options.link.send(request).catch((cause: unknown) => {
        throw isFresh ? cause : new LostRequest(messageOf(cause), { cause }); // the message itself was delivered
      });
      // Behind a load balancer that does not route by session, the new session may be unknown, too.
      if (response.status === 404 && session?.id !== undefined && !isReopened) {
        await beginningOf(response);
        if (!isFresh && !mayBeSentTwice(message)) throw new LostRequest('the gateway was restarted');
        lastEventId = undefined;
        isReopened = true;
        await this.#reopen(session);
        continue;
      }
      if (!response.ok) return this.#refuseAs(message, response);
      if (message.method === INITIALIZE) this.#startSession(response);
      const end = await readMessages(response, (data) => this.#answer(pending, data));
      if (signal.aborted || !message.ids.some((id) => this.#pending.has(idKey(id)))) return;
      // A continued answer that broke before its next event is continued after the same one.
      const after = end.lastEventId ?? (end.isBroken ? lastEventId : undefined);
      if (after !== undefined && message.modernVersion === undefined) lastEventId = after;
      else if (mayBeSentTwice(message) && (isFirst || message.method === LISTEN)) lastEventId = undefined;
      else throw new LostRequest('the gateway ended the answer before it was complete');
      if (end.hasMessages) waitMs = RETRY_MS;
      await delay(end.retryMs ?? waitMs, undefined, { signal });
      waitMs = Math.min(2 * waitMs, refusedMs);
    }
  }

  #post(message: BridgeMessage, session: BridgeSession | undefined, signal: AbortSignal): LinkRequest {
    return {
      method: 'POST',
      headers: { ...BOTH, ...this.#headersFor(message, session) },
      body: message.line,
      signal,
      isRepeatable: mayBeSentTwice(message),
    };
  }

  #get(
    session: BridgeSession | undefined,
    lastEventId: string | undefined,
    signal: AbortSignal,
  ): LinkRequest {
    const headers = {
      ...this.#sessionHeaders(session),
      accept: EVENT_STREAM_TYPE,
      ...definedFields({ 'last-event-id': lastEventId }),
    };
    return { method: 'GET', headers, signal, isRepeatable: true };
  }

  #headersFor({ method, params, modernVersion }: BridgeMessage, session: BridgeSession | undefined) {
    if (modernVersion === undefined) return method === INITIALIZE ? {} : this.#sessionHeaders(session);
    return {
      ...eraHeaders({ method, params }, { era: 'modern', protocolVersion: modernVersion }),
      ...this.#toolHeaders.for({ method, params }, { era: 'modern' }),
    };
  }

  #sessionHeaders(session: BridgeSession | undefined): Record<string, string> {
    if (session === undefined) return {};
    return {
      'mcp-protocol-version': session.version,
      ...(session.id === undefined ? {} : { 'mcp-session-id': session.id }),
    };
  }

  async #answer({ message }: Pending, data: Buffer): Promise<void> {
    const read = readMessage(data);
    if (read !== undefined && (read.kind === 'result' || read.kind === 'error') && read.id !== null) {
      this.#pending.delete(idKey(read.id));
      if (message.method === INITIALIZE) this.#readInitializeResult(data);
      else if (read.kind === 'result') this.#remember(message, read.result);
    } else if (Array.isArray(jsonIn(data.toString('utf8'))))
      for (const id of message.ids) this.#pending.delete(idKey(id));
    else if (read === undefined) return this.#options.log('a message that is not JSON-RPC was dropped');
    await this.#options.write(oneLine(data));
  }

  #remember(message: BridgeMessage, result: JsonText): void {
    const { method, params, modernVersion } = message;
    if (modernVersion !== undefined) this.#toolHeaders.checkTools({ method }, { era: 'modern' }, result);
    if (method === SET_LEVEL) this.#remembered.set(method, message);
    if (method === SUBSCRIBE) this.#remembered.set(`uri ${params.uri}`, message);
    if (method === UNSUBSCRIBE) this.#remembered.delete(`uri ${params.uri}`);
  }

  // --- notifications and answers of the client -------------------------------------------------------------

  async #notify(message: BridgeMessage): Promise<void> {
    const { method } = message;
    if (method === INITIALIZED) this.#remembered.set(method, message);
    const { signal } = this.#ended;
    const response = await this.#options.link.send(this.#post(message, this.#session, signal));
    await beginningOf(response);
    if (!response.ok)
      this.#options.log(`the gateway refused ${method || 'an answer'} (status ${response.status})`);
    if (method === INITIALIZED && response.ok) this.#listen();
  }

  /** The request that this message cancels, and its key, if it is pending. */
  #cancelledBy({ method, params }: BridgeMessage) {
    const id = method === CANCELLED ? readId(params.requestId) : undefined;
    for (const key of id === undefined ? [] : [idKey(id), idKey(numberMeant(id) ?? id)]) {
      const pending = this.#pending.get(key);
      if (pending !== undefined) return { key, pending };
    }
    return undefined;
  }

  // --- the session -----------------------------------------------------------------------------------------

  #startSession(response: Response): void {
    const id = response.headers.get('mcp-session-id') ?? undefined;
    this.#session = { id, version: '2025-03-26', capabilities: {} };
  }

  #readInitializeResult(data: Buffer): void {
    const { protocolVersion, capabilities } = fields(fields(jsonIn(data.toString('utf8'))).result);
    if (this.#session === undefined) return;
    const version = typeof protocolVersion === 'string' ? protocolVersion : this.#session.version;
    this.#session = { id: this.#session.id, version, capabilities: fields(capabilities) };
  }

  /** Opens a session in place of the lost one; requests that need it share one opening. */
  #reopen(lost: BridgeSession): Promise<void> {
    if (this.#reopening !== undefined) return this.#reopening;
    if (this.#session?.id !== lost.id) return Promise.resolve(); // it has been reopened meanwhile
    this.#reopening = this.#openAgain(lost).finally(() => {
      this.#reopening = undefined;
    });
    this.#opening = Promise.allSettled([this.#reopening]);
    return this.#reopening;
  }

  async #openAgain(lost: BridgeSession): Promise<void> {
    const initialize = this.#remembered.get(INITIALIZE);
    if (initialize === undefined) throw new Error('the session is lost');
    const { signal } = this.#ended;
    const response = await this.#options.link.send(this.#post(initialize, undefined, signal));
    if (!response.ok) throw new Error((await refusalIn(response)).text);
    this.#startSession(response);
    const id = this.#session?.id;
    try {
      await readMessages(response, async (data) => this.#readInitializeResult(data));
      for (const message of this.#remembered.values()) {
        if (message.method === INITIALIZE) continue; // also one that the client has sent meanwhile
        const answer = await this.#options.link.send(this.#post(message, this.#session, signal));
        await readMessages(answer, async () => {}); // the client has had its answer
      }
    } catch (error) {
      // Without all its state it is not the session of the client: the next request opens another one.
      if (this.#session?.id === id) this.#session = lost;
      throw error;
    }
    signal.throwIfAborted(); // also while the last answer was read
    this.#options.log('the session was lost and has been reopened');
    this.#listen();
    // The server may offer other features now.
    for (const list of ['tools', 'resources', 'prompts']) {
      if (fields(this.#session?.capabilities[list]).listChanged !== true) continue;
      await this.#options.write(`{"jsonrpc":"2.0","method":"notifications/${list}/list_changed"}`);
    }
  }

  /** Passes on the server's own messages for the lifetime of the session. */
  #listen(): void {
    this.#listening.abort();
    this.#listening = new AbortController();
    void this.#followStream(this.#listening.signal).catch((error: unknown) => this.#report(error));
  }

  async #followStream(signal: AbortSignal): Promise<void> {
    const { refusedMs = REFUSED_MS } = this.#options;
    let lastEventId: string | undefined;
    let hasBegun = false;
    let waitMs = RETRY_MS;
    while (!signal.aborted) {
      const session = this.#session;
      const askedAtMs = performance.now();
      const sent = this.#options.link.send(this.#get(session, lastEventId, signal));
      // A gateway that was unreachable or busy for too long may still have the session.
      let isForeign = false;
      const response = await sent.catch((error: unknown) => {
        isForeign = error instanceof CommandFailure; // what answers is not the gateway
        this.#report(error);
      });
      if (response?.status === 404 && session?.id !== undefined) {
        await beginningOf(response);
        if (!hasBegun) await delay(refusedMs, undefined, { signal });
        lastEventId = undefined;
        // It opens another stream, which ends this one. If it fails, it is tried again: the client may only listen.
        await this.#reopen(session).catch((error: unknown) => this.#report(error));
        await delay(refusedMs, undefined, { signal });
        continue;
      }
      if (response?.ok === false) await beginningOf(response);
      if (response?.status === 405) return; // the server sends no other messages
      // A limit, or a key that is replaced later.
      const isRefused = isForeign || (response?.ok === false && response.status < 500);
      hasBegun ||= response?.ok === true;
      const write = (data: Buffer) => this.#options.write(oneLine(data));
      const end = response?.ok ? await readMessages(response, write) : undefined;
      lastEventId = end?.lastEventId ?? lastEventId;
      // A proxy may end a quiet stream after a while.
      const isGood = end !== undefined && (end.hasMessages || performance.now() - askedAtMs >= refusedMs);
      if (isGood) waitMs = RETRY_MS;
      await delay(isRefused ? refusedMs : (end?.retryMs ?? waitMs), undefined, { signal });
      waitMs = Math.min(2 * waitMs, refusedMs);
    }
  }

  // --- failures --------------------------------------------------------------------------------------------

  async #refuseAs(message: BridgeMessage, response: Response): Promise<void> {
    const { status } = response;
    const { text: reason, code, data } = await refusalIn(response);
    const text = status === 401 ? this.#options.link.refused(reason) : reason;
    if (status === 401 || status === 403) this.#options.log(`the gateway refuses the key: ${text}`);
    for (const id of message.ids) await this.#refuse(id, code, text, data);
  }

  async #fail(message: BridgeMessage, error: unknown): Promise<void> {
    const reason = messageOf(error);
    const isUnknown = error instanceof LostRequest;
    const text = isUnknown ? `${reason}; whether it took effect is unknown` : reason;
    this.#options.log(`${message.method || 'a request'} failed: ${text}`);
    for (const id of message.ids) {
      if (!this.#pending.has(idKey(id))) continue;
      await this.#refuse(id, RPC.badRequest, text, { delivered: isUnknown ? 'unknown' : 'no' });
    }
  }

  async #refuse(id: JsonRpcId | null, code: number, message: string, data?: unknown): Promise<void> {
    const error = { code, message, ...definedFields({ data }) };
    await this.#options.write(
      JSON.stringify({ jsonrpc: '2.0', id: id === null ? null : idValue(id), error }),
    );
  }

  #report(error: unknown): void {
    if (this.#ended.signal.aborted || (error instanceof Error && error.name === 'AbortError')) return;
    this.#options.log(messageOf(error));
  }
}

const INITIALIZE = 'initialize';
const BOTH = { accept: MCP_ACCEPT, 'content-type': JSON_TYPE };

/** Line breaks between the tokens of a message are white space; its strings contain none. */
function oneLine(data: Buffer): string {
  return data.toString('utf8').replace(/[\r\n]+/g, ' ');
}

/** The JSON-RPC error in a refusal, or one that is made of the gateway's own error body. */
async function refusalIn(response: Response): Promise<{ text: string; code: number; data: unknown }> {
  const { status } = response;
  const { error, detail, error_code } = fields(
    jsonIn((await textWithin(response, MAX_REPORTED_BYTES)) ?? ''),
  );
  const { message, data, code } = fields(error);
  return {
    text: String([message, detail].find((each) => typeof each === 'string') ?? `status ${status}`),
    code: typeof code === 'number' ? code : RPC.badRequest,
    data: data ?? { status, ...(typeof error_code === 'string' ? { error_code } : {}) },
  };
}
