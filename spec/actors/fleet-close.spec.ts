// The end of a fleet: nobody is chosen any more, running calls have the grace, then everything is ended and nothing is
// left behind. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import {
  answers,
  definition,
  Harness,
  settled,
  silent,
  startsForEver,
  told,
} from '../helpers/failing-backend.ts';
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

test('offers nobody from the first moment, and lets running calls finish', async () => {
  await harness.add('a', silent);
  const running = harness.call('write');
  close();
  assert.is(harness.fleet.group('t').pool.size, 0);
  await tick(GRACE_MS - 1);
  assert.is(isClosed, false);
  harness.backend('a').last.result();
  assert.is(await running.end, 'a');
  await settled();
  assert.is(isClosed, true);
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

test('waits for a backend that needs its time to end', async () => {
  await harness.add('a', silent);
  harness.backend('a').closesSlowly = true;
  close();
  await tick(1_000);
  assert.is(isClosed, false);
  harness.backend('a').finishClosing();
  await settled();
  assert.is(isClosed, true);
});

test('calls off the start of an instance', async () => {
  harness.open = startsForEver;
  const ref = harness.fleet.add(definition('a'));
  await settled();
  assert.is(ref.state, 'starting');
  close();
  await settled();
  assert.equal([ref.state, isClosed], ['stopped', true]);
});

test('does not wait for the restart of an instance', async () => {
  await harness.add('a', silent);
  harness.backend('a').lose();
  await settled();
  assert.is(harness.ref('a').state, 'unhealthy');
  await harness.fleet.close(GRACE_MS);
  const before = harness.events.length;
  await tick(60_000);
  assert.is(harness.events.length, before);
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

test('can be closed again, meanwhile and afterwards', async () => {
  await harness.add('a', silent);
  harness.call('write', { timeoutMs: 60_000 });
  close();
  const sooner = harness.fleet.close(1_000);
  await tick(1_000);
  await sooner;
  assert.is(isClosed, true);
  await harness.fleet.close(GRACE_MS);
  assert.is(harness.backend('a').closings >= 1, true);
});

test('tells the end of every instance', async () => {
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
