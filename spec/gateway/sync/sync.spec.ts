import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { rm, utimes, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { mock } from 'node:test';
import { firstValueFrom, map } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import {
  type FakeContainer,
  type FakeEngine,
  startFakeEngine,
} from '../../helpers/containers/fake-engine.ts';
import { becomes, eventually, until } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { failingStore } from '../../helpers/stores/failing-store.ts';
import { suite } from '../../helpers/suite.ts';
import { alarmsOf } from '../../helpers/time/simulated-time.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('sync with container engines');
const folder = folderOfEach(test);
/** A file with this time is at rest. */
const LONG_AGO = new Date('2026-01-01T00:00:00Z');
const open: { close(): Promise<void> }[] = [];
test.after.each(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

const definitions = [
  { id: 'ported', ports: [9000] },
  { id: 'program', command: 'serve --fast', ports: [9000], transport: 'stdio' as const },
  { id: 'unfilled', command: `serve $${'{SCRATCH}'}` },
];

async function engineWith(...containers: FakeContainer[]): Promise<FakeEngine> {
  const engine = await startFakeEngine(containers);
  open.push(engine);
  return engine;
}

async function gatewayAt(addresses: readonly string[], options: GatewayOptions = {}): Promise<Gateway> {
  const [first = '', second = first] = addresses;
  const env = { DOCKER_HOST: first, CONTAINER_HOST: second };
  const gateway = await createGateway({ definitions, graceMs: 0, discovery: { env }, ...options });
  open.push(gateway);
  return gateway;
}

const marked = (template: string, more: Readonly<Record<string, string>> = {}) => ({
  'stagedoor.template': template,
  ...more,
});
const at = (HostIp: string, HostPort: string) => ({ HostIp, HostPort });

/** Resolves with the instance of the next such event. */
const next = (gateway: Gateway, name: 'instance.registered' | 'instance.deregistered') =>
  firstValueFrom(gateway.on(name).pipe(map(({ instanceId }) => instanceId)));

test('reaches a container by its published port, its own address, the network of the host, or a program', async () => {
  const engine = await engineWith(
    { id: 'aa', labels: marked('web'), ports: { '80/tcp': at('0.0.0.0', '32768') } },
    { id: 'bb', labels: marked('web'), ports: { '80/tcp': at('192.0.2.7', '81'), '82/udp': null } },
    { id: 'cc', labels: marked('web', { 'stagedoor.port': '90' }), address: '192.0.2.8' },
    { id: 'dd', labels: marked('ported'), network: 'host' },
    { id: 'ee', labels: { 'managed-by': 'mcp-template', template: 'program' } },
    { id: 'ff', labels: marked('program', { 'stagedoor.command': `run "two words"` }) },
  );
  const gateway = await gatewayAt([engine.address]);
  const { added, skipped, reached, warnings } = await gateway.sync();
  assert.equal([skipped, reached, warnings], [[], [engine.address], []]);
  assert.equal(added[0], { template: 'web', id: 'web-aa000000', name: 'name-aa' });
  const seen = gateway.servers().map(({ definition: { id, source, endpoint, command, args, container } }) => {
    assert.equal([source, container?.engine], ['sync', engine.address]);
    return [id, endpoint ?? [command, ...args]];
  });
  assert.equal(Object.fromEntries(seen), {
    // Inside of a container the loopback address of the engine's machine is another one.
    'web-aa000000': 'http://127.0.0.1:32768/mcp',
    'web-bb000000': 'http://192.0.2.7:81/mcp',
    'web-cc000000': 'http://192.0.2.8:90/mcp',
    'ported-dd000000': 'http://127.0.0.1:9000/mcp',
    'program-ee000000': ['serve', '--fast'],
    'program-ff000000': ['run', 'two words'],
  });
});

const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each);
const hasIpv6 = addresses.some(({ address }) => address === '::1');
const ipv6 = test.needs(hasIpv6, 'no IPv6 here');
ipv6('reaches an engine, and the containers that use its network, by an IPv6 address', async () => {
  const engine = await engineWith(
    { id: 'aa', labels: marked('web'), ports: { '80/tcp': at('0.0.0.0', '32768') } },
    { id: 'bb', labels: marked('ported'), network: 'host' },
  );
  const front = createServer((socket) => {
    const behind = connect(engine.address.replace('unix://', ''));
    socket.on('error', () => behind.destroy()).pipe(behind);
    behind.on('error', () => socket.destroy()).pipe(socket);
  });
  await once(front.listen(0, '::1'), 'listening');
  open.push({ close: async () => void front.close() });
  const address = `tcp://[::1]:${Object(front.address()).port}`;
  const gateway = await gatewayAt([address]);
  const { reached, warnings } = await gateway.sync();
  assert.equal([reached, warnings], [[address], []]);
  const endpoints = gateway.servers().map(({ definition: { endpoint } }) => endpoint);
  assert.equal(endpoints.toSorted(), ['http://[::1]:32768/mcp', 'http://[::1]:9000/mcp']);
});

test('keeps the port of an engine that is the default port of http', async () => {
  for (const address of ['http://127.0.0.1:80', 'https://127.0.0.1:443']) {
    const [line = ''] = (await (await gatewayAt([address])).sync()).warnings;
    assert.ok(line.startsWith(`${address}: `) && !line.includes(':237'), line);
  }
});

test('reports why a container is skipped', async () => {
  const engine = await engineWith(
    { id: 'a1', labels: marked('web') },
    { id: 'a2', labels: marked('web', { 'stagedoor.port': 'http' }) },
    { id: 'a3', labels: marked('web', { 'stagedoor.port': '80' }) },
    { id: 'a4', labels: marked('web', { 'stagedoor.command': '"open' }) },
    { id: 'a5', labels: marked('unfilled') },
    { id: 'a6', labels: marked('Not A Name') },
    { id: 'a7', labels: marked('web'), state: { Health: { Status: 'unhealthy' } } },
    { id: 'a8', labels: marked('web'), state: { Paused: true } },
  );
  const gateway = await gatewayAt([engine.address]);
  assert.equal((await gateway.sync({ mayUse: (template) => template === 'other' })).skipped, []);
  const { added, skipped } = await gateway.sync();
  assert.equal(added, []);
  assert.equal(
    skipped.map(({ name, reason }) => `${name}: ${reason}`),
    [
      'name-a1: its address is unknown: set the label stagedoor.port or stagedoor.command, or give the template a port',
      'name-a2: its label stagedoor.port is not a port',
      'name-a3: its port 80 is not published, and it has no address of its own',
      'name-a4: the label stagedoor.command cannot be split into words: the " at character 1 is never closed',
      "name-a5: the template's command has a placeholder, which sync does not fill: set the label stagedoor.command",
      'name-a6: its label names no template',
      'name-a7: its health check fails',
      'name-a8: it is paused',
    ],
  );
});

test('changes and removes only what it added itself, and nothing in a dry run', async () => {
  const web = (id: string, port: string): FakeContainer => ({
    id,
    labels: marked('web'),
    ports: { '80/tcp': at('', port) },
  });
  const engine = await engineWith(web('aa', '1001'), web('bb', '1002'), web('cc', '1003'));
  const gateway = await gatewayAt([engine.address]);
  await gateway.register('web', { id: 'web-cc000000', endpoint: 'http://127.0.0.1:1' });
  const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);
  const first = await gateway.sync();
  assert.equal(ids(first.added), ['web-aa000000', 'web-bb000000']);
  assert.equal(first.skipped[0]?.reason, '"web-cc000000" is already registered by another source (api)');

  engine.containers = [web('aa', '2001')];
  for (const isDryRun of [true, false]) {
    const { added, changed, removed, skipped } = await gateway.sync({ isDryRun });
    assert.equal([ids(changed), ids(removed)], [['web-aa000000'], ['web-bb000000']]);
    assert.equal([added, skipped], [[], []]);
  }
  assert.is(gateway.instance('web', 'web-aa000000').definition.endpoint, 'http://127.0.0.1:2001/mcp');
  const { unchanged } = await gateway.sync();
  assert.equal(ids(unchanged), ['web-aa000000']);
  assert.equal(gateway.servers().length, 2);

  await gateway.deregister('web', 'web-aa000000');
  const last = await gateway.sync();
  assert.match(String(last.skipped[0]?.reason), 'it was deregistered');
  assert.equal(last.added, []);
});

