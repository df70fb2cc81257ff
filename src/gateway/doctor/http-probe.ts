// Asks an endpoint of Streamable HTTP as plain HTTP does, without the tolerance of the gateway's own client, and examines its
// redirects and the type, encoding, end and content of its answers. The session that this opens is ended.

import { randomUUID } from 'node:crypto';
import { isJsonObject, type JsonObject, jsonIn } from '../../domain/json/json.ts';
import { LEGACY_VERSIONS, MODERN_VERSIONS } from '../../domain/mcp/mcp.ts';
import { MCP_ACCEPT } from '../../domain/mcp/media-types.ts';
import type { BackendFetchRequest } from '../../vault/backend-fetch.ts';
import type { Finding } from './faults.ts';
import {
  compareEras,
  converseInLegacy,
  converseInModern,
  Findings,
  type Heard,
  isAnswer,
  type Wire,
} from './plain-checks.ts';

type Send = (request: BackendFetchRequest) => Promise<Response>;

/** An event stream ends after its answer, within this time. */
const STREAM_REST_MS = 2_000;

export interface ProbeTime {
  readonly now: () => number;
  /** The time of `now` after which no message is sent. Default: none. */
  readonly untilMs?: number | undefined;
}

/**
 * The faults that are found until the end of the time. `send` follows no redirect, and rejects for an endpoint that does not
 * answer: that is not a finding of its own.
 */
export async function probeEndpoint(
  endpoint: string,
  headers: Readonly<Record<string, string>>,
  send: Send,
  time: ProbeTime,
): Promise<Finding[]> {
  const found = new Findings();
  const probe = new HttpProbe({ endpoint, headers, send, found, ...time });
  try {
    await converse(probe, found);
  } catch (thrown) {
    if (!(thrown instanceof TimeIsOver)) throw thrown;
    await probe.end();
  }
  return [...found.all];
}

async function converse(probe: HttpProbe, found: Findings): Promise<void> {
  const inLegacy = await converseInLegacy(probe, found);
  if (probe.isRefused) return;
  await probe.asOfUnknownSession();
  await probe.end();
  probe.isModern = true;
  compareEras(inLegacy, await converseInModern(probe, found), found);
}

class TimeIsOver extends Error {}

interface HttpProbeOptions extends ProbeTime {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly send: Send;
  readonly found: Findings;
}

class HttpProbe implements Wire {
  isModern = false;
  /** True when the first answer was none of MCP: further requests would only repeat it. */
  isRefused = false;
  readonly #endpoint: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #send: Send;
  readonly #found: Findings;
  readonly #now: () => number;
  readonly #untilMs: number;
  #session: string | undefined;

  constructor({ endpoint, headers, send, found, now, untilMs = Infinity }: HttpProbeOptions) {
    this.#endpoint = endpoint;
    this.#headers = headers;
    this.#send = send;
    this.#found = found;
    this.#now = now;
    this.#untilMs = untilMs;
  }

  async ask(message: Parameters<Wire['ask']>[0]): Promise<Heard> {
    this.#checkTime();
    const startedAtMs = this.#now();
    const { method } = message;
    const heard = (texts: readonly string[]): Heard => ({
      texts,
      hasEnded: false,
      tookMs: this.#now() - startedAtMs,
    });
    try {
      const { response, body, isLeftOpen } = await this.#post(message);
      const tookMs = this.#now() - startedAtMs - (isLeftOpen ? STREAM_REST_MS : 0);
      if (method === 'initialize') {
        this.#session = response.headers.get('mcp-session-id') ?? undefined;
        this.isRefused = this.#faultsOfHead(response, body) || (!response.ok && !isMessage(body));
      }
      // The end of a body that has not ended may be missing.
      const texts = this.#messagesIn(response, isLeftOpen ? wholeEventsOf(body) : body, method);
      if (isLeftOpen) this.#leftOpen(response, method);
      return { ...heard(texts), tookMs };
    } catch {
      if (method === 'initialize') this.isRefused = true; // whether it can be reached, its instance says
      return heard([]);
    }
  }

