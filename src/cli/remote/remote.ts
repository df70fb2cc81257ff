// Sends the HTTP requests of commands to a gateway. Every wait is bounded, and every failure is one line.

import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import { cutText, plainLine } from '../../domain/text.ts';
import { ownCommand } from '../../domain/version.ts';
import { SseReader } from '../../net/http1/sse-reader.ts';
import { type RequestCredentials, renewing } from '../accounts/request-credentials.ts';
import { PROVEN_MS } from '../accounts/require-proof.ts';
import { CommandFailure, GatewayRefusal, UsageError } from '../failures.ts';
import type { Terminal } from '../terminal.ts';
import { textWithin } from './answering-url.ts';
import { answerFault, answerIn, elementsOf, type Fields, fields, issueText } from './answers.ts';
import { secured, speaksHttps } from './certificate-fault.ts';
import { outcomeText, unreachable } from './unreachable.ts';

interface RemoteRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  /** True: the credentials are not sent, so the gateway need not prove itself. */
  readonly isAnonymous?: boolean;
  /** The fields that are sent as a form, without credentials: a login. */
  readonly form?: Readonly<Record<string, string>>;
  /** The longest wait for the whole answer, in ms. Default: GATEWAY_ANSWER_MS. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

interface FollowOptions {
  /** JSON to be posted; without it the request is a GET. */
  readonly text?: string;
  readonly after?: string | undefined;
  /** Ends the stream, which may have any size; one without it may have as many bytes as an answer. */
  readonly signal?: AbortSignal | undefined;
  /** The time after which the stream may not go on, in ms. Default: it may. */
  readonly longestMs?: number | undefined;
}

export interface RemoteEvent {
  readonly name: string;
  readonly data: string;
  /** The id of the event, or of the last event that had one; empty without. */
  readonly id: string;
}

/** The connection ended, or was silent for longer than `SILENCE_MS`. */
export class StreamBroken extends CommandFailure {}

/** The longest wait for an answer unless the request says so, in ms. The gateway waits up to 16 s for a silent database. */
export const GATEWAY_ANSWER_MS = 20_000;
/** The longest silence of a stream: its gateway writes a comment every 15 s. */
const SILENCE_MS = 60_000;
/** The most bytes of one event; the result of a tool may be as long as a message of a backend. */
const MAX_EVENT_BYTES = 65 * 1024 * 1024;
/** The most bytes of one answer: a program at the address of a gateway may write without end. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

/** One gateway and the credentials for it. */
export class Remote {
  /** The address, without a slash at its end. */
  readonly url: string;
  readonly #credentials: RequestCredentials;
  readonly #busy: Terminal['busy'];
  readonly #note: Terminal['note'];
  /** The nodes that were named as missing. */
  #missing = '';
  #provenAtMs = Number.NEGATIVE_INFINITY;

  /** `note` gets the names of nodes that are missing in an answer about the deployment. Default: they are not named. */
  constructor(
    url: string,
    credentials: RequestCredentials,
    busy: Terminal['busy'],
    note: Terminal['note'] = () => {},
  ) {
    this.url = url;
    this.#credentials = credentials;
    this.#busy = busy;
    this.#note = note;
  }

  /** The parsed body, undefined for 204. Throws CommandFailure for every other outcome than 2xx. */
  async request(path: string, request: RemoteRequest = {}): Promise<unknown> {
    return (await this.ask(path, request)).body;
  }

