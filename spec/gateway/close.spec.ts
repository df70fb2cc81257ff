// The end of a gateway and of its child processes. When a gateway closes, it accepts no new calls, running ones finish within
// the grace time, and then no call, process or open store is left. When a child process crashes, no call hangs, each gets the
// right error, and the child is restarted. Children are real processes.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { filter, firstValueFrom, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { closeParts, composeGateway } from '../../src/gateway/compose.ts';
import { EventBus } from '../../src/gateway/event-bus.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { Readiness } from '../../src/gateway/readiness.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { HeldTool, serving } from '../helpers/backends/function-backend.ts';
import { becomes, until } from '../helpers/eventually.ts';
import { codeOf, errorSummary, rejects } from '../helpers/outcome.ts';
import { descendantsOf, isRunning } from '../helpers/programs/processes.ts';
import { failingStore } from '../helpers/stores/failing-store.ts';
import { suite } from '../helpers/suite.ts';
import { withRawServer } from '../transports/raw-server.ts';

const test = suite('gateway: closing', { timeoutMs: 120_000 });
const WAIT = { waitMs: 60_000 };
const SERVER = fileURLToPath(new URL('../fixtures/stdio-server.ts', import.meta.url));

test('closes right after it was made, and does not close the store', async () => {
  const store = failingStore();
  const gateway = await createGateway({ store });
  await gateway.close();
  assert.equal(store.calls, ['revision', 'instances.list', 'templates.list']);
});

test('keeps no subscription when its store cannot be read at the start, and does not close the store', async () => {
  const store = failingStore();
  store.failing.add('templates.list');
  const changedCallers$ = new Subject<string>();
  await rejects(createGateway({ store, changedCallers$ }), Error, 'templates.list');
  assert.is(changedCallers$.observed, false);
  assert.equal(store.calls, ['revision', 'instances.list', 'templates.list']);
});

test('refuses calls and changes as soon as it starts to close', async () => {
  const gateway = await createGateway();
  const held = new HeldTool();
  await gateway.register('t', { id: 'a', handler: serving({ held: held.body }) }, WAIT);
  const running = gateway.call('t', 'held');
  const silent = { command: `${process.execPath} -e setInterval(_=>_,9)` };
  const waiting = codeOf(gateway.register('t', silent, WAIT));
  await turn();
  assert.is(gateway.phase, 'running');
  const closed = gateway.close();
  assert.is(gateway.phase, 'closing');
  for (const refused of [
    gateway.call('t', 'held'),
    gateway.list('t', 'tools'),
    gateway.register('t', { id: 'b', handler: serving({}) }),
    gateway.deregister('t', 'a'),
    gateway.changeInstance('t', 'a', { weight: 2 }),
    gateway.changeTemplate('t', { timeout: 1 }),
    gateway.importFile({ templates: [{ name: 's', loadBalancer: {} }], entries: [] }),
  ]) {
    assert.is(await codeOf(refused), 'SHUTTING_DOWN');
  }
  held.answer();
  assert.is((await running).instanceId, 'a');
  await closed;
  assert.is(await waiting, 'SHUTTING_DOWN');
  assert.is(await codeOf(gateway.call('t', 'held')), 'SHUTTING_DOWN');
});

test('answers the calls that wait in the queue, and reports the end of each before its events complete', async () => {
  const gateway = await createGateway({ graceMs: 1 });
  const ends = new Set<string>();
  gateway
    .on('call.finished')
    .subscribe(({ call, outcome }) => outcome === 'refused' && ends.add(String(call)));
  const held = new HeldTool();
  for (const id of ['a', 'b', 'c', 'd', 'e'])
    await gateway.register('t', { id, handler: serving({ held: held.body }) }, WAIT);
  const calls = Array.from({ length: 4_000 }, () => codeOf(gateway.call('t', 'held')));
  await turn();
  const [{ queued = 0 } = {}] = gateway.snapshot();
  assert.ok(queued > 100, `${queued} calls wait`);
  await gateway.close();
  const refused = (await Promise.all(calls)).filter(
    (code) => code === 'SHUTTING_DOWN' || code === 'QUEUE_FULL',
  );
  assert.is(ends.size, refused.length);
});

test('lets running calls finish, and answers what is left after the grace with an error', async () => {
  const gateway = await createGateway({ graceMs: 100 });
  const [quick, slow] = [new HeldTool(), new HeldTool()];
  const handler = serving({ quick: quick.body, read: slow.body });
  await gateway.register('t', { id: 'a', handler }, WAIT);
  const [finishes, fails] = [gateway.call('t', 'quick'), codeOf(gateway.call('t', 'read'))];
  await turn();
  const closing = firstValueFrom(gateway.on('gateway.closing'));
  const closed = gateway.close();
  const { calls, graceMs } = await closing;
  assert.equal([calls, graceMs], [2, 100]);
  quick.answer();
  assert.is((await finishes).instanceId, 'a');
  assert.is(await fails, 'BACKEND_UNAVAILABLE');
  await closed;
  assert.is(slow.cancelled, 1);
  assert.is(gateway.stats().activeConnections, 0);
});

