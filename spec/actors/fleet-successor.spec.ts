// One instance takes the place of another: when it may open what the other had, what is told, what is left behind.
// Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { definition, Harness, settled, silent } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fleet: successors');
const MANAGED = { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' };
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('waits for the one with its endpoint under any id, and for several in turn', async () => {
  await harness.add('a', silent, { fields: MANAGED });
  harness.call('write');
  const oldBackend = harness.backend('a');
  void harness.fleet.remove('t', 'a', 30_000);
  const second = harness.fleet.add(definition('b', MANAGED));
  const third = harness.fleet.add(definition('b', MANAGED));
  await settled();
  assert.equal([second.state, third.state, harness.backends.has('b')], ['stopped', 'starting', false]);
  oldBackend.last.result();
  await settled();
  assert.equal([third.state, harness.backends.has('b')], ['healthy', true]);
});

test('can be closed while one waits for its endpoint', async () => {
  await harness.add('a', silent, { fields: MANAGED });
  harness.call('write');
  const successor = harness.fleet.add(definition('a', MANAGED));
  const closed = harness.fleet.close(1_000);
  mock.timers.tick(1_000);
  await closed;
  assert.is(successor.state, 'stopped');
});

test.run();
