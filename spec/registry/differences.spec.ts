// What has to happen so that a node runs what is stored.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { differences } from '../../src/registry/active-registry.ts';
import { definition } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: differences');
const NOTHING = { gone: [], added: [], replaced: [], changed: [] };
const http = (id: string, fields: Partial<InstanceDefinition> = {}) =>
  definition(id, { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp', ...fields });

test('finds nothing to do when both are the same, in whatever order', () => {
  const [a, b] = [http('a', { metadata: { x: 1, y: [2] } }), http('b')];
  assert.equal(differences([a, b], [structuredClone(b), { ...a, metadata: { y: [2], x: 1 } }]), NOTHING);
});

test('tells what is gone, what is added, what is replaced and what is changed', () => {
  const [stays, goes, moves, grows] = [http('s'), http('g'), http('m'), http('w')];
  const moved = { ...moves, endpoint: 'http://127.0.0.1:8/mcp' };
  const grown = { ...grows, weight: 3 };
  const fresh = http('f');
  assert.equal(differences([stays, goes, moves, grows], [fresh, grown, moved, stays]), {
    gone: [goes],
    added: [fresh],
    replaced: [moved],
    changed: [grown],
  });
});

test('tells templates apart that have the same ids', () => {
  const [here, there] = [http('a'), http('a', { template: 's', serverId: 's.a' })];
  assert.equal(differences([here], [there]), { ...NOTHING, gone: [here], added: [there] });
});

for (const fields of [
  { endpoint: 'http://127.0.0.1:8/mcp' },
  { command: 'run' },
  { args: ['x'] },
  { workingDir: '/srv' },
  { env: { KEY: 'v' } },
  { headers: { authorization: 'v' } },
  { nodeId: 'other' },
  { transport: 'stdio' },
] as const) {
  test(`replaces an instance whose ${Object.keys(fields)} is another`, () => {
    const [before, after] = [http('a'), http('a', { ...fields, weight: 2 })];
    assert.equal(differences([before], [after]), { ...NOTHING, replaced: [after] });
  });
}

for (const fields of [
  { weight: 2 },
  { metadata: { zone: 'x' } },
  { updatedAt: '2026-01-02T00:00:00.000Z' },
  { source: 'file', fingerprint: 'f' },
] as const) {
  test(`lets an instance go on whose ${Object.keys(fields)} is another`, () => {
    const [before, after] = [http('a'), http('a', fields)];
    assert.equal(differences([before], [after]), { ...NOTHING, changed: [after] });
  });
}

test('takes an instance with another server id for another instance', () => {
  const [before, after] = [http('a'), http('a', { serverId: 't.a' })];
  assert.equal(differences([before], [after]), { ...NOTHING, gone: [before], added: [after] });
});

test('leaves functions alone, and what is stored under their names aside', () => {
  const functions = [definition('a'), definition('b', { serverId: 'free' })];
  const stored = [http('a', { serverId: 'x' }), http('c', { template: 's', serverId: 'free' })];
  assert.equal(differences(functions, stored), NOTHING);
  assert.equal(differences(functions, []), NOTHING);
  assert.equal(differences([], stored), { ...NOTHING, added: stored });
});

test('applied, makes the one what the other is', () => {
  const some = fc.uniqueArray(
    fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      weight: fc.integer({ min: 1, max: 2 }),
      endpoint: fc.constantFrom('http://127.0.0.1:8/mcp', 'http://127.0.0.1:9/mcp'),
    }),
    { selector: ({ id }) => id },
  );
  fc.assert(
    fc.property(some, some, (known, stored) => {
      const [before, after] = [known.map((one) => http(one.id, one)), stored.map((one) => http(one.id, one))];
      const { gone, added, replaced, changed } = differences(before, after);
      const result = new Map(before.map((one) => [one.id, one]));
      for (const { id } of gone) assert.ok(result.delete(id));
      for (const one of added) assert.not(result.has(one.id));
      for (const one of [...replaced, ...changed]) assert.ok(result.has(one.id));
      for (const one of [...added, ...replaced, ...changed]) result.set(one.id, one);
      assert.equal(sorted([...result.values()]), sorted(after));
    }),
  );
});

test.run();

function sorted(definitions: readonly InstanceDefinition[]): InstanceDefinition[] {
  return definitions.toSorted((one, other) => (one.id < other.id ? -1 : 1));
}
