// Two nodes on one database change the same few ids at the same time, over stores that are slow, fail and lose answers, with
// notices of changes at any time; all of it made up by fast-check, and a failing run is printed with its seed. When all changes
// have ended and both nodes were notified, both have what is stored, and each runs its own instances.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { answers } from '../helpers/backends/harness.ts';
import type { ScriptedTransport } from '../helpers/backends/scripted-transport.ts';
import { inOrder, Node } from '../helpers/stores/nodes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: races of nodes', { timeoutMs: 120_000 });
const IDS = ['a', 'b', 'c'] as const;
const TEMPLATES = ['t', 's'] as const;
const ENDPOINTS = ['http://127.0.0.1:8/mcp', 'http://127.0.0.1:9/mcp'] as const;
/** Possible errors of a change over a store that fails or that others write. */
const ANSWERS = ['DATABASE_UNAVAILABLE', 'SERVER_NOT_FOUND', 'TEMPLATE_NOT_FOUND', 'DUPLICATE_SERVER'];

const CHANGES = ['endpoint', 'command', 'deregister', 'change', 'settle'] as const;
const KINDS = [...CHANGES, 'news', 'fail', 'mend'] as const;

interface Step {
  readonly kind: (typeof KINDS)[number];
  readonly node: 0 | 1;
  readonly template: (typeof TEMPLATES)[number];
  readonly id: (typeof IDS)[number];
  readonly value: number;
  /** Turns of the event loop between this step and the one before. */
  readonly after: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...KINDS),
  node: fc.constantFrom(0, 1),
  template: fc.constantFrom(...TEMPLATES),
  id: fc.constantFrom(...IDS),
  value: fc.integer({ min: 1, max: 5 }),
  after: fc.integer({ min: 0, max: 4 }),
});
const delays = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 20 });

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }));
test.after.each(() => mock.timers.reset());

test('both nodes and the database end with the same instances', () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), delays, async (steps, turns) => {
      const world = await open(turns);
      const asked: Promise<unknown>[] = [];
      for (const one of steps) {
        for (let left = one.after; left > 0; left -= 1) await turn();
        asked.push(take(world.nodes[one.node], one));
      }
      await quiet(world, asked);
      await isInStep(world);
      for (const node of world.nodes) await node.close();
      for (const transport of world.transports) assert.is(transport.isClosed, true, 'nothing is left open');
    }),
    { numRuns: 200 },
  ));

test.run();

async function open(turns: readonly number[]) {
  const database = new MemoryStore();
  const nodes = [new Node('one', database), new Node('two', database)] as const;
  const transports = new Set<ScriptedTransport>();
  let draws = 0;
  for (const { harness, store } of nodes) {
    store.failure = (method) => databaseUnavailable(new Error(method));
    store.turns = () => {
      draws += 1;
      return turns[draws % turns.length] ?? 0;
    };
    for (const id of IDS) harness.rewrite(id, answers());
    const { open } = harness;
    harness.open = async (definition, signal) => {
      const transport = await open(definition, signal);
      transports.add(harness.backend(definition.id));
      return transport;
    };
  }
  const loaded = Promise.all(nodes.map(({ registry }) => registry.load()));
  for (let left = 30; left > 0; left -= 1) await turn();
  await loaded;
  return { database, nodes, transports };
}

/** Takes a step; the possible errors are results like others. */
async function take({ registry, store, storeChanges$ }: Node, one: Step): Promise<unknown> {
  const { template, id, value } = one;
  try {
    switch (one.kind) {
      case 'endpoint':
        return await registry.instances.register(template, {
          id,
          weight: value,
          endpoint: ENDPOINTS[value % 2] ?? '',
        });
      case 'command':
        return await registry.instances.register(template, { id, weight: value, command: 'run' });
      case 'deregister':
        return await registry.instances.deregister(template, id);
      case 'change':
        return await registry.instances.change(template, id, { weight: value });
      case 'settle':
        return await registry.templates.ensure(template, { timeout: value });
      case 'news':
        return storeChanges$.next({ kind: 'changed' });
      case 'fail':
        store.losesAnswers = value % 2 === 0;
        return store.failing.add(
          value > 3 ? 'instances.list' : value > 1 ? 'instances.save' : 'instances.delete',
        );
      case 'mend':
        return store.failing.clear();
    }
  } catch (thrown) {
    if (thrown instanceof GatewayError && ANSWERS.includes(thrown.code)) return thrown;
    throw thrown;
  }
}

/** Waits until all changes have ended, every database is back, and both nodes were notified. */
async function quiet({ nodes }: World, asked: readonly Promise<unknown>[]): Promise<void> {
  await Promise.all(asked);
  for (const { store } of nodes) store.failing.clear();
  for (const { storeChanges$ } of nodes) storeChanges$.next({ kind: 'changed' });
  for (let left = 3; left > 0; left -= 1) {
    for (let turns = 60; turns > 0; turns -= 1) await turn();
    mock.timers.tick(6_000);
  }
  for (let turns = 60; turns > 0; turns -= 1) await turn();
}

type World = Awaited<ReturnType<typeof open>>;

async function isInStep({ database, nodes }: World): Promise<void> {
  const stored = inOrder(await database.instances.list());
  for (const { id: nodeId, definitions, registry, harness } of nodes) {
    assert.equal(definitions, stored, 'node and database');
    for (const { name, loadBalancer } of await database.templates.list())
      assert.equal(registry.active.settings(name).loadBalancer, loadBalancer);
    for (const definition of definitions) {
      const { template, id, serverId } = definition;
      const { fleet } = harness;
      const isMine = definition.nodeId === undefined || definition.nodeId === nodeId;
      assert.is(fleet.findByServerId(serverId), fleet.find(template, id));
      const found = fleet.templates
        .group(template)
        .refs.some((ref) => ref.id === id && ref.state === 'healthy');
      assert.is(found, isMine);
      assert.is(
        fleet.templates.group(template).pool.candidates.some((ref) => ref.id === id),
        isMine,
      );
    }
    for (const template of harness.fleet.templates.names)
      assert.is(
        harness.fleet.templates.group(template).pool.candidates.length,
        harness.fleet.templates.group(template).refs.length,
      );
  }
}