test('closes once, with its events in order, and completes the streams', async () => {
  const gateway = await createGateway();
  await gateway.register('t', { id: 'a', handler: serving({}) }, WAIT);
  const received: string[] = [];
  gateway.events$.subscribe({
    next: ({ type }) => received.push(type),
    complete: () => received.push('completed'),
  });
  gateway.health$('t').subscribe({ complete: () => received.push('health completed') });
  await Promise.all([gateway.close(), gateway.close({ graceMs: 0 }), gateway.close()]);
  await gateway.close();
  assert.equal(received, [
    'gateway.closing',
    'instance.draining',
    'instance.stopped',
    'completed',
    'health completed',
  ]);
});

test('ends with the first failure of its parts, once all of them are closed', async () => {
  const events = new EventBus();
  const readiness = new Readiness(() => {}, systemClock);
  const address = { issuer: 'http://gateway.example', isPublic: false };
  const options = { clock: systemClock, backendAccounts: { address } };
  const parts = composeGateway(new MemoryStore(), options, events, readiness);
  const { fleet, sync, tests, backendAccounts } = parts;
  const closeFleet = fleet.close.bind(fleet);
  const closed: string[] = [];
  sync.close = () => Promise.reject(new Error('the sync'));
  tests.close = () => Promise.reject(new Error('the tests'));
  fleet.close = async (graceMs) => {
    await turn();
    await closeFleet(graceMs);
    closed.push('fleet');
  };
  Object.assign(backendAccounts ?? {}, { stored: async () => closed.push('tokens') });
  events.events$.subscribe({ complete: () => closed.push('events') });
  const { message } = await closeParts(parts, events, 0).catch((thrown: unknown) => Object(thrown));
  assert.equal([message, closed], ['the tests', ['fleet', 'tokens', 'events']]);
});

test('finishes a registration that is under way before it ends', async () => {
  const store = failingStore();
  const gateway = await createGateway({ store });
  store.turns = () => 5;
  const registered = gateway.register('t', { id: 'a', ...child() });
  await gateway.close({ graceMs: 5_000 });
  assert.is((await registered).definition.id, 'a');
  const found = (await store.instances.list()).map(({ id }) => id);
  assert.equal(found, ['a']);
});

test('ends its children without waiting for a store that does not answer', async () => {
  const store = failingStore();
  const gateway = await createGateway({ store, graceMs: 50 });
  await gateway.register('t', { id: 'a', ...child() }, WAIT);
  const pid = pidOf(gateway, 'a');
  store.instances.save = () => new Promise(() => {});
  void codeOf(gateway.register('t', { id: 'b', ...child() }));
  await turn();
  await gateway.close();
  assert.is(isRunning(pid), false);
});

test('leaves no child behind that ignores the end of its input and SIGTERM', async () => {
  const gateway = await createGateway();
  await gateway.register('t', { id: 'a', ...child('--ignore-stdin-end', '--ignore-sigterm') }, WAIT);
  const pid = pidOf(gateway, 'a');
  await gateway.close();
  assert.is(isRunning(pid), false);
});

test.needs(process.platform === 'linux', 'looks for children in /proc')(
  'leaves no child behind that was still starting',
  async () => {
    const gateway = await createGateway();
    const starting = child('--slow-start=60000');
    await gateway.register('t', { id: 'a', ...starting });
    const tested = gateway.testConnection('t', starting).then(({ isOk }) => isOk);
    const children = () => descendantsOf(process.pid).filter(isRunning);
    await until(() => children().length > 0, 'a child is starting');
    const born = children();
    await gateway.close();
    assert.is(await Promise.race([tested, turn('under way')]), false);
    // The reaper's shell is among them: it ends when no child is left.
    await until(() => !born.some(isRunning), 'nothing is left');
  },
);

test.needs(
  process.platform === 'linux',
  'other systems do not keep more connections waiting than the backlog says',
)('leaves no connection behind that was still being made', async () => {
  const full = await serverWithoutRoom();
  const sockets = () => process.getActiveResourcesInfo().filter((what) => what === 'TCPSocketWrap').length;
  const before = sockets();
  try {
    const gateway = await createGateway();
    await gateway.register('t', { id: 'a', endpoint: full.endpoint });
    await becomes(sockets, before + 1);
    await gateway.close();
    await becomes(sockets, before, 1_000);
  } finally {
    full.close();
  }
});

