// Requests to the gateway. Each carries the header that makes the session cookie valid, which a foreign page
// cannot send. An answer 401 ends the session; the page stays and asks for sign-in.

import { signal } from '@preact/signals';
import { readJson } from './json.ts';

/** The script is in `console/assets/` (in development in `console/src/`), also behind a path prefix of a proxy. */
const script = import.meta.url;
const GATEWAY = new URL('../../', script);
export const CONSOLE = new URL('../', script);

const CONSOLE_HEADER = { 'X-Stagedoor-Console': '1' };

/** Incremented by each answer 401 of the present session. */
export const refusals = signal(0);
let session = 0;

/** Begins a session: the refusal of an earlier request is none of it. */
export function beginSession(): void {
  session += 1;
}

/** A refusal of the gateway, or no answer at all (status 0). */
export class ApiError extends Error {
  readonly status: number;
  /** `error_code` of the answer; empty when there was none. */
  readonly code: string;
  /** The faults of a refused body, with their places. */
  readonly issues: readonly Issue[];

  constructor(message: string, status: number, code = '', issues: readonly Issue[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.issues = issues;
  }
}

/** The place in the body, without `body`; and a sentence. */
export interface Issue {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
}

/**
 * The address of a path of the gateway: `mcp/everything`. Names in it may come from the address of the page,
 * which a foreign page can choose: ApiError for a path that leads elsewhere (`mcp/../auth/logout`).
 */
export function urlOf(path: string): string {
  const url = new URL(path, GATEWAY);
  const [written = ''] = path.split('?', 1);
  if (url.origin + url.pathname !== GATEWAY.href + written)
    throw new ApiError(`"${written}" is not a gateway path.`, 0);
  return url.href;
}

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** The request continues when the page is closed. */
  readonly isLeaving?: boolean;
}

/** Sends a request, with a body as JSON; rejects with ApiError unless the answer is a success. */
export async function send(
  method: string,
  path: string,
  body?: unknown,
  { headers = {}, signal: aborted, isLeaving = false }: CallOptions = {},
): Promise<Response> {
  const mine = session;
  const response = await fetch(urlOf(path), {
    method,
    headers: {
      Accept: 'application/json',
      ...CONSOLE_HEADER,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    credentials: 'same-origin',
    cache: 'no-store',
    keepalive: isLeaving,
    body: body === undefined ? null : JSON.stringify(body),
    signal: aborted ?? null,
  }).catch((thrown: unknown) => {
    if (aborted?.aborted) throw thrown;
    throw new ApiError('The gateway does not answer.', 0);
  });
  if (response.ok) return response;
  const error = await errorOf(response);
  if (response.status !== 401 || path === 'auth/login') throw error;
  if (mine === session) refusals.value += 1;
  // The gateway names headers, which are for programs.
  throw new ApiError('The session had ended. Try again.', error.status, error.code);
}

/** GET of a JSON document. The caller names its type; the gateway checks its own answers. */
export async function get<T>(path: string): Promise<T> {
  return readJson(await (await send('GET', path)).text()) as T;
}

/** Any other request. The type is that of the answer; an empty answer is null. */
export async function change<T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  options?: CallOptions,
): Promise<T> {
  const text = await (await send(method, path, body, options)).text();
  return readJson(text === '' ? 'null' : text) as T;
}

/** The options of a change of the version that was read only. */
export function ifMatch(etag: string): CallOptions {
  return { headers: { 'If-Match': `"${etag}"` } };
}

/** True when a change with `ifMatch` was refused. */
export function isOutdated(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.code === 'PRECONDITION_FAILED';
}

/** The text of an error for display. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The gateway names them by their ids; here they were chosen by their names, and were deleted meanwhile. */
const GONE: Readonly<Record<string, string>> = {
  USER_NOT_FOUND: 'The user no longer exists.',
  API_KEY_NOT_FOUND: 'The API key no longer exists.',
};

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  const body = parsed(text);
  const { detail, error_code: code = '', error } = Object(body);
  if (Array.isArray(detail)) {
    const issues = detail.map(({ loc, msg }: Issue) => ({ loc: loc.slice(1), msg }));
    const texts = issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
    return new ApiError(texts.join('; '), response.status, code, issues);
  }
  const message =
    GONE[String(code)] ??
    detail ??
    Object(error).message ??
    `The gateway answers with status ${response.status}.`;
  return new ApiError(String(message), response.status, String(code));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a proxy in between answers with a page
  }
}