test('keeps weight and metadata of an instance whose container gets another port', async () => {
  const web = (port: string) => ({ id: 'aa', labels: marked('web'), ports: { '80/tcp': at('', port) } });
  const engine = await engineWith(web('1001'));
  const gateway = await gatewayAt([engine.address]);
  await gateway.sync();
  await gateway.changeInstance('web', 'web-aa000000', { weight: 7, metadata: { zone: 'a' } });
  engine.containers = [web('2001')];
  assert.is((await gateway.sync()).changed.length, 1);
  const { endpoint, weight, metadata } = gateway.instance('web', 'web-aa000000').definition;
  assert.equal([endpoint, weight, metadata], ['http://127.0.0.1:2001/mcp', 7, { zone: 'a' }]);
});

test('removes no instance of an engine that cannot be reached', async () => {
  const [near, far] = [
    await engineWith({ id: 'aa', labels: marked('web'), ports: { '80/tcp': at('', '1001') } }),
    await engineWith({ id: 'bb', labels: marked('web'), ports: { '80/tcp': at('', '1002') } }),
  ];
  const gateway = await gatewayAt([near.address, far.address]);
  assert.equal((await gateway.sync()).added.length, 2);
  await far.close();
  near.containers = [];
  const { removed, reached, warnings } = await gateway.sync();
  assert.equal([removed, reached], [[{ template: 'web', id: 'web-aa000000' }], [near.address]]);
  assert.equal(warnings, [`${far.address}: connect ENOENT ${far.address.replace('unix://', '')}`]);
  const none = await (await gatewayAt(['ssh://somewhere'])).sync();
  assert.equal(none.reached, []);
  assert.match(String(none.warnings[0]), 'must be unix:///path or tcp://host:port');
});

