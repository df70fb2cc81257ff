// Speaks to a running gateway over HTTP for the commands that manage one. It finds the gateway, waits a bounded time and
// turns every failure into one line that says what to do. The commands interpret the answers.

import { ownCommand } from '../domain/version.ts';
import { SseReader } from '../transports/http/sse-reader.ts';
import { type RequestCredentials, requestCredentials } from './accounts/credentials.ts';
import { fields, issueText } from './answers.ts';
import { CommandFailure, GatewayRefusal, NotLoggedIn, UsageError } from './failures.ts';
import type { Terminal } from './terminal.ts';
/** Default addresses of a gateway: first the port for calls by template, then that for servers. */
export const DEFAULT_URLS = ['http://127.0.0.1:8080', 'http://127.0.0.1:8000'] as const;

/** The options of a request. */
interface RemoteRequest {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as a form, without credentials: a login. */
  readonly form?: Readonly<Record<string, string>>;
  /** Longest wait for the whole answer, in ms. Default 10 000. */
  readonly timeoutMs?: number;
}

/** A request that is answered by server-sent events. */
interface StreamRequest {
  readonly method?: 'GET' | 'POST';
  /** JSON text. */
  readonly text?: string;
  /** Id of the last event that was read. */
  readonly after?: string | undefined;
  /** Aborts the request: its answer is dropped. */
  readonly signal?: AbortSignal;
}

/** What came back: its status, and the parsed body, undefined for 204. */
interface Answered {
  readonly status: number;
  readonly body: unknown;
}

/** One gateway, found. */
export interface Remote {
  /** Without a slash at its end. */
  readonly url: string;
  /** The answer. Throws CommandFailure for every other outcome than 2xx. */
  ask(path: string, request?: RemoteRequest): Promise<Answered>;
  /** The same without the status. */
  request(path: string, request?: RemoteRequest): Promise<unknown>;
  /** Like `request`, but hands back the answer of an unhealthy gateway (503 with a body) as well. */
  look(path: string, request?: Pick<RemoteRequest, 'timeoutMs'>): Promise<unknown>;
  /**
   * Hands over the events of a stream as they come; resolves when it ends in order. Throws like `ask`, also for its event
   * `error`; StreamBroken when the connection ends before the stream does.
   */
  follow(path: string, request: StreamRequest, onEvent: (event: RemoteEvent) => void): Promise<void>;
}

/** The connection ended, or was silent for longer than `SILENCE_MS`. */
export class StreamBroken extends CommandFailure {}

/** Longest silence of a stream: its gateway writes a comment every 15 s. */
const SILENCE_MS = 60_000;

/** Longest wait for a gateway's answer at a default address, in ms. */
const LOOK_MS = 3_000;

/** Finds the gateway: `--url`, else STAGEDOOR_URL, else the default that answers. Throws when none does. */
export async function findGateway(
  written: string | undefined,
  env: Terminal['env'],
  fetcher: typeof fetch = fetch,
  urls: readonly string[] = DEFAULT_URLS,
): Promise<Remote> {
  const remote = namedGateway(written, env, fetcher) ?? (await seekGateway(env, fetcher, urls));
  if (remote !== undefined) return remote;
  throw new CommandFailure(
    `no gateway answers at ${urls.join(' or ')}; ` +
      `start one with "${ownCommand('gateway start')}" or name it with --url`,
  );
}

/** The gateway that `--url` or STAGEDOOR_URL names, whether it answers or not; undefined when neither is given. */
export function namedGateway(
  written: string | undefined,
  env: Terminal['env'],
  fetcher: typeof fetch = fetch,
): Remote | undefined {
  const named = written ?? (env.STAGEDOOR_URL || undefined);
  if (named === undefined) return undefined;
  const url = checkedUrl(named, written === undefined);
  return remoteAt(url, requestCredentials(url, env), fetcher);
}

