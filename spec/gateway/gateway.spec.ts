// The facade: what embedders, routes and the command line do with a gateway, over functions as backends. Its end, its
// events, its statistics and real children are in the other gateway-*.spec.ts.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import { GatewayError } from '../../src/domain/errors/errors.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { HeldTool, rpcError, serving } from '../helpers/backends/function-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('gateway');
const WAIT = { waitMs: 5_000 };
let gateway: Gateway;

test.before.each(async () => {
  gateway = await createGateway({ random: () => 0.5 });
});
test.after.each(() => gateway.close({ graceMs: 0 }));

test('lists configured templates without instances, and stores them only when they are changed', async () => {
  const store = new MemoryStore();
  const known = await createGateway({ store, definitions: [{ id: 'defined' }] });
  assert.equal(known.templates(), ['defined']);
  assert.equal([known.health('defined').total, known.template('defined').instances], [0, []]);
  assert.is(await codeOf(known.call('defined', 'add')), 'NO_HEALTHY_INSTANCE');
  assert.is(await codeOf(known.call('other', 'add')), 'TEMPLATE_NOT_FOUND');
  assert.equal(await store.templates.list(), []);
  await known.changeTemplate('defined', { timeout: 5 });
  assert.equal(await store.templates.list(), [{ name: 'defined', loadBalancer: { timeout: 5 } }]);
  await known.close();
});

test('a definition has defaults of its template, which go before those of the gateway', async () => {
  const load_balancer = { strategy: 'random', ejection_failures: 3, tool_timeouts: { slow: 9 } } as const;
  const known = await createGateway({
    policy: { ejectionFailures: 7, maxRetries: 1 },
    definitions: [{ id: 'defined', load_balancer }],
  });
  const present = () => {
    const { strategy, ejectionFailures, maxRetries, toolTimeoutsMs } = known.template('defined').policy;
    return [strategy, ejectionFailures, maxRetries, toolTimeoutsMs];
  };
  assert.equal(present(), ['random', 3, 1, { slow: 9_000 }]);
  await known.register(
    'defined',
    { handler: serving({}) },
    { loadBalancer: { ejection_failures: 4 }, ...WAIT },
  );
  await known.changeTemplate('defined', { tool_timeouts: {}, max_retries: 2 });
  assert.equal(present(), ['random', 4, 2, {}]);
  await known.changeTemplate('defined', { ejection_failures: null, tool_timeouts: null, max_retries: null });
  assert.equal(present(), ['random', 3, 1, { slow: 9_000 }]);
  await known.close();
});

test('gathers all pages of a list from one instance', async () => {
  for (const id of ['a', 'b', 'c']) {
    await gateway.register('t', { id, handler: ({ params }) => page(id, Number(params?.cursor ?? 0)) }, WAIT);
  }
  for (let time = 0; time < 3; time += 1) {
    const { items, instanceId } = await gateway.list('t', 'prompts');
    assert.equal(
      items,
      [0, 1, 2, 3].map((number) => ({ name: `${instanceId}${number}` })),
    );
  }
});

test('shows templates, instances and servers with their definitions and states', async () => {
  await gateway.register('t', { id: 'a', handler: serving({}), weight: 3, metadata: { zone: 'x' } }, WAIT);
  await gateway.changeTemplate('t', { timeout: 7, health_check_interval: 5 });
  const { definition, snapshot } = gateway.instance('t', 'a');
  assert.equal([definition.weight, definition.metadata, definition.source], [3, { zone: 'x' }, 'api']);
  assert.equal([snapshot.state, snapshot.weight, snapshot.inFlight], ['healthy', 3, 0]);
  assert.equal(gateway.server('a'), gateway.instance('t', 'a'));
  assert.equal(gateway.servers(), [gateway.instance('t', 'a')]);
  assert.equal(gateway.templates(), ['t']);
  const view = gateway.template('t');
  assert.equal(view.settings, { name: 't', loadBalancer: { timeout: 7, health_check_interval: 5 } });
  const changed = { callTimeoutMs: 7_000, healthIntervalMs: 5_000 };
  assert.equal([view.policy, view.instances], [{ ...DEFAULT_POLICY, ...changed }, [definition]]);
});

