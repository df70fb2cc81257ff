// Sends requests to a gateway over real HTTP, with credentials. Every request has a timeout; the answer has its duration.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; undefined when there was none. */
  readonly body: unknown;
  readonly tookMs: number;
}

/** Makes `GET /health`, or with a body `POST /gateway/register`. Rejects when there is no answer in time. */
export type Caller = (request: string, body?: object) => Promise<Answer>;

/** A caller with these headers; anonymous without any. */
export function caller(
  url: string,
  credentials: Readonly<Record<string, string>> = {},
  timeoutMs = 30_000,
): Caller {
  return async (request, body) => {
    const [method = '', path] = request.split(' ');
    const startMs = performance.now();
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...credentials, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    const { status, headers } = response;
    return {
      status,
      headers,
      body: text === '' ? undefined : JSON.parse(text),
      tookMs: performance.now() - startMs,
    };
  };
}

/** A tools/call by template. */
export function callTool(call: Caller, template: string, name: string, values: object = {}): Promise<Answer> {
  return call(`POST /mcp/${template}/tools/call`, { name, arguments: values });
}

/** Repeats each of these requests, one at a time each, until `stop` is called. */
export function repeatRequests(questions: readonly (() => Promise<Answer>)[]): {
  readonly answers: readonly Answer[];
  stop(): Promise<readonly Answer[]>;
} {
  const answers: Answer[] = [];
  let isOver = false;
  const work = questions.map(async (ask) => {
    while (!isOver) {
      answers.push(await ask());
      await delay(20); // leaves processor time to others
    }
  });
  // A failed test does not await them.
  for (const asking of work) asking.catch(() => undefined);
  return {
    answers,
    stop: async () => {
      isOver = true;
      await Promise.all(work);
      return answers;
    },
  };
}

/** Logs in and returns the headers of the token. Fails when the login does. */
export async function tokenOf(
  url: string,
  username: string,
  password: string,
): Promise<{ readonly Authorization: string }> {
  const login = await caller(url)('POST /auth/login', { username, password });
  assert.is(login.status, 200, JSON.stringify(login.body));
  return { Authorization: `Bearer ${field(login, 'access_token')}` };
}

/** Creates an API key and returns its headers and its id. Fails when the request does. */
export async function newKey(
  admin: Caller,
  name: string,
  permissions = ['gateway:read', 'tools:call'],
): Promise<{ readonly id: string; readonly headers: { readonly 'X-API-Key': string } }> {
  const made = await admin('POST /auth/api-keys', { name, permissions });
  assert.is(made.status, 201, JSON.stringify(made.body));
  return { id: String(field(made, 'id')), headers: { 'X-API-Key': String(field(made, 'key')) } };
}

/** One field of an answer's body. */
export function field({ body }: Answer, name: string): unknown {
  return Object(body)[name];
}

/** Status and error code. */
export function statusAndCode(answer: Answer): readonly [number, unknown] {
  return [answer.status, field(answer, 'error_code')];
}

/** The text of a tool result, from REST or from MCP. */
export function toolText({ body }: Answer): string {
  const { result = body } = Object(body);
  return String(Object(result).content?.[0]?.text);
}

/** The fields of an instance record that specs use. */
export interface Listed {
  readonly id: string;
  readonly state: string;
  readonly healthy: boolean;
  readonly weight: number;
  readonly reason: string | null;
  readonly node_id: string | null;
}

/** All instances in the registry of a gateway, by `template/id`, sorted. */
export async function listed(call: Caller): Promise<Readonly<Record<string, Listed>>> {
  const registry = await call('GET /gateway/registry');
  assert.is(registry.status, 200, JSON.stringify(registry.body));
  // GET /gateway/registry, as its schema says.
  const templates = field(registry, 'templates') as Record<string, { instances: readonly Listed[] }>;
  return Object.fromEntries(
    Object.entries(templates)
      .flatMap(([template, { instances }]) =>
        instances.map((instance) => [`${template}/${instance.id}`, instance] as const),
      )
      .toSorted(([one], [other]) => (one < other ? -1 : 1)),
  );
}
