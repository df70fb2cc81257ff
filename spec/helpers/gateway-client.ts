// Calls a running gateway the way the journeys do: bounded, over real HTTP.

import { setTimeout as delay } from 'node:timers/promises';

/** What came back. `body` is parsed JSON. */
export interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** GET of a path. */
export function get(url: string, path: string): Promise<Reply> {
  return send(url, path);
}

/** A tools/call by template. Rejects when it takes longer than `withinMs`. */
export function callTool(
  url: string,
  template: string,
  tool: string,
  values: object = {},
  withinMs = 30_000,
): Promise<Reply> {
  const body = JSON.stringify({ name: tool, arguments: values });
  return send(url, `/mcp/${template}/tools/call`, { method: 'POST', body, withinMs });
}

/** The same as an event stream: all of its text, once it has ended. */
export async function follow(url: string, template: string, tool: string, values: object): Promise<string> {
  const response = await fetch(`${url}/mcp/${template}/tools/call`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ name: tool, arguments: values }),
    signal: AbortSignal.timeout(30_000),
  });
  return response.text();
}

/** The text of a tool result. */
export function textOf({ body }: Reply): string {
  const [part] = Array.isArray(body.content) ? body.content : [];
  return String(part?.text);
}

/** Asks again until the answer is as wanted; the last answer when the time is over. */
export async function eventually<T>(
  ask: () => Promise<T>,
  isWanted: (answer: T) => boolean,
  withinMs = 30_000,
): Promise<T> {
  const giveUpAtMs = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (isWanted(answer) || performance.now() >= giveUpAtMs) return answer;
    await delay(20);
  }
}

async function send(
  url: string,
  path: string,
  options: { method?: string; body?: string; withinMs?: number } = {},
): Promise<Reply> {
  const { method = 'GET', body, withinMs = 30_000 } = options;
  const response = await fetch(url + path, {
    method,
    signal: AbortSignal.timeout(withinMs),
    ...(body === undefined ? {} : { body, headers: { 'Content-Type': 'application/json' } }),
  });
  return { status: response.status, body: Object(await response.json()) };
}
