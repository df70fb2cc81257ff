// The part of the registry that is in force on this node, and its events. Over stores and several nodes: registry*.spec.ts.

import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import type { InstanceDefinition } from '../../src/domain/instances/instance.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { keptBytes } from '../../src/domain/memory/held-bytes.ts';
import { ActiveRegistry } from '../../src/registry/active-registry.ts';
import { REGISTRY_BOUNDS } from '../../src/registry/registry-bounds.ts';
import { ActiveDefinitions } from '../../src/templates/active-definitions.ts';
import type { InProcessHandler } from '../../src/transports/open-options.ts';
import { Harness } from '../helpers/backends/harness.ts';
import { definition } from '../helpers/backends/profiles.ts';
import { suite } from '../helpers/suite.ts';
import { simulatedClock } from '../helpers/time/simulated-time.ts';

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
  const instances = Array.from({ length: REGISTRY_BOUNDS.instances.most }, (_, index) =>
    definition(`i${index}`, {
      ...program,
      id: `i${index}`,
      serverId: `i${index}`,
      template: `t${index % LIMITS.templates}`,
    }),
  );
  [...active.apply({ templates: [], instances })];
  const named = (template: string, id: string) => definition(id, { ...program, template, id });
  assert.throws(() => active.refuseOverflow(named('t0', 'one more')), /10000 instances/);
  active.refuseOverflow(named('t0', 'i0'));
  [...active.apply({ templates: [], instances: instances.slice(1) })];
  active.refuseOverflow(named('t0', 'one more'));
  assert.throws(() => active.refuseOverflow(named('one-more', 'i0')), /2000 templates/);
});

test('bounds the memory of large definitions, whatever was replaced, changed and removed', () => {
  const large = (id: string, values = 900) =>
    definition(id, { ...program, id, serverId: id, metadata: { list: Array(values).fill({}) } });
  active.applySettings({ name: 'r', loadBalancer: {} });
  const bytes = keptBytes(large('i0000'));
  const most = Math.floor(REGISTRY_BOUNDS.instances.mostBytes / bytes);
  const ids = Array.from({ length: most }, (_, index) => `i${String(index).padStart(4, '0')}`);
  for (const id of ids) {
    active.refuseOverflow(large(id));
    active.start(large(id));
  }
  const isFull = () =>
    assert.throws(() => active.refuseOverflow(large('none')), /64 MiB of large definitions/);
  isFull();
  active.refuseOverflow(definition('small', { ...program, id: 'small' }));
  active.start(large('i0000'));
  active.change(large('i0001', 899));
  active.change(large('i0001'));
  isFull();
  assert.throws(() => active.refuseOverflow(large('i0000', 2_000)), /64 MiB/);
  active.remove('r', 'i0002');
  active.refuseOverflow(large('other'));
  active.start(large('other'));
  isFull();
  [...active.apply({ templates: [], instances: [large('other')] })];
  active.refuseOverflow(large('another'));
});

test('lists a locked instance with the reason, and starts it when its secrets can be read again', () => {
  const locked = { ...http, headers: {}, locked: '"headers" cannot be read' };
  [...active.apply({ templates: [], instances: [locked] })];
  const [member] = harness.fleet.templates.group('r').instances;
  assert.equal([member?.state, member?.reason], ['stopped', '"headers" cannot be read']);
  [...active.apply({ templates: [], instances: [http] })];
  const states = harness.fleet.templates.group('r').instances.map(({ state }) => state);
  assert.equal(states, ['starting']);
});