test('leaves no timer behind after the opening of an HTTP server without MCP failed', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((what) => what === 'Timeout').length;
  const gateway = await createGateway();
  await withRawServer(
    (_, response) => void response.writeHead(404).end(),
    async ({ url }) => {
      const before = timers();
      const failed = firstValueFrom(gateway.on('probe.finished'));
      await gateway.register('t', { id: 'a', endpoint: url });
      await failed;
      await gateway.close();
      await becomes(timers, before, 1_000);
    },
  );
});

test('ends the calls of an instance that was deregistered before within the grace time, too', async () => {
  const gateway = await createGateway({ graceMs: 100 });
  await gateway.register('t', { id: 'a', ...child() }, WAIT);
  const pid = pidOf(gateway, 'a');
  const running = codeOf(gateway.call('t', 'sleep', { ms: 60_000 }));
  await turn();
  await gateway.deregister('t', 'a');
  assert.is(gateway.stats().activeConnections, 1);
  await gateway.close();
  assert.is(await running, 'BACKEND_UNAVAILABLE');
  assert.is(isRunning(pid), false);
});

test.run();

const crash = suite('gateway: crashes', { timeoutMs: 120_000 });
let gateway: Gateway;
crash.before.each(async () => {
  gateway = await createGateway({ graceMs: 1_000 });
});
crash.after.each(() => gateway.close());

crash('a killed child leads to no repeat of a call that is not safe to repeat', async () => {
  await start('a', 'b');
  const calls = Array.from({ length: 40 }, () => {
    const call = gateway.call('t', 'count', { ms: 300 });
    return call.then(
      ({ instanceId }) => instanceId,
      () => errorSummary(call),
    );
  });
  const back = healthyAgain('a');
  process.kill(pidOf(gateway, 'a'), 'SIGKILL');
  const outcomes = await Promise.all(calls);
  const answered = outcomes.filter((outcome) => outcome === 'b').length;
  assert.ok(answered >= 20, `${answered} were answered`);
  for (const outcome of outcomes)
    if (typeof outcome === 'object') assert.equal(outcome, ['BACKEND_UNAVAILABLE', 'unknown', undefined]);
  await back;
  // b counted the calls that it answered and no others; the counter of a started again
  const counted = await gateway.call('t', 'count', {}, { instanceId: 'b' });
  assert.equal(counted.result, { content: [{ type: 'text', text: String(answered + 1) }] });
});

crash('a call that the only child took fails with it, and a later one waits for its restart', async () => {
  await start('a');
  const running = errorSummary(gateway.call('t', 'sleep', { ms: 60_000 }));
  const back = healthyAgain('a');
  process.kill(pidOf(gateway, 'a'), 'SIGKILL');
  assert.equal(await running, ['BACKEND_UNAVAILABLE', 'unknown', undefined]);
  assert.is((await gateway.call('t', 'echo', { text: 'x' })).instanceId, 'a');
  await back;
});

crash('runs an installed package without npx, and keeps the command as it was registered', async () => {
  const args = ['-y', '@modelcontextprotocol/server-memory@2026.8.31'];
  // Without a PATH npx cannot be found.
  const instance = { id: 'm', command: 'npx', args, env_vars: { PATH: '/nowhere' } };
  const { definition } = await gateway.register('m', instance, WAIT);
  const { snapshot } = gateway.instance('m', 'm');
  assert.equal([snapshot.state, snapshot.reason], ['healthy', null]);
  assert.equal([definition.command, definition.args], ['npx', args]);
});

crash.run();

function child(...flags: readonly string[]) {
  return { command: process.execPath, args: [SERVER, ...flags] };
}

function pidOf(gateway: Gateway, id: string): number {
  const { pid } = gateway.instance('t', id).snapshot;
  if (pid === null) throw new Error(`"${id}" has no process`);
  return pid;
}

async function start(...ids: readonly string[]): Promise<void> {
  await Promise.all(ids.map((id) => gateway.register('t', { id, ...child() }, WAIT)));
  // The first call of each, so that its tools are known.
  await Promise.all(ids.map((id) => gateway.list('t', 'tools', { instanceId: id })));
}

function healthyAgain(id: string): Promise<unknown> {
  return firstValueFrom(gateway.on('instance.healthy').pipe(filter(({ instanceId }) => instanceId === id)));
}

/** A server that accepts nothing and whose backlog is full: the next connection is neither made nor refused. */
async function serverWithoutRoom() {
  const code = `require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    console.log(this.address().port);
  });`;
  const server = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = Number(String((await once(server.stdout, 'data'))[0]));
  server.kill('SIGSTOP');
  const waiting = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  await Promise.all(waiting.map((socket) => once(socket, 'connect')));
  const close = () => {
    for (const socket of waiting) socket.destroy();
    server.kill('SIGKILL');
  };
  return { endpoint: `http://127.0.0.1:${port}/mcp`, close };
}