test('follows an engine: adds started and removes ended containers, also after its event stream broke', async () => {
  const engine = await engineWith();
  const gateway = await gatewayAt([engine.address]);
  await gateway.followSources();
  await engine.followed();
  let registered = next(gateway, 'instance.registered');
  engine.containers = [{ id: 'aa', labels: marked('web'), ports: { '80/tcp': at('', '1001') } }];
  engine.emit('start', 'aa');
  assert.is(await registered, 'web-aa000000');

  let removed = next(gateway, 'instance.deregistered');
  engine.containers = [];
  engine.emit('die', 'aa');
  assert.is(await removed, 'web-aa000000');

  registered = next(gateway, 'instance.registered');
  engine.containers = [{ id: 'bb', labels: marked('web'), ports: { '80/tcp': at('', '1001') } }];
  engine.cutEvents();
  assert.is(await registered, 'web-bb000000');

  removed = next(gateway, 'instance.deregistered');
  engine.containers = [
    { ...(engine.containers[0] as FakeContainer), state: { Health: { Status: 'unhealthy' } } },
  ];
  engine.emit('health_status: unhealthy', 'bb');
  assert.is(await removed, 'web-bb000000');
});

test('asks an engine whose event streams end at once ever more rarely', async () => {
  const engine = await engineWith();
  const waits: number[] = [];
  const { background } = systemClock;
  const alarm: typeof background.alarm = (ms, callback) => {
    const isWait = [500, 1_000, 2_000, 4_000].includes(ms);
    if (isWait) waits.push(ms);
    return background.alarm(isWait ? 1 : ms, callback);
  };
  const gateway = await gatewayAt([engine.address], {
    clock: { ...systemClock, background: { ...background, alarm } },
  });
  await gateway.followSources();
  for (let times = 0; times < 4; times += 1) {
    await engine.followed();
    engine.cutEvents();
    await becomes(() => waits.length > times, true);
  }
  assert.equal([...new Set(waits)], [500, 1_000, 2_000, 4_000]);
});

test('asks an engine whose event streams are cut after some seconds at the first wait, also after it was away', async () => {
  const engine = await engineWith();
  const waits: number[] = [];
  let passedMs = 0;
  const { background } = systemClock;
  const alarm: typeof background.alarm = (ms, callback) => {
    const isWait = [500, 1_000, 2_000, 4_000, 8_000, 15_000].includes(ms);
    if (isWait) waits.push(ms);
    return background.alarm(isWait ? 1 : ms, callback);
  };
  const startMs = systemClock.now();
  const now = () => startMs + passedMs;
  const returns: string[] = [];
  const onNotice = (line: string) => line.endsWith('available again') && returns.push(line);
  const gateway = await gatewayAt([], {
    clock: { ...systemClock, now, background: { ...background, alarm } },
    discovery: { env: { DOCKER_HOST: engine.address, CONTAINER_HOST: engine.address }, onNotice },
  });
  await gateway.followSources();
  for (const [times, followedMs] of [10_000, 10_000, 0, 0, 0, 0, 0, 10_000].entries()) {
    await engine.followed();
    await until(() => returns.length === times);
    passedMs += followedMs;
    engine.cutEvents();
    await becomes(() => waits.length > times, true);
  }
  assert.equal(waits, [500, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 500]);
});

