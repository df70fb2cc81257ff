// The end of a fleet: nobody is chosen any more, running calls have the grace, then everything is ended and nothing is
// left behind. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import { answers, definition, Harness, settled, silent, told } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fleet: closing');
const GRACE_MS = 10_000;
let harness = new Harness();
let isClosed = false;

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
  isClosed = false;
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('closes at once when nothing runs', async () => {
  await harness.add('a', answers());
  await harness.add('b', answers());
  await harness.fleet.close(GRACE_MS);
  assert.equal([harness.backend('a').isClosed, harness.backend('b').isClosed], [true, true]);
  assert.equal([harness.fleet.all(), harness.fleet.inFlight], [[], 0]);
});

test('answers what is left with an error when the grace is over', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  const calls = Array.from({ length: 10 }, () => harness.call('read', { timeoutMs: 60_000 }));
  close();
  await tick(GRACE_MS);
  for (const { end } of calls) {
    assert.equal(told(await end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  }
  assert.is(isClosed, true);
});

test('gives those that leave already no more than the grace', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  const running = harness.call('write', { instanceId: 'a', timeoutMs: 60_000 });
  void harness.fleet.remove('t', 'a', 30_000);
  close();
  await tick(GRACE_MS);
  assert.equal(told(await running.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.is(isClosed, true);
});

test('starts nothing any more', async () => {
  close();
  for (const template of ['t', 'x']) {
    let code = 'started';
    try {
      harness.fleet.add(definition('late', { template }));
    } catch (thrown) {
      if (thrown instanceof GatewayError) code = thrown.code;
    }
    assert.is(code, 'SHUTTING_DOWN');
  }
});

test('reports the end of every instance', async () => {
  for (const id of ['a', 'b', 'c']) await harness.add(id, silent);
  await harness.fleet.close(GRACE_MS);
  assert.equal(
    harness.told('instance.stopped').map(({ instanceId }) => instanceId),
    ['a', 'b', 'c'],
  );
});

test.run();

function close(): void {
  void harness.fleet.close(GRACE_MS).then(() => {
    isClosed = true;
  });
}

async function tick(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await settled();
}
