// Many changes of the same few ids at the same time, in orders and over store delays that are made up by fast-check; a
// failing one is printed with its seed. Whatever happens, store, fleet, pool and functions end up saying the same.

import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../src/domain/policy.ts';
import { Registry } from '../src/registry.ts';
import { importContents } from '../src/registry-sync.ts';
import type { InProcessHandler } from '../src/transports/transport.ts';
import { answers, Harness } from './helpers/failing-backend.ts';
import { FailingStore } from './helpers/failing-store.ts';
import { suite } from './helpers/suite.ts';

const test = suite('registry: races', { timeoutMs: 60_000 });
const IDS = ['a', 'b', 'c'] as const;

interface Change {
  readonly kind: 'register' | 'registerFunction' | 'deregister' | 'change';
  readonly id: (typeof IDS)[number];
  readonly weight: number;
  /** Turns of the event loop between this change and the one before. */
  readonly after: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('register', 'registerFunction', 'deregister', 'change'),
  id: fc.constantFrom(...IDS),
  weight: fc.integer({ min: 1, max: 1_000 }),
  after: fc.integer({ min: 0, max: 3 }),
});
const delays = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 20 });

test('ends as if the changes had been made one by one, in the order in which they were asked for', () =>
  fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 25 }), delays, async (changes, turns) => {
      const world = open(turns);
      const expected = new Map<string, number>();
      const made: Promise<unknown>[] = [];
      for (const one of changes) {
        for (let left = one.after; left > 0; left -= 1) await turn();
        made.push(make(world.registry, one));
        remember(expected, one);
      }
      await Promise.all(made);
      await isInStep(world);
      const found = world.registry.active.definitions().map(({ id, weight }) => [id, weight]);
      assert.equal(found.sort(), [...expected].sort());
      await world.harness.close();
    }),
    { numRuns: 150 },
  ));

test('stays in step while files are imported', () =>
  fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), delays, async (changes, turns) => {
      const world = open(turns);
      const entries = IDS.map((id) => ({
        template: 't',
        fingerprint: 'f1',
        input: { id, endpoint: 'http://127.0.0.1:9/mcp' },
      }));
      const made: Promise<unknown>[] = [];
      for (const [index, one] of changes.entries()) {
        if (index % 3 === 0) made.push(importContents(world.registry, { templates: [], entries }));
        if (index % 3 === 2) made.push(importContents(world.registry, { templates: [], entries: [] }));
        for (let left = one.after; left > 0; left -= 1) await turn();
        made.push(make(world.registry, one));
      }
      await Promise.all(made);
      await isInStep(world);
      await world.harness.close();
    }),
    { numRuns: 100 },
  ));

test.run();

function open(turns: readonly number[]) {
  const harness = new Harness();
  const store = new FailingStore();
  let draws = 0;
  store.turns = () => {
    draws += 1;
    return turns[draws % turns.length] ?? 0;
  };
  for (const id of IDS) harness.rewrite(id, answers(), []);
  const handlers = new Map<string, InProcessHandler>();
  const { fleet, emit } = harness;
  const registry = new Registry({ store, fleet, policy: DEFAULT_POLICY, handlers, emit });
  return { harness, store, handlers, registry };
}

/** An unknown instance is an answer like any other. */
async function make(registry: Registry, { kind, id, weight }: Change): Promise<unknown> {
  try {
    if (kind === 'deregister') return await registry.deregister('t', id);
    if (kind === 'change') return await registry.changeInstance('t', id, { weight });
    if (kind === 'register') {
      return await registry.register('t', { id, weight, endpoint: 'http://127.0.0.1:9/mcp' });
    }
    return await registry.register('t', { id, weight }, { handler: () => ({}) });
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'SERVER_NOT_FOUND') return thrown;
    throw thrown;
  }
}

function remember(expected: Map<string, number>, { kind, id, weight }: Change): void {
  if (kind === 'deregister') expected.delete(id);
  else if (kind !== 'change' || expected.has(id)) expected.set(id, weight);
}

async function isInStep({ harness, store, handlers, registry }: ReturnType<typeof open>): Promise<void> {
  for (let left = 5; left > 0; left -= 1) await turn();
  const refs = harness.fleet.refs('t');
  const definitions = registry.active.definitions();
  const isFunction = ({ transport }: { transport: string }) => transport === 'in-process';
  assert.equal(
    definitions.filter((one) => !isFunction(one)).sort(byId),
    (await store.listInstances()).sort(byId),
    'fleet and store',
  );
  assert.equal(
    [...handlers.keys()].sort(),
    definitions
      .filter(isFunction)
      .map(({ id }) => id)
      .sort(),
  );
  assert.equal(
    harness.fleet
      .group('t')
      .pool.candidates.map(({ id }) => id)
      .sort(),
    refs.map(({ id }) => id).sort(),
  );
  for (const ref of refs) {
    assert.is(ref.state, 'healthy');
    assert.is(harness.fleet.group('t').pool.candidates.includes(ref), true);
    assert.is(harness.fleet.byServerId(ref.serverId), ref);
  }
  for (const id of IDS)
    assert.is(harness.fleet.isServerIdTaken(id), harness.fleet.find('t', id) !== undefined);
}

function byId(first: { readonly id: string }, second: { readonly id: string }): number {
  return first.id < second.id ? -1 : 1;
}
