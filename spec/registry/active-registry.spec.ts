// What was stored comes into force on this node, and is told. Over stores and several nodes: registry*.spec.ts.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { ActiveRegistry } from '../../src/registry/active-registry.ts';
import type { InProcessHandler } from '../../src/transports/transport.ts';
import { definition, Harness } from '../helpers/failing-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: inventory');
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

test('refuses one instance and one template too many, and no replacement', () => {
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

test('lists what is locked with the reason, and starts it when its secrets can be read again', () => {
  const locked = { ...http, headers: {}, locked: '"headers" cannot be read' };
  active.apply({ templates: [], instances: [locked] });
  const [member] = harness.fleet.members('r');
  assert.equal([member?.state, member?.reason], ['stopped', '"headers" cannot be read']);
  active.apply({ templates: [], instances: [http] });
  assert.equal(
    harness.fleet.members('r').map(({ state }) => state),
    ['starting'],
  );
});

test('becomes what is stored, tells of it, and finds nothing to do the second time', () => {
  const stored = { templates: [{ name: 'r', loadBalancer: { timeout: 5 } }], instances: [http, program] };
  active.apply(stored);
  assert.equal(active.definitions(), [http, program]);
  assert.equal(active.settings('r'), stored.templates[0]);
  assert.is(harness.fleet.group('r').policy.callTimeoutMs, 5_000);
  assert.equal(
    harness.fleet.refs('r').map(({ id }) => id),
    ['a'],
  );
  const { length } = harness.events;
  active.apply(structuredClone(stored));
  assert.is(harness.events.length, length);
  active.apply({ templates: [], instances: [] });
  assert.equal(active.definitions(), []);
  assert.is(active.has('r'), false);
  active.apply({ templates: [], instances: [http] });
  assert.equal(active.settings('r').loadBalancer, {}, 'nothing is left of what it had');
});

test('deletes a template that has nothing, and takes from one that has a definition only its settings', () => {
  const defined = new Set(['d']);
  const { fleet, emit } = harness;
  active = new ActiveRegistry({ fleet, policy: DEFAULT_POLICY, handlers, emit, defined });
  for (const template of ['d', 'r']) active.govern(template, { timeout: 5 });
  active.start(http);
  assert.throws(() => active.refuseNonEmpty('r'), /1 instance is registered: deregister it first/);
  assert.throws(() => active.refuseNonEmpty('none'), /No template named/);
  active.remove('r', 'a');
  for (const template of ['d', 'r']) {
    active.refuseNonEmpty(template);
    active.deleteTemplate(template);
  }
  assert.equal([active.has('d'), active.has('r'), active.settings('d').loadBalancer], [true, false, {}]);
  assert.is(harness.fleet.group('d').policy.callTimeoutMs, DEFAULT_POLICY.callTimeoutMs);
});

test('tells no secret of what it takes in, replaces, changes and drops', () => {
  active.apply({ templates: [], instances: [http, program] });
  active.apply({
    templates: [],
    instances: [
      { ...http, headers: {} },
      { ...program, metadata: {} },
    ],
  });
  active.apply({ templates: [], instances: [] });
  const facts = harness.events.filter(({ type }) => /registered|changed/.test(type));
  assert.equal(
    facts.map(({ type }) => type),
    [
      'template.changed',
      'instance.registered',
      'instance.registered',
      'instance.registered',
      'instance.changed',
      'instance.deregistered',
      'instance.deregistered',
      'template.changed',
    ],
  );
  assert.not(JSON.stringify(harness.events).includes(SECRET));
});

test('loads without a word', () => {
  active.load({ templates: [{ name: 's', loadBalancer: {} }], instances: [http] });
  assert.equal(
    harness.events.map(({ type }) => type),
    ['instance.starting'],
  );
  active.govern('s', { timeout: 1 });
  assert.is(harness.told('template.changed').length, 1);
});

test('runs what belongs to nobody or to this node, and everything without a name of its own', () => {
  const nodes = [undefined, 'here', 'there'].map((nodeId) =>
    nodeId === undefined ? http : { ...program, nodeId },
  );
  assert.equal(
    nodes.map((one) => active.runsHere(one)),
    [true, true, false],
  );
  const { fleet, emit } = harness;
  const alone = new ActiveRegistry({ fleet, policy: DEFAULT_POLICY, handlers, emit });
  assert.equal(
    nodes.map((one) => alone.runsHere(one)),
    [true, true, true],
  );
});

test('says what it does not know', async () => {
  assert.is(await codeOf(() => active.settings('x')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => active.get('x', 'a')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => active.remove('t', 'a')), 'SERVER_NOT_FOUND');
  assert.equal(
    [active.find('x', 'a'), active.has('x'), active.hasSettings('x', {})],
    [undefined, false, false],
  );
});

test.run();

function make(): ActiveRegistry {
  const { fleet, emit } = harness;
  return new ActiveRegistry({ fleet, policy: DEFAULT_POLICY, handlers, emit, nodeId: 'here' });
}
