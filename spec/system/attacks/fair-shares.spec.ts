// One API key whose slow calls use the whole capacity of an instance, over a real gateway: calls of other keys and health
// checks still succeed. Figures are printed. Source: ADR 41.

import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { type Caller, caller, newKey } from '../../helpers/caller.ts';
import { eventually } from '../../helpers/eventually.ts';
import { register, startGuarded } from '../../helpers/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';
import { figuresOf } from './attack.ts';

const test = suite('fair shares of a template', { timeoutMs: 240_000 });
/** Longer than a request without waiting takes on any machine, in ms. */
const GENEROUS_MS = 4_000;

test('let calls of other keys and health checks succeed quickly while one key uses the whole capacity', async () => {
  const backend = await startHttpServer({ answers: 'sse' });
  const harness = await startGuarded();
  const { admin, url } = harness;
  const greedy = new AbortController();
  try {
    await register(admin, 't', [{ id: 'one', endpoint: backend.url }]);
    const { headers: mine } = await newKey(admin, 'mine');
    for (let call = 0; call < 600; call += 1) void slowCall(url, mine, greedy.signal);
    await placesAreHeld(admin);
    const figures: Record<string, object> = {};
    for (const name of ['other', 'third']) {
      const calls = caller(url, (await newKey(admin, name)).headers);
      const echo = () => calls('POST /mcp/t/tools/call', { name: 'echo', arguments: { text: 'hello' } });
      const took: number[] = [];
      for (let call = 0; call < 50; call += 1) took.push(await timed(echo));
      took.push(...(await Promise.all(Array.from({ length: 64 }, () => timed(echo)))));
      figures[name] = figuresOf(took);
    }
    for (const path of ['/livez', '/readyz', '/health']) {
      const took: number[] = [];
      for (let time = 0; time < 20; time += 1) took.push(await timed(() => caller(url)(`GET ${path}`)));
      figures[path] = figuresOf(took);
    }
    await placesAreHeld(admin);
    process.stdout.write(`${JSON.stringify(figures)}\n`);
  } finally {
    greedy.abort();
    await harness.remove();
    await backend.close();
  }
});

test.run();

/** A call that reports progress for ten minutes. It is aborted at the end of the test, or refused before. */
async function slowCall(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<void> {
  const body = JSON.stringify({ name: 'progress', arguments: { steps: 600, ms: 1_000 } });
  const types = { 'Content-Type': 'application/json', Accept: 'text/event-stream' };
  await fetch(`${url}/mcp/t/tools/call`, { method: 'POST', headers: { ...headers, ...types }, body, signal })
    .then((response) => response.text())
    .catch(() => undefined);
}

/** Waits until the instance is at capacity. */
async function placesAreHeld(admin: Caller): Promise<void> {
  const count = async () => Number(Object((await admin('GET /mcp/t/health')).body).instances?.one?.in_flight);
  const reached = await eventually(count, (now) => now >= 256);
  assert.ok(reached >= 256, `${reached} are in flight`);
}

/** How long a request took; fails when it was not answered with 200, or took too long. */
async function timed(ask: () => ReturnType<Caller>): Promise<number> {
  const { status, body, tookMs } = await ask();
  assert.is(status, 200, JSON.stringify(body));
  assert.ok(tookMs < GENEROUS_MS, `it took ${tookMs} ms`);
  return tookMs;
}
