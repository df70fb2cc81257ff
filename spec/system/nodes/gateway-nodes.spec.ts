// Two whole gateways on one SQLite file, each with a connection of its own: what is registered on one is served by the
// other, programs run on their node only. Children and connections are real.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filter, firstValueFrom, interval, timeout } from 'rxjs';
import * as assert from 'uvu/assert';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import { createGateway, type Gateway } from '../../../src/gateway.ts';
import { createCipher } from '../../../src/persistence/cipher.ts';
import { openStore } from '../../../src/persistence/open.ts';
import { watchRevision } from '../../../src/persistence/revision-watch.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('gateway: nodes', { timeoutMs: 60_000 });
const WAIT = { waitMs: 20_000 };
const SECRET = 'a-planted-secret';
const SERVER = fileURLToPath(new URL('../../fixtures/stdio-server.ts', import.meta.url));
const child = { command: process.execPath, args: [SERVER], env_vars: { TOKEN: SECRET } };
const cipher = createCipher([new Uint8Array(32).fill(7)]);
let folder = '';
let a: Gateway;
let b: Gateway;

test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodes-'));
  a = await started('a');
  b = await started('b');
});
test.after.each(async () => {
  await Promise.all([a.close({ graceMs: 0 }), b.close({ graceMs: 0 })]);
  await rm(folder, { recursive: true });
});

test('serves on every node what was registered on one, within ten seconds', async () => {
  const backend = await startHttpServer();
  const served = heard(b, 'instance.healthy', 10_000);
  await a.register('t', { id: 'web', endpoint: backend.url }, WAIT);
  await served;
  const { result, instanceId } = await b.call('t', 'echo', { text: 'over there' });
  assert.is(instanceId, 'web');
  assert.match(JSON.stringify(result), /over there/);
  assert.equal(
    b.servers().map(({ definition }) => definition),
    a.servers().map(({ definition }) => definition),
  );
  const gone = heard(b, 'instance.deregistered', 10_000);
  await a.deregister('t', 'web');
  await gone;
  assert.is(await codeOf(b.call('t', 'echo')), 'NO_HEALTHY_INSTANCE');
  await backend.close();
});

test('runs a program on its own node, lists it on the others and says there where it runs', async () => {
  const events: GatewayEvent[] = [];
  for (const { events$ } of [a, b]) events$.subscribe((event) => events.push(event));
  const listed = heard(b, 'instance.registered', 10_000);
  await a.register('t', { id: 'x', ...child }, WAIT);
  await listed;
  const { definition, snapshot } = b.instance('t', 'x');
  const clients = { sessions: 0, ownProcesses: 0, processes: [] };
  const server = { definition, snapshot, clients, warnings: [] };
  assert.equal(b.server('x'), server);
  assert.equal(b.servers(), [server]);
  assert.equal(b.template('t').instances, [definition]);
  assert.equal(definition, a.instance('t', 'x').definition);
  assert.equal(
    [snapshot.state, snapshot.healthy, snapshot.pid, snapshot.reason],
    ['stopped', false, null, 'it runs on the node "a"'],
  );
  const { total, healthy, instances } = b.health('t');
  assert.equal([total, healthy, instances.length], [0, 0, 1]);
  assert.is(await codeOf(b.call('t', 'echo')), 'NO_HEALTHY_INSTANCE');
  assert.is(await codeOf(b.call('t', 'echo', {}, { instanceId: 'x' })), 'NO_HEALTHY_INSTANCE');
  for (const command of ['drain', 'resume', 'restart'] as const)
    assert.is(await codeOf(() => b[command]('t', 'x')), 'NO_HEALTHY_INSTANCE');
  assert.is((await a.call('t', 'echo', { text: 'here' })).instanceId, 'x');
  await b.changeInstance('t', 'x', { metadata: { note: SECRET } });
  assert.not(JSON.stringify(events).includes(SECRET), 'no secret in an event');
});

test('hands a program over to the node that registers it anew; the one before stops its process', async () => {
  await a.register('t', { id: 'x', ...child }, WAIT);
  const pid = a.instance('t', 'x').snapshot.pid ?? 0;
  assert.is(isRunning(pid), true);
  const stopped = heard(a, 'instance.stopped', 10_000);
  const { replaced } = await b.register('t', { id: 'x', ...child }, WAIT);
  assert.is(replaced, true, 'it looked before it stored');
  await stopped;
  await firstValueFrom(
    interval(50).pipe(
      filter(() => !isRunning(pid)),
      timeout(10_000),
    ),
  );
  assert.equal(
    [a, b].map((one) => one.instance('t', 'x').snapshot.healthy),
    [false, true],
  );
  assert.is((await b.call('t', 'echo', { text: 'now here' })).instanceId, 'x');
});

test('runs its own programs after a restart, and only those', async () => {
  await a.register('t', { id: 'x', ...child }, WAIT);
  await b.register('t', { id: 'y', ...child }, WAIT);
  await a.changeTemplate('t', { timeout: 7 });
  await a.close();
  a = await started('a');
  assert.equal(a.template('t').settings.loadBalancer, { timeout: 7 });
  if (!a.instance('t', 'x').snapshot.healthy) await heard(a, 'instance.healthy', 20_000);
  assert.equal(
    a.servers().map(({ definition, snapshot }) => [definition.id, definition.nodeId, snapshot.healthy]),
    [
      ['x', 'a', true],
      ['y', 'b', false],
    ],
  );
});

test.run();

async function started(nodeId: string): Promise<Gateway> {
  const store = await openStore('sqlite:///gateway.db', { cwd: folder, migrations: 'apply', cipher });
  return createGateway({ store, nodeId, storeChanges$: watchRevision(store) });
}

/** Resolves with the next fact of this kind. */
function heard(gateway: Gateway, type: GatewayEvent['type'], withinMs: number): Promise<GatewayEvent> {
  return firstValueFrom(
    gateway.events$.pipe(
      filter((event) => event.type === type),
      timeout(withinMs),
    ),
  );
}
