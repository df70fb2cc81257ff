// Calls a running gateway the way the journeys do: bounded, over real HTTP.

import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import * as assert from 'uvu/assert';
import { caller } from './caller.ts';

/** What came back. `body` is parsed JSON. */
export interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** GET of a path. */
export async function get(url: string, path: string): Promise<Reply> {
  const { status, body } = await caller(url)(`GET ${path}`);
  return { status, body: Object(body) };
}

/** A tools/call by template. */
export async function callTool(
  url: string,
  template: string,
  tool: string,
  values: object = {},
): Promise<Reply> {
  const call = { name: tool, arguments: values };
  const { status, body } = await caller(url)(`POST /mcp/${template}/tools/call`, call);
  return { status, body: Object(body) };
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

/** Asks again until this is the answer; fails when it is another one after the time. */
export async function becomes<T>(ask: () => T | Promise<T>, wanted: T, withinMs?: number): Promise<void> {
  const isIt = (answer: T): boolean => isDeepStrictEqual(answer, wanted);
  assert.equal(await eventually(async () => ask(), isIt, withinMs), wanted);
}

/** Asks again until the answer has this status; fails with the last one when the time is over. */
export async function comesTo<T extends { readonly status: number; readonly body: unknown }>(
  status: number,
  ask: () => Promise<T>,
  withinMs?: number,
): Promise<T> {
  const answer = await eventually(ask, (one) => one.status === status, withinMs);
  assert.is(answer.status, status, JSON.stringify(answer.body));
  return answer;
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
