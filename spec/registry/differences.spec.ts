// What has to happen so that a node runs what is stored.

import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { differences } from '../../src/registry/active-registry.ts';
import { definition } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: differences');
const NOTHING = { removed: [], added: [], replaced: [], changed: [] };
const http = (id: string, fields: Partial<InstanceDefinition> = {}) =>
  definition(id, { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp', ...fields });

test('tells what is removed, what is added, what is replaced and what is changed', () => {
  const [stays, goes, moves, grows] = [http('s'), http('g'), http('m'), http('w')];
  const moved = { ...moves, endpoint: 'http://127.0.0.1:8/mcp' };
  const grown = { ...grows, weight: 3 };
  const fresh = http('f');
  assert.equal(differences([stays, goes, moves, grows], [fresh, grown, moved, stays]), {
    removed: [goes],
    added: [fresh],
    replaced: [moved],
    changed: [grown],
  });
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

test('leaves functions alone, and what is stored under their names aside', () => {
  const functions = [definition('a'), definition('b', { serverId: 'free' })];
  const stored = [http('a', { serverId: 'x' }), http('c', { template: 's', serverId: 'free' })];
  assert.equal(differences(functions, stored), NOTHING);
  assert.equal(differences(functions, []), NOTHING);
  assert.equal(differences([], stored), { ...NOTHING, added: stored });
});

test.run();
