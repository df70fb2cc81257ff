// The part of the registry that is in force on this node, and its events. Over stores and several nodes: registry*.spec.ts.

import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { ActiveRegistry, differences } from '../../src/registry/active-registry.ts';
import type { InProcessHandler } from '../../src/transports/transport.ts';
import { definition, Harness } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('active registry');
const SECRET = 'a-planted-secret';
const http = definition('a', {
  template: 'r',
  transport: 'http',
  endpoint: `http://127.0.0.1:9/mcp?key=${SECRET}`,
  headers: { authorization: SECRET },
});
const program = definition('b', {
  template: 'r',
  transport: 'stdio',
  command: 'run',
  args: [SECRET],
  env: { KEY: SECRET },
  metadata: { note: SECRET },
  nodeId: 'there',
});
let harness = new Harness();
let handlers = new Map<string, InProcessHandler>();
let active = make();

test.before.each(() => {
  harness = new Harness();
  handlers = new Map();
  active = make();
});
test.after.each(() => harness.close());

test('refuses instances and templates above the limits, but no replacement', () => {
  const instances = Array.from({ length: LIMITS.instances }, (_, index) =>
    definition(`i${index}`, {
      ...program,
      id: `i${index}`,
      serverId: `i${index}`,
      template: `t${index % LIMITS.templates}`,
    }),
  );
  active.apply({ templates: [], instances });
  assert.throws(() => active.refuseOverflow('t0', 'one more'), /10000 instances/);
  active.refuseOverflow('t0', 'i0');
  active.apply({ templates: [], instances: instances.slice(1) });
  active.refuseOverflow('t0', 'one more');
  assert.throws(() => active.refuseOverflow('one-more', 'i0'), /2000 templates/);
});

test('lists a locked instance with the reason, and starts it when its secrets can be read again', () => {
  const locked = { ...http, headers: {}, locked: '"headers" cannot be read' };
  active.apply({ templates: [], instances: [locked] });
  const [member] = harness.fleet.members('r');
  assert.equal([member?.state, member?.reason], ['stopped', '"headers" cannot be read']);
  active.apply({ templates: [], instances: [http] });
  const states = harness.fleet.members('r').map(({ state }) => state);
  assert.equal(states, ['starting']);
});

test('deletes an empty template, and only the settings of one with a definition', () => {
  const defined = new Set(['d']);
  const { fleet, emit } = harness;
  active = new ActiveRegistry({ fleet, policy: DEFAULT_POLICY, handlers, emit, defined });
  for (const template of ['d', 'r']) active.applySettings(template, { timeout: 5 });
  active.start(http);
  assert.throws(() => active.refuseNonEmpty('r'), /1 instance must be deregistered first/);
  assert.throws(() => active.refuseNonEmpty('none'), /No template named/);
  active.remove('r', 'a');
  for (const template of ['d', 'r']) {
    active.refuseNonEmpty(template);
    active.deleteTemplate(template);
  }
  assert.equal([fleet.has('d'), fleet.has('r'), active.settings('d').loadBalancer], [true, false, {}]);
  assert.is(harness.fleet.group('d').policy.callTimeoutMs, DEFAULT_POLICY.callTimeoutMs);
});

test('events of added, replaced, changed and removed instances have no secret', () => {
  active.apply({ templates: [], instances: [http, program] });
  const changed = [
    { ...http, headers: {} },
    { ...program, metadata: {} },
  ];
  active.apply({ templates: [], instances: changed });
  active.apply({ templates: [], instances: [] });
  const facts = harness.events.filter(({ type }) => /registered|changed/.test(type));
  const types = facts.map(({ type }) => type);
  assert.equal(types, [
    ...['template.changed', 'instance.registered', 'instance.registered', 'instance.registered'],
    ...['instance.changed', 'instance.deregistered', 'instance.deregistered', 'template.changed'],
  ]);
  assert.not(JSON.stringify(harness.events).includes(SECRET));
});

const NOTHING = { removed: [], added: [], replaced: [], changed: [] };
const remote = (id: string, fields: Partial<InstanceDefinition> = {}) =>
  definition(id, { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp', ...fields });

test('replaces an instance whose backend changed, and keeps it after other changes', () => {
  const backends: Partial<InstanceDefinition>[] = [
    { endpoint: 'http://127.0.0.1:8/mcp' },
    { command: 'run' },
    { args: ['x'] },
    { workingDir: '/srv' },
    { env: { KEY: 'v' } },
    { headers: { authorization: 'v' } },
    { nodeId: 'other' },
    { transport: 'stdio' },
  ];
  for (const fields of backends) {
    const [before, after] = [remote('a'), remote('a', { ...fields, weight: 2 })];
    assert.equal(differences([before], [after]), { ...NOTHING, replaced: [after] }, `${Object.keys(fields)}`);
  }
  const others = [{ metadata: { zone: 'x' } }, { updatedAt: '2026-01-02T00:00:00.000Z' }];
  for (const fields of [{ weight: 2 }, ...others, { source: 'file', fingerprint: 'f' } as const]) {
    const [before, after] = [remote('a'), remote('a', fields)];
    assert.equal(differences([before], [after]), { ...NOTHING, changed: [after] }, `${Object.keys(fields)}`);
  }
});

test('keeps functions, and ignores stored instances with their ids', () => {
  const functions = [definition('a'), definition('b', { serverId: 'free' })];
  const stored = [remote('a', { serverId: 'x' }), remote('c', { template: 's', serverId: 'free' })];
  assert.equal(differences(functions, stored), NOTHING);
  assert.equal(differences(functions, []), NOTHING);
  assert.equal(differences([], stored), { ...NOTHING, added: stored });
});

test.run();

function make(): ActiveRegistry {
  const { fleet, emit } = harness;
  return new ActiveRegistry({ fleet, policy: DEFAULT_POLICY, handlers, emit, nodeId: 'here' });
}