/** The addresses of gateways, from `--url`, else STAGEDOOR_URL, else the defaults. Sends no request. */
export function gatewayUrls(written: string | undefined, env: Terminal['env']): readonly string[] {
  const named = written ?? (env.STAGEDOOR_URL || undefined);
  return named === undefined ? DEFAULT_URLS : [checkedUrl(named, written === undefined)];
}

/** The first of these addresses at which a gateway answers. Nothing is sent to a program that does not answer like one. */
export async function seekGateway(
  env: Terminal['env'],
  fetcher: typeof fetch = fetch,
  urls: readonly string[] = DEFAULT_URLS,
): Promise<Remote | undefined> {
  for (const url of urls) {
    if (await answersAsGateway(url, LOOK_MS, fetcher)) {
      return remoteAt(url, requestCredentials(url, env), fetcher);
    }
  }
  return undefined;
}

/** Where something that listens on this address is reached from this machine. */
export function localUrl(host: string, port: number): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

/** Whether a gateway answers at this address within the time in ms. Sends no secret. */
export async function answersAsGateway(
  url: string,
  timeoutMs: number,
  fetcher: typeof fetch = fetch,
): Promise<boolean> {
  try {
    const remote = remoteAt(url, NO_CREDENTIALS, fetcher);
    return 'build' in fields(await remote.look('/gateway/health', { timeoutMs }));
  } catch (error) {
    // Nothing there, or some other program.
    if (error instanceof CommandFailure) return false;
    throw error;
  }
}

const NO_CREDENTIALS: RequestCredentials = { headers: {}, refused: (detail) => new NotLoggedIn(detail) };