test('opens the event stream of an engine again, which may be silent because its connection was lost', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const engine = await engineWith();
    const gateway = await gatewayAt([engine.address]);
    await gateway.followSources();
    await engine.followed();
    await passTurns(10);
    engine.containers = [{ id: 'aa', labels: marked('web'), ports: { '80/tcp': at('', '1001') } }];
    const registered = next(gateway, 'instance.registered');
    mock.timers.tick(290_000);
    await until(() => {
      mock.timers.tick(500);
      return gateway.servers().length > 0;
    });
    assert.is(await registered, 'web-aa000000');
  } finally {
    mock.timers.reset();
  }
});

test('registers a container that started while the database was unavailable', async () => {
  const notices: string[] = [];
  const { gateway, store } = await startedWhileAway((line) => notices.push(line));
  await eventually(
    async () => notices.length,
    (length) => length > 0,
  );
  assert.is(await codeOf(gateway.sync()), 'DATABASE_UNAVAILABLE');
  const registered = next(gateway, 'instance.registered');
  store.failing.clear();
  assert.is(await registered, 'web-aa000000');
  assert.equal(notices, ['sync: The database does not answer. The sync is incomplete: repeat it.']);
});

for (const [kind, fault] of Object.entries({
  throws: () => {
    throw new Error('a listener of the embedder');
  },
  rejects: () => Promise.reject(new Error('a listener of the embedder')),
}))
  test(`follows an engine when the listener of notices ${kind}`, async () => {
    let notices = 0;
    const { gateway, store } = await startedWhileAway(() => {
      notices += 1;
      return fault();
    });
    await eventually(
      async () => notices,
      (count) => count > 0,
    );
    const registered = next(gateway, 'instance.registered');
    store.failing.clear();
    assert.is(await registered, 'web-aa000000');
  });

test('reads the registry file again, and needs no engine for that', async () => {
  const { path, write, gateway } = await gatewayWithFile();
  const at = (port: number) => ({ endpoint: `http://127.0.0.1:${port}/mcp` });
  await gateway.register('web', { id: 'mine', ...at(1) });
  await write({ web: { instances: { one: at(1), two: at(2), mine: at(3) } } });
  const first = await gateway.sync();
  const [one, two] = ['one', 'two'].map((id) => ({ template: 'web', id }));
  const reason = '"mine" is already registered by another source (api)';
  assert.equal(first, {
    ...{ added: [one, two], changed: [], removed: [], unchanged: [] },
    ...{ skipped: [{ template: 'web', name: 'mine', reason }], settings: [], reached: [path], warnings: [] },
  });

  await write({ web: { load_balancer: { max_retries: 1 }, instances: { one: at(4), colour: 7 } } });
  for (const isDryRun of [true, false]) {
    const { changed, removed, settings, warnings } = await gateway.sync({ isDryRun });
    assert.equal([changed, removed, settings], [[one], [], ['web']]);
    assert.equal(warnings, ['registry file: templates.web.instances.colour: must be an object']);
    assert.is(gateway.instance('web', 'one').definition.endpoint, at(isDryRun ? 1 : 4).endpoint);
  }
  await write({ web: { instances: { one: at(4) } } });
  assert.equal((await gateway.sync()).removed, [two]);
  await gateway.deregister('web', 'one');
  const { added, skipped } = await gateway.sync();
  assert.equal([added, skipped.map(({ name }) => name)], [[], ['one']]);
});

test('changes nothing when a registry file becomes invalid or is deleted', async () => {
  const { path, write, gateway } = await gatewayWithFile();
  await write({ web: { instances: { one: { endpoint: 'http://127.0.0.1:1/mcp' } } } });
  await gateway.sync();
  const outcomes = [];
  for (const spoil of [() => writeFile(path, '{"templates": {'), () => rm(path)]) {
    await spoil();
    await utimes(path, LONG_AGO, LONG_AGO).catch(() => undefined);
    outcomes.push(await gateway.sync());
  }
  const nothing = { ...{ added: [], changed: [], removed: [], unchanged: [], skipped: [] }, settings: [] };
  assert.match(String(outcomes[0]?.warnings[0]), /: not JSON: .*; its instances are left unchanged$/);
  assert.equal(outcomes[1], {
    ...nothing,
    reached: [],
    warnings: [`registry file ${path}: there is no such file; its instances are left unchanged`],
  });
  assert.is(gateway.servers().length, 1);
});