test('a call that no instance can take fails with the reason of each instance', async () => {
  const broken = serving({ name: () => ({}) });
  await gateway.register('t', { id: 'a', handler: broken }, WAIT);
  gateway.drain('t', 'a');
  const refused = firstValueFrom(gateway.on('instance.unhealthy'));
  await gateway.register('t', { id: 'b', endpoint: 'http://127.0.0.1:9/mcp' });
  const { reason, isPlanned } = await refused;
  assert.equal([reason, isPlanned], ['connection refused', false]);
  const error = await gateway.call('t', 'name').catch((thrown: unknown) => thrown);
  assert.instance(error, GatewayError);
  if (!(error instanceof GatewayError)) return;
  assert.is(error.message, 'No instance of "t" is healthy right now: a is draining; b: connection refused.');
  assert.is(error.facts.instanceId, undefined);
});

test('names the instance that failed a call or refused it', async () => {
  const held = new HeldTool();
  const handler = serving({
    held: held.body,
    refuses: () => {
      throw rpcError(-32602, 'x is missing');
    },
  });
  await gateway.register('t', { id: 'a', handler }, WAIT);
  const failures = [
    gateway.call('t', 'refuses'),
    gateway.call('t', 'held', {}, { timeoutMs: 20 }),
    gateway.call('t', 'held', {}),
  ].map((call) => call.catch((thrown: unknown) => thrown));
  await Promise.all(failures.slice(0, 2));
  await gateway.close({ graceMs: 0 });
  assert.equal(
    (await Promise.all(failures)).map((error) =>
      error instanceof GatewayError ? [error.code, error.facts.instanceId] : error,
    ),
    [
      ['INVALID_TOOL_ARGUMENTS', 'a'],
      ['BACKEND_TIMEOUT', 'a'],
      ['BACKEND_UNAVAILABLE', 'a'],
    ],
  );
});

test('follows a changed weight at the next pick, and a changed strategy at the next call', async () => {
  await gateway.register('t', { id: 'a', handler: serving({ name: () => ({}) }) }, WAIT);
  await gateway.register('t', { id: 'b', handler: serving({ name: () => ({}) }) }, WAIT);
  await gateway.changeTemplate('t', { strategy: 'weighted' });
  assert.equal((await callers(8)).sort().join(''), 'aaaabbbb');
  await gateway.changeInstance('t', 'a', { weight: 3 });
  assert.equal((await callers(8)).sort().join(''), 'aaaaaabb');
  await gateway.changeTemplate('t', { strategy: 'round_robin' });
  assert.equal((await callers(8)).sort().join(''), 'aaaabbbb');
});

test('answers a burst of 2,000 calls in one tick, 500 by each of four instances', async () => {
  const handler = serving({ name: () => ({}) });
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) await gateway.register('t', { id, handler }, WAIT);
  await gateway.changeTemplate('t', { strategy: 'least_connections' });
  const calls = Array.from({ length: 2_000 }, () => gateway.call('t', 'name'));
  const answered = (await Promise.all(calls)).map(({ instanceId }) => instanceId);
  const shares = ids.map((id) => answered.filter((one) => one === id).length);
  assert.equal(shares, [500, 500, 500, 500]);
  assert.equal([gateway.stats().totalRequests, gateway.stats().activeConnections], [2_000, 0]);
});

test('shares nothing with another gateway in the same process', async () => {
  const other = await createGateway();
  const received: string[] = [];
  other.events$.subscribe(({ type }) => received.push(type));
  await gateway.register('t', { id: 'a', handler: serving({ name: () => ({}) }) }, WAIT);
  await gateway.call('t', 'name');
  assert.equal([other.templates(), other.servers(), received], [[], [], []]);
  assert.is(other.stats().totalRequests, 0);
  await other.close();
  assert.equal(await callers(1), ['a']);
});

// Called as `await using` calls it, which the oldest Node that is supported cannot parse.
test('`await using` closes it at the end of the block', async () => {
  const scoped = await createGateway();
  let isComplete = false;
  scoped.events$.subscribe({ complete: () => (isComplete = true) });
  await scoped[Symbol.asyncDispose]();
  assert.equal([isComplete, scoped.phase], [true, 'closing']);
});

test.run();

/** The instances that answered this many calls. */
async function callers(times: number): Promise<string[]> {
  const ids: string[] = [];
  for (let time = 0; time < times; time += 1) ids.push((await gateway.call('t', 'name')).instanceId);
  return ids;
}

/** Two items on each of two pages. */
function page(id: string, first: number) {
  const prompts = [first, first + 1].map((number) => ({ name: `${id}${number}` }));
  return first === 0 ? { prompts, nextCursor: '2' } : { prompts };
}