  async tell(message: JsonObject): Promise<void> {
    this.#checkTime();
    try {
      const { response, body } = await this.#post(message);
      if (message.method === 'notifications/initialized' && (response.status !== 202 || body !== ''))
        this.#found.add(
          'initialized-answer',
          `It answers notifications/initialized with ${response.status}${body === '' ? '' : ' and a body'}.`,
        );
    } catch {
      // its next answer counts
    }
  }

  /** Asks with an unknown session id: a server with sessions must answer 404. */
  async asOfUnknownSession(): Promise<void> {
    const own = this.#session;
    if (own === undefined) return;
    this.#checkTime();
    this.#session = randomUUID();
    try {
      const { response, isLeftOpen } = await this.#post({ jsonrpc: '2.0', id: 7_009, method: 'ping' });
      const { status } = response;
      if (status >= 400 && status !== 404)
        this.#found.add('session-status', `It answers an unknown session with ${status}.`);
      if (isLeftOpen) this.#leftOpen(response, 'ping');
    } catch {
      // its other answers count
    }
    this.#session = own;
  }

  /** Ends the session. */
  async end(): Promise<void> {
    if (this.#session === undefined) return;
    const request = { method: 'DELETE', headers: this.#headersOf({}), isBodyIgnored: true };
    await this.#send(request).catch(() => undefined);
    this.#session = undefined;
  }

  /** Throws TimeIsOver. */
  #checkTime(): void {
    if (this.#now() >= this.#untilMs) throw new TimeIsOver();
  }

  async #post(message: JsonObject) {
    let isLeftOpen = false;
    const { id } = message;
    const response = await this.#send({
      method: 'POST',
      headers: this.#headersOf(message),
      body: JSON.stringify(message),
      partly: {
        restMs: STREAM_REST_MS,
        isEnough: (body) => isAnsweredIn(body.toString(), id),
        onLeftOpen: () => {
          isLeftOpen = true;
        },
      },
    });
    const encoding = response.headers.get('content-encoding') ?? 'identity';
    if (encoding !== 'identity')
      this.#found.add('compressed', `It compresses its answers (${encoding.slice(0, 40)}) unasked.`);
    return { response, body: encoding === 'identity' ? await response.text() : '', isLeftOpen };
  }

  #headersOf({ method }: JsonObject): Record<string, string> {
    const isOpening = method === 'initialize';
    const version = this.isModern ? MODERN_VERSIONS[0] : LEGACY_VERSIONS[0];
    return {
      ...this.#headers,
      'content-type': 'application/json',
      accept: MCP_ACCEPT,
      ...(isOpening ? {} : { 'mcp-protocol-version': version }),
      ...(this.isModern && typeof method === 'string' ? { 'mcp-method': method } : {}),
      ...(this.#session === undefined || isOpening ? {} : { 'mcp-session-id': this.#session }),
    };
  }

  /** The messages of an answer as they came. */
  #messagesIn(response: Response, body: string, method: string): string[] {
    const { status, headers, ok } = response;
    const isStream = /^text\/event-stream\b/i.test(headers.get('content-type') ?? '');
    const texts = isStream ? dataIn(body) : body === '' ? [] : [body];
    const messages = texts.filter(isMessage);
    const odd = messages.length < texts.length;
    if (method === 'server/discover') {
      if (messages.length === 0 || status >= 500)
        this.#found.add('discover-answer', `It answers server/discover with ${status} and without JSON-RPC.`);
    } else if (isStream && odd)
      this.#found.add('event-text', 'Its event stream has data that is not JSON-RPC.');
    else if (ok && odd && !headers.has('content-encoding'))
      this.#found.add('not-json-rpc', `It answers ${method} with ${status} and a body that is not JSON-RPC.`);
    else if (!ok && odd && method !== 'initialize')
      this.#found.add('refuses-with-text', `It refuses an unknown method with ${status} and a text.`);
    // Any bytes instead of an answer are not silence.
    return method === 'server/discover' && messages.length === 0 ? [''] : messages;
  }

  #leftOpen({ ok }: Response, method: string): void {
    if (ok) this.#found.add('open-stream', `It keeps the event stream of ${method} open after its answer.`);
    else this.#found.add('endless-refusal', `It refuses ${method} with a body that does not end.`);
  }

  /** True when it is not an answer of MCP. */
  #faultsOfHead({ status, headers, ok }: Response, body: string): boolean {
    const found = this.#found;
    const type = headers.get('content-type') ?? 'none';
    if (status >= 300 && status < 400) {
      const location = headers.get('location');
      const target = location === null ? null : URL.parse(location, this.#endpoint);
      const isFollowed =
        (status === 307 || status === 308) && target?.origin === new URL(this.#endpoint).origin;
      const where =
        target === null ? 'without an address (Location)' : `to ${target.origin}${target.pathname}`;
      found.add(isFollowed ? 'redirect' : 'redirect-elsewhere', `It answers POST with ${status}, ${where}.`);
      return true;
    }
    if (status === 405) {
      found.add('redirect-elsewhere', 'It answers POST with 405.');
      return true;
    }
    if (status === 401 || status === 403) {
      found.add('refused', `It answers ${status}: credentials are missing, or it refuses them.`);
      if (body === '' && !headers.has('www-authenticate'))
        found.add('refused-silently', `It answers ${status} without a body and without WWW-Authenticate.`);
      return true;
    }
    const isKnown = /^(?:application\/json|text\/event-stream)\b/i.test(type);
    if (ok && (!isKnown || status !== 200))
      found.add('content-type', `It answers initialize with ${status} and the content type "${type}".`);
    return false;
  }
}

function wholeEventsOf(stream: string): string {
  const text = stream.replaceAll(/\r\n?/g, '\n');
  const end = text.lastIndexOf('\n\n');
  return end === -1 ? '' : text.slice(0, end + 1);
}

/** The data of each event. */
function dataIn(stream: string): string[] {
  return stream
    .replaceAll(/\r\n?/g, '\n')
    .split('\n\n')
    .flatMap((event) => {
      const data = event.split('\n').filter((line) => line.startsWith('data:'));
      return data.length === 0 ? [] : [data.map((line) => line.slice(5).trimStart()).join('\n')];
    })
    .filter((data) => data !== ''); // servers begin streams with an empty event
}

/** True for one message, or several in an array. */
function isMessage(text: string): boolean {
  const parsed = jsonIn(text);
  const all = Array.isArray(parsed) ? parsed : [parsed];
  return all.length > 0 && all.every((each) => isJsonObject(each) && 'jsonrpc' in each);
}

/** True when a body that has not ended has the answer. */
function isAnsweredIn(body: string, id: unknown): boolean {
  return dataIn(`${body}\n`).some((data) => {
    const answer = jsonIn(data);
    return isAnswer(answer) && (answer.id === id || answer.id === String(id));
  });
}