test('reads a registry file in YAML that is being written once it is at rest, and removes nothing before', async () => {
  const registryFile = folder('registry.yaml');
  const env = { DOCKER_HOST: '', CONTAINER_HOST: '', HOME: folder() };
  const { clock, ring } = alarmsOf(1_000);
  const gateway = await gatewayAt([], { clock, discovery: { env, registryFile } });
  const lines = ['servers:\n'];
  for (const id of ['one', 'two', 'three']) lines.push(`  ${id}: { url: 'http://127.0.0.1:1/${id}' }\n`);
  const write = async (count: number, agedMs = 0) => {
    await writeFile(registryFile, lines.slice(0, count).join(''));
    const mtime = new Date(Date.now() - agedMs);
    await utimes(registryFile, mtime, mtime);
  };
  await write(lines.length, 60_000);
  assert.is((await gateway.sync()).added.length, 3, 'of an old file at once');
  await write(2);
  const synced = gateway.sync();
  await passTurns(20);
  await write(3);
  ring();
  await passTurns(20);
  await write(lines.length);
  const stop = setInterval(ring, 10);
  const { removed, unchanged } = await synced;
  clearInterval(stop);
  assert.equal([removed, unchanged.length, gateway.servers().length], [[], 3, 3]);
});

test('leaves the instances as they are while a registry file is being written for 10 s', async () => {
  const { path, write, gateway, ring } = await gatewayWithFile();
  await write({ web: { instances: { one: { endpoint: 'http://127.0.0.1:1/mcp' } } } });
  await gateway.sync();
  let writes = 0;
  const writeMore = (): void => {
    writes += 1;
    writeFileSync(path, `{"templates": {}}${' '.repeat(writes)}`);
  };
  writeMore();
  const writing = setInterval(() => {
    writeMore();
    ring();
  }, 20);
  const { warnings } = await gateway.sync();
  clearInterval(writing);
  assert.equal(warnings, [`registry file ${path}: it is being written; its instances are left unchanged`]);
  assert.is(gateway.servers().length, 1);
});

test('a caller that may use some templates learns nothing of others in the registry file', async () => {
  const { write, gateway } = await gatewayWithFile();
  const instances = { one: { endpoint: 'http://127.0.0.1:1/mcp' }, two: 2 };
  await write({ web: { instances }, secret: { instances } });
  const { added, warnings } = await gateway.sync({ mayUse: (template) => template === 'web' });
  assert.equal(added, [{ template: 'web', id: 'one' }]);
  assert.equal(warnings, ['registry file: some entries cannot be used']);
});

test('a gateway that closes ends a sync that parses a long registry file in YAML', async () => {
  const registryFile = folder('long.yaml');
  await writeFile(registryFile, `stats:\n${'  - { id: one, requests: 5 }\n'.repeat(100_000)}`);
  const env = { DOCKER_HOST: '', CONTAINER_HOST: '', HOME: folder() };
  const gateway = await gatewayAt([], { discovery: { env, registryFile } });
  let answers = 0;
  process.once('worker', (thread) => {
    thread.on('message', () => {
      answers += 1;
    });
    thread.once('online', () => void gateway.close());
  });
  assert.equal([await codeOf(gateway.sync()), answers], ['SHUTTING_DOWN', 0]);
});

test.run();

/** A gateway that follows an engine, and whose database went away before a container started. */
async function startedWhileAway(onNotice: (line: string) => unknown) {
  const engine = await engineWith();
  const store = failingStore();
  const env = { DOCKER_HOST: engine.address, CONTAINER_HOST: engine.address };
  const gateway = await gatewayAt([], { store, discovery: { env, onNotice } });
  await gateway.followSources();
  await engine.followed();
  store.failure = () => databaseUnavailable(new Error('away'));
  store.failing.add('instances.save');
  engine.containers = [{ id: 'aa', labels: marked('web'), ports: { '80/tcp': at('', '1001') } }];
  engine.emit('start', 'aa');
  return { gateway, store };
}

async function gatewayWithFile() {
  const registryFile = folder('registry.json');
  const discovery = { env: { DOCKER_HOST: '', CONTAINER_HOST: '', HOME: folder() }, registryFile };
  const { clock, ring } = alarmsOf(1_000);
  const gateway = await gatewayAt([], { clock, discovery });
  const write = async (templates: unknown) => {
    await writeFile(registryFile, JSON.stringify({ templates }));
    await utimes(registryFile, LONG_AGO, LONG_AGO);
  };
  return { path: registryFile, write, gateway, ring };
}
