// The life of a gateway and its backends: registered, used, killed, come back, stopped; and nothing is left behind.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { freePort } from '../../../src/cli/demo-servers.ts';
import { httpServerPath, stdioServerPath } from '../../fixtures/programs.ts';
import { becomes, callTool, follow, get, type Reply, textOf } from '../../helpers/gateway-client.ts';
import { canFindDescendants, Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: lifecycle', { timeoutMs: 60_000 });
const needsProcesses = test.needs(canFindDescendants, 'descendants are found through /proc, which is Linux');
const stubborn = '--ignore-stdin-end --ignore-sigterm --spawn-grandchild';
let gateway: Program;
test.after.each(() => gateway.remove());

test('answers every call when a child is killed under 200 of them, and brings it back', async () => {
  await begin();
  const url = await gateway.url();
  await register('pair', 'one', '');
  await register('pair', 'two', '');
  const { one } = await pidsOf(url, 'pair');

  const calls = Array.from({ length: 200 }, (_, index) =>
    callTool(url, 'pair', index % 2 === 0 ? 'count' : 'sleep', { ms: 1_500 }),
  );
  await inFlight(url, 200);
  process.kill(Number(one), 'SIGKILL');

  const codes = (await Promise.all(calls)).map(codeOf);
  assert.equal(
    codes.filter((code) => code !== '200' && code !== '503 BACKEND_UNAVAILABLE'),
    [],
  );
  assert.ok(codes.filter((code) => code === '200').length >= 100, 'the other instance answers its share');
  assert.ok(codes.includes('503 BACKEND_UNAVAILABLE'), 'what may not be repeated is not');

  await becomes(async () => (await get(url, '/mcp/pair/health')).body.healthy_instances, 2);
  assert.is.not((await pidsOf(url, 'pair')).one, one);
});

needsProcesses('finishes calls in flight after SIGTERM and leaves no process behind', async () => {
  await begin();
  const url = await gateway.url();
  await register('stubborn', 'one', stubborn);
  await register('polite', 'one', '');
  assert.is(gateway.descendants().length, 3, 'two children and a grandchild');
  const calls = ['stubborn', 'polite'].map((template) => callTool(url, template, 'sleep', { ms: 1_000 }));
  const followed = follow(url, 'polite', 'progress', { steps: 4, ms: 250 });
  await inFlight(url, 3);

  gateway.signal('SIGTERM');
  assert.equal((await Promise.all(calls)).map(textOf), ['slept 1000', 'slept 1000']);
  assert.match(await followed, 'did 4 steps');
  assert.equal(await gateway.end(20_000), { code: 0, signal: null });
  assert.equal(await gateway.survivors(), []);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  needsProcesses(`kills everything at once after a second ${signal}`, async () => {
    await begin();
    const url = await gateway.url();
    await register('stubborn', 'one', stubborn);
    const call = callTool(url, 'stubborn', 'sleep', { ms: 60_000 }).catch((error: unknown) => error);
    await inFlight(url, 1);
    gateway.signal(signal);
    await gateway.sees(/stopping after/);
    await delay(600); // later than one Ctrl-C that arrives twice
    gateway.signal(signal);
    assert.equal(await gateway.end(), { code: null, signal });
    assert.equal(await gateway.survivors(), []);
    assert.instance(await call, Error);
  });
}

needsProcesses('stops in order when a defect of its own surfaces', async () => {
  const defect = 'process.on("SIGUSR2", () => { throw new Error("a defect on purpose"); })';
  gateway = new Program(['gateway', 'start', '--port', '0'], {
    env: { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(defect)}"` },
  });
  await gateway.url();
  await register('stubborn', 'one', stubborn);
  gateway.signal('SIGUSR2');
  assert.equal(await gateway.end(20_000), { code: 1, signal: null });
  assert.match(gateway.err, 'a defect on purpose');
  assert.equal(await gateway.survivors(), []);
});

needsProcesses('leaves nothing behind even when it is killed', async () => {
  await begin();
  await gateway.url();
  await register('stubborn', 'one', stubborn);
  const port = await freePort();
  const { code, err } = await gateway.run(
    ...['gateway', 'register', 'managed', '--id', 'one', '--wait', '20'],
    ...['--endpoint', `http://127.0.0.1:${port}/mcp`],
    ...['--command', `'${process.execPath}' '${httpServerPath}' --port=${port}`],
  );
  assert.is(code, 0, err);
  assert.is(gateway.descendants().length, 3, 'two children and a grandchild');
  gateway.signal('SIGKILL');
  assert.equal(await gateway.end(), { code: null, signal: 'SIGKILL' });
  assert.equal(await gateway.survivors(15_000), []);
});

test.run();

async function begin(...words: string[]): Promise<void> {
  gateway = new Program(['gateway', 'start', '--port', '0', ...words]);
  await gateway.url();
}

/** Registers a fixture by the command line and waits until it is healthy. */
async function register(template: string, id: string, flags: string): Promise<void> {
  const words = flags.split(' --').map((flag, index) => (index === 0 ? flag : `--${flag}`));
  const command = [process.execPath, stdioServerPath, ...words].filter(Boolean).map((word) => `'${word}'`);
  const { code, err } = await gateway.run(
    ...['gateway', 'register', template, '--id', id, '--wait', '20', '--command', command.join(' ')],
  );
  assert.is(code, 0, err);
}

async function inFlight(url: string, wanted: number): Promise<void> {
  await becomes(async () => (await get(url, '/gateway/stats')).body.active_connections, wanted);
}

/** Process ids by instance, as the servers say them. */
async function pidsOf(url: string, template: string): Promise<Record<string, string>> {
  const pids: Record<string, string> = {};
  for (const _ of [1, 2]) {
    const body = JSON.stringify({ name: 'pid', arguments: {} });
    const response = await fetch(`${url}/mcp/${template}/tools/call`, {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/json' },
    });
    pids[String(response.headers.get('x-instance-id'))] = textOf({
      status: response.status,
      body: Object(await response.json()),
    });
  }
  return pids;
}

function codeOf({ status, body }: Reply): string {
  return status === 200 ? '200' : `${status} ${body.error_code}`;
}