test('deletes an empty template, and only the settings of one with a definition', () => {
  const definitions = new ActiveDefinitions([{ id: 'd' }]);
  const { fleet, emit } = harness;
  active = new ActiveRegistry({
    clock: simulatedClock,
    fleet,
    policy: DEFAULT_POLICY,
    handlers,
    approvals: { setPinned: () => {} },
    emit,
    definitions,
  });
  for (const name of ['d', 'r']) active.applySettings({ name, loadBalancer: { timeout: 5 } });
  active.start(http);
  assert.throws(() => active.refuseNonEmpty('r'), /1 instance must be deregistered first/);
  assert.throws(() => active.refuseNonEmpty('none'), /No template named/);
  active.remove('r', 'a');
  for (const template of ['d', 'r']) {
    active.refuseNonEmpty(template);
    active.deleteTemplate(template);
  }
  assert.equal(
    [fleet.templates.has('d'), fleet.templates.has('r'), active.settings('d').loadBalancer],
    [true, false, {}],
  );
  assert.is(harness.fleet.templates.group('d').policy.callTimeoutMs, DEFAULT_POLICY.callTimeoutMs);
});

test('events of added, replaced, changed and removed instances have no secret', () => {
  [...active.apply({ templates: [], instances: [http, program] })];
  const changed = [
    { ...http, headers: {} },
    { ...program, metadata: {} },
  ];
  [...active.apply({ templates: [], instances: changed })];
  [...active.apply({ templates: [], instances: [] })];
  const facts = harness.events.filter(({ type }) => /registered|changed/.test(type));
  const types = facts.map(({ type }) => type);
  assert.equal(types, [
    ...['template.changed', 'instance.registered', 'instance.registered', 'instance.registered'],
    ...['instance.changed', 'instance.deregistered', 'instance.deregistered', 'template.changed'],
  ]);
  assert.not(JSON.stringify(harness.events).includes(SECRET));
});

test('replaces an instance whose backend changed, and keeps it after other changes', () => {
  const stored = definition('a', { ...http, headers: {} });
  const change = (fields: Partial<InstanceDefinition>) => {
    [...active.apply({ templates: [], instances: [stored] })];
    const before = harness.fleet.find('r', 'a');
    [...active.apply({ templates: [], instances: [{ ...stored, ...fields }] })];
    const after = harness.fleet.find('r', 'a');
    assert.equal(after?.definition, { ...stored, ...fields });
    return after === before ? 'kept' : 'replaced';
  };
  const backends: Partial<InstanceDefinition>[] = [
    ...[{ endpoint: 'http://127.0.0.1:8/mcp' }, { command: 'run' }, { args: ['x'] }, { workingDir: '/srv' }],
    ...[
      { env: { KEY: 'v' } },
      { secretEnv: ['A'] },
      { headers: { authorization: 'v' } },
      { nodeId: 'there' },
    ],
    ...[{ transport: 'stdio' } as const, { serverId: 'other' }, { force: true } as const],
    { container: { engine: 'unix:///e', id: '1' } },
  ];
  for (const fields of backends) assert.is(change(fields), 'replaced', `${Object.keys(fields)}`);
  const others = [{ weight: 2 }, { metadata: { zone: 'x' } }, { updatedAt: '2026-01-02T00:00:00.000Z' }];
  for (const fields of others) assert.is(change(fields), 'kept', `${Object.keys(fields)}`);
});

test('keeps functions, and ignores stored instances with their ids', () => {
  active.applySettings({ name: 'r', loadBalancer: {} });
  active.start(definition('a', { template: 'r' }), () => ({}));
  const other = definition('b', { ...http, template: 's', id: 'b', serverId: 'a' });
  for (const instances of [[http, other], []]) {
    [...active.apply({ templates: [], instances })];
    const found = active.instanceDefinitions().map(({ transport }) => transport);
    assert.equal(found, ['in-process']);
  }
});

test.run();

function make(): ActiveRegistry {
  const { fleet, emit } = harness;
  return new ActiveRegistry({
    clock: simulatedClock,
    fleet,
    policy: DEFAULT_POLICY,
    handlers,
    approvals: { setPinned: () => {} },
    definitions: new ActiveDefinitions(),
    emit,
    node: { id: 'here' },
  });
}
