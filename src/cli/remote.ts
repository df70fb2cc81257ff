// Speaks to a running gateway over HTTP for the commands that manage one. It finds the gateway, waits a bounded time and
// turns every failure into one line that says what to do. What the answers mean is the command's business.

import { CommandFailure, UsageError } from './failures.ts';

/** Where a gateway listens when nobody said otherwise: first the port of surface A, then that of surface B. */
export const DEFAULT_URLS = ['http://127.0.0.1:8080', 'http://127.0.0.1:8000'] as const;

/** What a request may carry. */
export interface RemoteRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Longest wait for the whole answer, in ms. Default 10 000. */
  readonly timeoutMs?: number;
}

/** What came back: its status, and the parsed body, undefined for 204. */
export interface Answered {
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
  look(path: string): Promise<unknown>;
}

/** An object of an answer, read field by field: nothing is assumed about a gateway of another version. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object; an empty one when it is none. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/** The instance records of a registry answer, in its order. */
export function instancesOf(registry: unknown): readonly Fields[] {
  return Object.values(fields(fields(registry).templates)).flatMap((template) => {
    const { instances } = fields(template);
    return Array.isArray(instances) ? instances.map(fields) : [];
  });
}

/** Why an instance is not healthy, to be used inside a sentence; empty when nothing is said. */
export function reasonOf({ reason }: Fields): string {
  return typeof reason === 'string' ? reason.replace(/\.$/, '') : '';
}

/** Finds the gateway: `--url`, else STAGEDOOR_URL, else the default that answers. Throws when none does. */
export async function findGateway(
  written: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  fetcher: typeof fetch = fetch,
): Promise<Remote> {
  const named = written ?? (env.STAGEDOOR_URL || undefined);
  if (named !== undefined) return remoteAt(checkedUrl(named, written === undefined), fetcher);
  for (const url of DEFAULT_URLS) {
    const remote = remoteAt(url, fetcher);
    if (await isGateway(remote)) return remote;
  }
  throw new CommandFailure(
    `no gateway answers at ${DEFAULT_URLS.join(' or ')}; start one with "stagedoor gateway start" or name it with --url`,
  );
}

function remoteAt(url: string, fetcher: typeof fetch): Remote {
  const send = async (path: string, { method = 'GET', body, timeoutMs = 10_000 }: RemoteRequest) => {
    try {
      const response = await fetcher(url + path, {
        method,
        signal: AbortSignal.timeout(timeoutMs),
        redirect: 'error',
        ...(body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
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
    if (!response.ok) throw refused(status, body);
    return { status, body };
  };
  return {
    url,
    ask,
    request: async (path, request) => (await ask(path, request)).body,
    look: async (path) => {
      const { response, text } = await send(path, {});
      const answer = parseAnswer(url, response.status, text);
      if (!response.ok && !(response.status === 503 && 'status' in answer))
        throw refused(response.status, answer);
      return answer;
    },
  };
}

async function isGateway(remote: Remote): Promise<boolean> {
  try {
    return 'build' in fields(await remote.look('/gateway/health'));
  } catch (error) {
    // Nothing there, or some other program: the next address may be it, and if none is, the caller says so.
    if (error instanceof CommandFailure) return false;
    throw error;
  }
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
    // Said below: whoever answers in something else than JSON is no gateway.
  }
  throw new CommandFailure(`${url} answers (status ${status}), but not as a gateway does`);
}

/** The gateway's error body as one line. Its request id is for those who read the log, not for those who type. */
function refused(status: number, answer: object): CommandFailure {
  const { detail, error_code: code } = fields(answer);
  const reason = Array.isArray(detail) ? detail.map(finding).join('; ') : String(detail ?? 'no reason given');
  return new CommandFailure(`${reason.replace(/\.$/, '')} (${code ?? `status ${status}`})`);
}

/** What names may look like, for people: the gateway tells the regular expression. */
const NAME_RULES: Readonly<Record<string, string>> = {
  template_name: 'a template name is lower-case letters, digits and hyphens, starting with a letter',
  id: 'an instance id is letters, digits, dots, hyphens and underscores, starting with a letter or a digit',
};

function finding(item: unknown): string {
  const { loc, msg, type } = fields(item);
  const path = Array.isArray(loc) ? loc.map(String) : ['request'];
  const rule = type === 'string_pattern_mismatch' ? NAME_RULES[path.at(-1) ?? ''] : undefined;
  return rule ?? `${path.join('.')}: ${String(msg)}`;
}

function unreachable(url: string, timeoutMs: number, error: unknown): CommandFailure {
  const options = { cause: error };
  if (!(error instanceof Error)) return new CommandFailure(`${url} cannot be asked`, options);
  if (error.name === 'TimeoutError') {
    return new CommandFailure(`${url} did not answer within ${timeoutMs / 1000} s`, options);
  }
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = 'code' in cause ? cause.code : undefined;
  if (code === 'ECONNREFUSED') {
    return new CommandFailure(
      `nothing listens at ${url}; start a gateway with "stagedoor gateway start"`,
      options,
    );
  }
  return new CommandFailure(`${url} cannot be reached: ${cause.message || String(code)}`, options);
}