function remoteAt(url: string, credentials: RequestCredentials, fetcher: typeof fetch): Remote {
  const send = async (path: string, request: RemoteRequest) => {
    const { method = 'GET', timeoutMs = 10_000 } = request;
    try {
      const response = await fetcher(url + path, {
        method,
        signal: AbortSignal.timeout(timeoutMs),
        // A token is for this gateway, not for the target of a redirect.
        redirect: 'error',
        ...contentOf(request, credentials),
      });
      return { response, text: await response.text() };
    } catch (error) {
      throw unreachable(url, timeoutMs, error);
    }
  };
  const ask = async (path: string, request: RemoteRequest = {}): Promise<Answered> => {
    const { response, text } = await send(path, request);
    const { status } = response;
    if (status === 204) return { status, body: undefined };
    const body = parseAnswer(url, status, text);
    if (status === 401 && request.form === undefined) throw credentials.refused(reasonsOf(body));
    if (!response.ok) throw refused(response, body);
    return { status, body };
  };
  const follow = async (
    path: string,
    { method = 'GET', text, after, signal }: StreamRequest,
    onEvent: (event: RemoteEvent) => void,
  ): Promise<void> => {
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const headers = {
      ...credentials.headers,
      Accept: 'text/event-stream',
      ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(after === undefined ? {} : { 'Last-Event-ID': after }),
    };
    let hasBegun = false;
    try {
      const signals = [silence.signal, ...(signal === undefined ? [] : [signal])];
      const body = text === undefined ? {} : { body: text };
      const ended = { signal: AbortSignal.any(signals), redirect: 'error' } as const;
      const response = await fetcher(url + path, { method, headers, ...body, ...ended });
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
      if (!isStream || response.body === null) {
        const answer = parseAnswer(url, response.status, await response.text());
        if (response.status === 401) throw credentials.refused(reasonsOf(answer));
        throw response.ok
          ? new CommandFailure(`${url} answered ${path} without an event stream`)
          : refused(response, answer);
      }
      hasBegun = true;
      await readEvents(
        response.body,
        () => timer.refresh(),
        (event) => {
          if (event.name === 'error') throw refusedInStream(event.data);
          onEvent(event);
        },
      );
    } catch (error) {
      if (error instanceof CommandFailure) throw error;
      if (signal?.aborted) return;
      if (!hasBegun && !silence.signal.aborted) throw unreachable(url, SILENCE_MS, error);
      throw new StreamBroken(`lost the connection to ${url}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    url,
    ask,
    follow,
    request: async (path, request) => (await ask(path, request)).body,
    look: async (path, request = {}) => {
      const { response, text } = await send(path, request);
      const answer = parseAnswer(url, response.status, text);
      if (!response.ok && !(response.status === 503 && 'status' in answer)) throw refused(response, answer);
      return answer;
    },
  };
}

function contentOf({ body, form }: RemoteRequest, { headers }: RequestCredentials): RequestInit {
  if (form !== undefined) return { body: new URLSearchParams(form) };
  if (body === undefined) return { headers };
  return { body: JSON.stringify(body), headers: { ...headers, 'Content-Type': 'application/json' } };
}

function checkedUrl(text: string, isFromEnvironment: boolean): string {
  const where = isFromEnvironment ? 'STAGEDOOR_URL' : '--url';
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${where} must be a URL such as ${DEFAULT_URLS[0]}, not "${text}"`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

function parseAnswer(url: string, status: number, text: string): object {
  try {
    const answer: unknown = JSON.parse(text);
    if (typeof answer === 'object' && answer !== null) return answer;
  } catch {
    // Reported below: a program that answers in something else than JSON is no gateway.
  }
  throw new CommandFailure(`${url} is not a gateway: its answer (status ${status}) is not JSON`);
}

/** The gateway's error body as one line. Its request id is for readers of the log and is left out. */
function refused({ status, headers }: Response, answer: object): GatewayRefusal {
  const { error_code: code } = fields(answer);
  const waitSeconds = status === 429 ? /^\d{1,6}$/.exec(headers.get('Retry-After') ?? '')?.[0] : undefined;
  const advice = waitSeconds === undefined ? '' : `; try again in ${waitSeconds} s`;
  const named = typeof code === 'string' ? code : undefined;
  return new GatewayRefusal(`${reasonsOf(answer)}${advice} (${named ?? `status ${status}`})`, named);
}

/** The same for an error that comes in a stream, where there is no status. */
function refusedInStream(data: string): GatewayRefusal {
  const answer = fields(JSON.parse(data));
  const { error_code: code } = answer;
  return new GatewayRefusal(`${reasonsOf(answer)} (${code})`, typeof code === 'string' ? code : undefined);
}

function reasonsOf(answer: object): string {
  const { detail } = fields(answer);
  const reason = Array.isArray(detail)
    ? detail.map(issueText).join('; ')
    : String(detail ?? 'no reason given');
  return reason.replace(/\.$/, '');
}

function unreachable(url: string, timeoutMs: number, error: unknown): CommandFailure {
  const options = { cause: error };
  if (!(error instanceof Error)) return new CommandFailure(`${url} cannot be reached`, options);
  if (error.name === 'TimeoutError') {
    return new CommandFailure(`${url} did not answer within ${timeoutMs / 1000} s`, options);
  }
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = 'code' in cause ? cause.code : undefined;
  if (code === 'ECONNREFUSED') {
    return new CommandFailure(
      `nothing listens at ${url}; start a gateway with "${ownCommand('gateway start')}"`,
      options,
    );
  }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    const plain = url.replace(/^https:/, 'http:');
    return new CommandFailure(
      `${url} cannot be reached: it does not speak TLS; is its URL ${plain}?`,
      options,
    );
  }
  const reason = CLIENT_REFUSALS[cause.message] ?? (cause.message.trim() || String(code));
  return new CommandFailure(`${url} cannot be reached: ${reason}`, options);
}

/** Errors of the HTTP client itself have no code, only these messages. */
const CLIENT_REFUSALS: Readonly<Record<string, string>> = {
  'bad port': 'its port is one that HTTP clients refuse, because other protocols use it; choose another',
  'unexpected redirect': 'it redirects to another address, which is not followed',
};

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
async function readEvents(
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