  async ask(
    path: string,
    request: RemoteRequest,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const { method = 'GET', timeoutMs = GATEWAY_ANSWER_MS, signal } = request;
    const address = this.#addressOf(path);
    const timeout = AbortSignal.timeout(timeoutMs);
    const isAnonymous = request.form !== undefined || request.isAnonymous === true;
    const { response, text } = await this.#busy(`waiting for ${this.url}`, async () => {
      if (!isAnonymous) await this.#prove(timeoutMs);
      try {
        const send = () =>
          fetch(address, {
            method,
            signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
            // The credentials are for this gateway, not for the target of a redirect.
            redirect: 'error',
            ...contentOf(request, this.#credentials),
          });
        const response = isAnonymous ? await send() : await renewing(this.#credentials, send, timeoutMs);
        return { response, text: await this.#textOf(response) };
      } catch (error) {
        this.#provenAtMs = Number.NEGATIVE_INFINITY;
        if (error instanceof CommandFailure) throw error;
        throw unreachable(this.url, timeoutMs, error, method);
      }
    });
    return { status: response.status, body: this.#bodyOf(response, text, request) };
  }

  /** The health of the gateway, also when it is unhealthy, or cannot prove itself: everybody may ask for it. */
  async health(): Promise<Fields> {
    const health = fields(await this.request('/gateway/health', { isAnonymous: true }));
    if ('status' in health) return health;
    throw new CommandFailure(`${this.url} is not a gateway: its health has no status`);
  }

  /**
   * Passes on the events of a stream until it ends. Throws like `ask`, also for the event `error`, and for a stream that goes
   * on for too long; StreamBroken when the connection ends before the stream does.
   */
  async follow(
    path: string,
    { text, after, signal, longestMs = Number.POSITIVE_INFINITY }: FollowOptions,
    onEvent: (event: RemoteEvent) => void,
  ): Promise<void> {
    const address = this.#addressOf(path);
    const silence = new AbortController();
    this.#provenAtMs = Number.NEGATIVE_INFINITY; // often the stream before ended with the gateway
    await this.#prove();
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const headers = {
      Accept: EVENT_STREAM_TYPE,
      ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(after === undefined ? {} : { 'Last-Event-ID': after }),
    };
    const method = text === undefined ? 'GET' : 'POST';
    let hasBegun = false;
    try {
      const ends = AbortSignal.any([silence.signal, ...(signal === undefined ? [] : [signal])]);
      const response = await renewing(this.#credentials, () =>
        fetch(address, {
          method,
          headers: { ...this.#credentials.headers, ...headers },
          body: text ?? null,
          signal: ends,
          redirect: 'error',
        }),
      );
      const isStream = response.headers.get('content-type')?.startsWith(EVENT_STREAM_TYPE) === true;
      if (!isStream || response.body === null) {
        this.#bodyOf(response, await this.#textOf(response));
        throw new CommandFailure(`${this.url} answered ${path} without an event stream`);
      }
      hasBegun = true;
      const reader = new SseReader(MAX_EVENT_BYTES, (bytes, name) => {
        const data = bytes.toString('utf8');
        if (name === 'error') throw this.#refusalOf(fields(answerIn(data)), response);
        onEvent({ name, data, id: reader.lastEventId });
      });
      const endsAtMs = performance.now() + longestMs;
      let bytes = 0;
      for await (const chunk of response.body) {
        timer.refresh();
        bytes += chunk.length;
        if (signal === undefined && bytes > MAX_ANSWER_BYTES) throw this.#tooMuch();
        if (performance.now() > endsAtMs)
          throw new CommandFailure(`${this.url} took more than ${longestMs / 1000} s for one answer`);
        if (!reader.push(Buffer.from(chunk))) throw new Error('an event is too long');
      }
    } catch (error) {
      this.#provenAtMs = Number.NEGATIVE_INFINITY;
      if (error instanceof CommandFailure) throw error;
      if (signal?.aborted) return;
      if (!hasBegun && !silence.signal.aborted) throw unreachable(this.url, SILENCE_MS, error, method);
      throw new StreamBroken(`lost the connection to ${this.url}${outcomeText(method)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  async #textOf(response: Response): Promise<string> {
    const text = await textWithin(response, MAX_ANSWER_BYTES);
    if (text !== undefined) return text;
    throw this.#tooMuch();
  }

  #tooMuch(): CommandFailure {
    return new CommandFailure(
      `${this.url} sent more than ${MAX_ANSWER_BYTES / 1024 / 1024} MiB in one answer`,
    );
  }

  /** Makes sure, before a request with credentials, that the token has some time left and that the gateway knows it. */
  async #prove(timeoutMs = GATEWAY_ANSWER_MS): Promise<void> {
    const { renew, prove } = this.#credentials;
    try {
      await renew?.(timeoutMs);
      if (prove === undefined || performance.now() - this.#provenAtMs < PROVEN_MS) return;
      await prove(timeoutMs);
    } catch (error) {
      throw error instanceof CommandFailure ? error : unreachable(this.url, timeoutMs, error, 'GET');
    }
    this.#provenAtMs = performance.now();
  }

  /** The URL of a path. Throws UsageError for a name that would address another route. */
  #addressOf(path: string): string {
    if (/\/\.{0,2}(?=\/|$)/.test(path.replace(/\?.*$/s, '')))
      throw new UsageError('a name must not be empty, "." or ".."');
    return this.url + path;
  }

  /**
   * The parsed body of an answer. Throws GatewayRefusal for a failure of the request, CommandFailure for an answer
   * that is not JSON.
   */
  #bodyOf(response: Response, text: string, { form }: RemoteRequest = {}): unknown {
    const { status, ok } = response;
    if (status === 204) return undefined;
    const body = answerIn(text);
    if (speaksHttps(this.url, status, text))
      throw new CommandFailure(`${this.url} speaks HTTPS; name it as ${secured(this.url)}`);
    if (typeof body !== 'object' || body === null) {
      const fault = body === undefined ? answerFault(text) : 'is not an object';
      // A gateway can have an answer with too many values, too.
      const other = fault.startsWith('is not')
        ? `${this.url} is not a gateway: its answer`
        : `the answer of ${this.url}`;
      throw new CommandFailure(`${other} (status ${status}) ${fault}`);
    }
    if (ok) {
      this.#noteMissing(fields(body).partial);
      return body;
    }
    if (status !== 401 || form !== undefined) throw this.#refusalOf(body, response, form);
    throw new GatewayRefusal(this.#credentials.refused(reasonsOf(body)), fields(body).error_code);
  }

  /** Names the nodes that did not answer in one line, once for the same nodes: a command may ask several questions. */
  #noteMissing(partial: unknown): void {
    const nodes = plainLine(elementsOf(partial).map(String).join(', '));
    if (nodes === '' || nodes === this.#missing) return;
    this.#missing = nodes;
    this.#note(`without the part of nodes that did not answer: ${nodes}`);
  }

  /** The failure of a refused request. It names the credentials that lack a permission: there may be several on a machine. */
  #refusalOf(body: object, response: Response, form?: RemoteRequest['form']): GatewayRefusal {
    // A form has credentials of its own.
    const used = response.status === 403 && form === undefined ? `; ${this.#credentials.name} was used` : '';
    return refusalOf(body, response, used);
  }
}

function contentOf(
  { body, form, isAnonymous = false }: RemoteRequest,
  { headers }: RequestCredentials,
): RequestInit {
  if (form !== undefined) return { body: new URLSearchParams(form) };
  if (isAnonymous) return {};
  if (body === undefined) return { headers };
  return { body: JSON.stringify(body), headers: { ...headers, 'Content-Type': 'application/json' } };
}

/** The gateway's error body as one line, without its request id, which only helps readers of the log. */
function refusalOf(answer: object, { status, headers }: Response, used: string): GatewayRefusal {
  const { error_code: code = `status ${status}`, suggestion } = fields(answer);
  const wait = status === 429 ? headers.get('Retry-After') : null;
  const advice = wait === null ? '' : `; try again in ${wait} s`;
  const shownCode = plainLine(cutText(String(code), SHOWN_CODE_UNITS));
  const hasSuggestion = suggestion !== undefined;
  return new GatewayRefusal(`${reasonsOf(answer)}${advice}${used} (${shownCode})`, code, { hasSuggestion });
}

/** The most UTF-16 units of a refusal's reason and code that are shown; an answer may have 128 MiB. */
const MAX_REASON_UNITS = 32_768;
const SHOWN_CODE_UNITS = 128;

function reasonsOf(answer: object): string {
  const { detail } = fields(answer);
  const reason = Array.isArray(detail)
    ? detail.map(issueText).join('; ')
    : String(detail ?? 'no reason given');
  const line = plainLine(cutText(reason, MAX_REASON_UNITS)).replace(/\.$/, '');
  return line.replace(LIST_ROUTE, (_, noun) => `; "${ownCommand(`${noun} list`)}" lists the ${noun}s`);
}

const LIST_ROUTE = /\. GET \/gateway\/(\w+)s lists the \1s$/;
