// When the lists of a template count as changed: by notices of instances, and by instances that are added or removed.

import * as assert from 'uvu/assert';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { Harness } from '../../helpers/backends/harness.ts';
import { HANDSHAKE, ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('capability changes');
const TOOLS: Partial<Handshake> = { capabilities: { tools: {} }, greeting: { serverInfo: { name: 'one' } } };
const OTHER: Partial<Handshake> = {
  capabilities: { tools: {}, resources: {}, prompts: {} },
  greeting: { serverInfo: { name: 'other' } },
};

let harness = new Harness();
let received: string[] = [];
let isOver = false;

simulateTime(test, () => {
  harness = new Harness();
  received = [];
  isOver = false;
  harness.fleet.listChanged$.subscribe({
    next: ({ template, list }) => received.push(`${template} ${list}`),
    complete: () => {
      isOver = true;
    },
  });
});
test.after.each(() => harness.close());

const taken = () => received.splice(0);

const add = (id: string, handshake: Partial<Handshake>) => harness.add(id, { handshake, tools: [] });

test('servers that do not describe themselves count as different', async () => {
  const bare: Handshake = { ...HANDSHAKE, era: 'bare', greeting: {} }; // they are all described by the same object
  harness.open = async () => Object.assign(new ScriptedTransport(), { handshake: bare });
  await add('a', {});
  taken();
  await add('b', {});
  assert.equal(taken(), ['t tools', 't prompts', 't resources']);
});

test('reports nothing when one of several equal instances restarts', async () => {
  await add('a', TOOLS);
  await add('b', TOOLS);
  taken();
  harness.backend('a').disconnect();
  await settled();
  await pass(500);
  assert.is(harness.ref('a').state, 'healthy');
  assert.equal(taken(), []);
});

test('ignores the tools of a drained instance, unless it was the last one', async () => {
  await add('a', TOOLS);
  taken();
  harness.ref('a').drain();
  assert.equal(taken(), []);
  await add('b', OTHER);
  assert.equal(taken(), ['t tools', 't prompts', 't resources']);
  harness.ref('b').drain();
  harness.ref('b').resume();
  assert.equal(taken(), []);
  harness.ref('a').resume();
  taken();
  harness.ref('a').drain();
  assert.equal(taken(), ['t tools']);
  harness.ref('a').resume();
  assert.equal(taken(), ['t tools']);
});

test('reports nothing when an equal instance replaces a drained one', async () => {
  await add('a', OTHER);
  taken();
  harness.ref('a').drain();
  await add('b', OTHER);
  assert.equal(taken(), []);
  harness.ref('a').resume();
  void harness.fleet.remove('t', 'b', 0);
  assert.equal(taken(), []);
});

test('passes on the notices of instances, and is completed by the creator of the fleet', async () => {
  await add('a', TOOLS);
  taken();
  harness.backend('a').sendNotification('notifications/prompts/list_changed');
  assert.equal(taken(), ['t prompts']);
  await harness.fleet.close(0);
  assert.is(isOver, false);
});

test.run();
