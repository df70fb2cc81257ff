// The end of a gateway with calls in flight: stopped, stopped at once, after an uncaught error, killed; and no process is left.
// A backend that is killed: spec/gateway/close.spec.ts.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { httpServerPath, stdioServerPath } from '../../fixtures/programs.ts';
import { type Caller, caller, callTool, field, toolText } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/programs/processes.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: lifecycle', { timeoutMs: 60_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);
const stubborn = '--ignore-stdin-end --ignore-sigterm --spawn-grandchild';
let gateway: Program;
test.after.each(() => gateway.remove());

needsProcesses('finishes calls in flight after SIGTERM and leaves no process', async () => {
  const who = await begin();
  await register('stubborn', 'one', stubborn);
  await register('polite', 'one', '');
  assert.is(gateway.descendants().length, 3, 'two children and a grandchild');
  const calls = ['stubborn', 'polite'].map((template) => callTool(who, template, 'sleep', { ms: 1_000 }));
  const followed = follow(await gateway.url());
  await inFlight(who, 3);

  gateway.signal('SIGTERM');
  assert.equal((await Promise.all(calls)).map(toolText), ['slept 1000', 'slept 1000']);
  assert.match(await followed, 'did 4 steps');
  assert.equal(await gateway.end(20_000), { code: 0, signal: null });
  assert.equal(await gateway.survivors(), []);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  needsProcesses(`kills everything at once after a second ${signal}`, async () => {
    const who = await begin();
    await register('stubborn', 'one', stubborn);
    // Its program ends with its input and leaves a process behind.
    await register('leaving', 'one', '--ignore-sigterm --spawn-grandchild');
    const call = callTool(who, 'stubborn', 'sleep', { ms: 60_000 }).catch((error: unknown) => error);
    await inFlight(who, 1);
    gateway.signal(signal);
    await gateway.sees(/stopping after/);
    await delay(600); // later than a single Ctrl-C that arrives twice
    gateway.signal(signal);
    assert.equal(await gateway.end(), { code: null, signal });
    assert.equal(await gateway.survivors(1_500), [], 'the reaper waits longer');
    assert.instance(await call, Error);
  });
}

needsProcesses('exits with 1 and leaves no process after an uncaught error', async () => {
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

needsProcesses('leaves no process even when it is killed', async () => {
  await begin();
  await register('stubborn', 'one', stubborn);
  const port = await freePort();
  const { code, err } = await gateway.run(
    ...['instance', 'register', 'managed', '--id', 'one', '--wait', '20'],
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

async function begin(): Promise<Caller> {
  gateway = new Program(['gateway', 'start', '--port', '0']);
  return caller(await gateway.url());
}

/** Registers a fixture by the command line and waits until it is healthy. */
async function register(template: string, id: string, flags: string): Promise<void> {
  const words = flags.split(' --').map((flag, index) => (index === 0 ? flag : `--${flag}`));
  const command = [process.execPath, stdioServerPath, ...words].filter(Boolean).map((word) => `'${word}'`);
  const { code, err } = await gateway.run(
    ...['instance', 'register', template, '--id', id, '--wait', '20', '--command', command.join(' ')],
  );
  assert.is(code, 0, err);
}

async function inFlight(who: Caller, wanted: number): Promise<void> {
  await becomes(async () => field(await who('GET /gateway/stats'), 'active_connections'), wanted);
}

/** A call whose answer is an event stream: all of its text, once it has ended. */
async function follow(url: string): Promise<string> {
  const response = await fetch(`${url}/mcp/polite/tools/call`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ name: 'progress', arguments: { steps: 4, ms: 250 } }),
  });
  return response.text();
}
