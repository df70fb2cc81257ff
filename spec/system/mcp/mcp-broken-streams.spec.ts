// Real HTTP servers that numbered the events of a call, and whose connection breaks in the middle of it: they are killed, or
// it is only the connection.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { filter, firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { Answer } from '../../../src/domain/exchange.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { createGateway, type Gateway } from '../../../src/gateway.ts';
import { until } from '../../conformance/transport.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { serverLine } from '../../helpers/server-line.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: broken streams', { timeoutMs: 30_000 });
const SERVER = fileURLToPath(new URL('../../fixtures/http-server.ts', import.meta.url));
const ARGS = [SERVER, '--era=legacy', '--answers=sse', '--sse=ids,priming,early'];
/** Far less than eight attempts to go on take, and than the interval of probes. */
const SOON_MS = 5_000;

let gateway: Gateway;
let children: ChildProcess[];

test.before.each(async () => {
  children = [];
  gateway = await createGateway({ graceMs: 0 });
});
test.after.each(async () => {
  await gateway.close();
  await Promise.all(children.map(killed));
});

test('a server that is killed fails its call, and is unhealthy, at once', async () => {
  const child = await start('a');
  const down = unhealthy();
  const call = outcomeOf('count', { ms: 60_000 });
  await underWay('a');
  const killedAt = performance.now();
  await killed(child);
  assert.equal(await call, ['BACKEND_UNAVAILABLE', 'unknown', undefined]);
  assert.is((await down).reason, 'connection refused');
  assert.ok(performance.now() - killedAt < SOON_MS);
});

test('a call that may be made twice is made again elsewhere', async () => {
  const child = await start('a');
  await start('b');
  gateway.drain('t', 'b');
  const call = outcomeOf('sleep', { ms: 200 });
  await underWay('a');
  gateway.resume('t', 'b');
  await killed(child);
  assert.is(await call, 'b');
});

test('a server whose connection only broke is asked for the rest, probed, and stays healthy', async () => {
  const server = await startEverything({ era: 'legacy' });
  const line = await serverLine(server.url);
  try {
    await register('a', { endpoint: line.url });
    await delay(LIMITS.promptedProbeMs); // so that a doubt is worth a probe
    const probed = gateway.stats().probes.total;
    const heard: string[] = [];
    const states: string[] = [];
    gateway.events$.pipe(filter(({ type }) => type.startsWith('instance.'))).subscribe(({ type }) => {
      states.push(type);
    });
    const params = { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'x' } };
    await gateway.exchange('t', { method: 'tools/call', params }).forEach(({ event }: Answer) => {
      if (heard.length === 0) line.break();
      heard.push(event.kind);
    });
    assert.is(heard.at(-1), 'result');
    assert.not(heard.includes('interrupted'), 'it did not ask to be polled');
    await until(() => gateway.stats().probes.total > probed, 'it was probed');
    assert.equal([gateway.stats().probes.passed, states], [gateway.stats().probes.total, []]);
  } finally {
    await gateway.close();
    await line.close();
    await server.close();
  }
});

test.run();

/** Starts a program and registers it. */
async function start(id: string): Promise<ChildProcess> {
  const { child, endpoint } = await launched();
  await register(id, { endpoint });
  return child;
}

async function launched(): Promise<{ readonly child: ChildProcess; readonly endpoint: string }> {
  const child = spawn(process.execPath, ARGS, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, endpoint: `http://127.0.0.1:${String(line).split(' ')[1]}/mcp` };
}

/** Registers an instance and waits until its tools are known. */
async function register(id: string, how: { endpoint: string; command?: string; args?: string[] }) {
  await gateway.register('t', { id, ...how }, { waitMs: 20_000 });
  await gateway.list('t', 'tools', { instanceId: id });
}

/** The stream of the call before has begun: what was said on it was said before this answer. */
async function underWay(id: string): Promise<void> {
  await gateway.call('t', 'echo', { text: 'x' }, { instanceId: id });
  await turn();
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

function unhealthy() {
  return firstValueFrom(gateway.on('instance.unhealthy'));
}

/** Who answered a call, or the code, `delivered` and the seconds to wait of its error. */
async function outcomeOf(tool: string, args: JsonObject): Promise<unknown> {
  try {
    return (await gateway.call('t', tool, args, { timeoutMs: 60_000 })).instanceId;
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    return [thrown.code, thrown.delivered, thrown.facts.retryAfterSeconds];
  }
}
