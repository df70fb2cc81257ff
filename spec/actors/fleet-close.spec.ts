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
let stage = new Harness();
let isClosed = false;

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  stage = new Harness();
  isClosed = false;
});
test.after.each(() => {
  mock.timers.reset();
  return stage.close();
});

test('closes at once when nothing runs', async () => {
  await stage.add('a', answers());
  await stage.add('b', answers());
  await stage.fleet.close(GRACE_MS);
  assert.equal([stage.backend('a').isClosed, stage.backend('b').isClosed], [true, true]);
  assert.equal([stage.fleet.all(), stage.fleet.inFlight], [[], 0]);
});

test('offers nobody from the first moment, and lets running calls finish', async () => {
  await stage.add('a', silent);
  const running = stage.call('write');
  close();
  assert.is(stage.fleet.group('t').pool.size, 0);
  await tick(GRACE_MS - 1);
  assert.is(isClosed, false);
  stage.backend('a').last.result();
  assert.is(await running.end, 'a');
  await settled();
  assert.is(isClosed, true);
});

test('answers what is left with an error when the grace is over', async () => {
  await stage.add('a', silent);
  await stage.add('b', silent);
  const calls = Array.from({ length: 10 }, () => stage.call('read', { timeoutMs: 60_000 }));
  close();
  await tick(GRACE_MS);
  for (const { end } of calls) {
    assert.equal(told(await end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  }
  assert.is(isClosed, true);
});

test('gives those that leave already no more than the grace', async () => {
  await stage.add('a', silent);
  await stage.add('b', silent);
  const running = stage.call('write', { instanceId: 'a', timeoutMs: 60_000 });
  void stage.fleet.remove('t', 'a', 30_000);
  close();
  await tick(GRACE_MS);
  assert.equal(told(await running.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.is(isClosed, true);
});

test('waits for a backend that needs its time to end', async () => {
  await stage.add('a', silent);
  stage.backend('a').closesSlowly = true;
  close();
  await tick(1_000);
  assert.is(isClosed, false);
  stage.backend('a').finishClosing();
  await settled();
  assert.is(isClosed, true);
});

test('calls off the start of an instance', async () => {
  stage.open = startsForEver;
  const ref = stage.fleet.add(definition('a'));
  await settled();
  assert.is(ref.state, 'starting');
  close();
  await settled();
  assert.equal([ref.state, isClosed], ['stopped', true]);
});

test('does not wait for the restart of an instance', async () => {
  await stage.add('a', silent);
  stage.backend('a').lose();
  await settled();
  assert.is(stage.ref('a').state, 'unhealthy');
  await stage.fleet.close(GRACE_MS);
  const before = stage.events.length;
  await tick(60_000);
  assert.is(stage.events.length, before);
});

test('starts nothing any more', async () => {
  close();
  for (const template of ['t', 'x']) {
    let code = 'started';
    try {
      stage.fleet.add(definition('late', { template }));
    } catch (thrown) {
      if (thrown instanceof GatewayError) code = thrown.code;
    }
    assert.is(code, 'SHUTTING_DOWN');
  }
});

test('can be closed again, meanwhile and afterwards', async () => {
  await stage.add('a', silent);
  stage.call('write', { timeoutMs: 60_000 });
  close();
  const sooner = stage.fleet.close(1_000);
  await tick(1_000);
  await sooner;
  assert.is(isClosed, true);
  await stage.fleet.close(GRACE_MS);
  assert.is(stage.backend('a').closings >= 1, true);
});

test('tells the end of every instance', async () => {
  for (const id of ['a', 'b', 'c']) await stage.add(id, silent);
  await stage.fleet.close(GRACE_MS);
  assert.equal(
    stage.told('instance.stopped').map(({ instanceId }) => instanceId),
    ['a', 'b', 'c'],
  );
});

test.run();

function close(): void {
  void stage.fleet.close(GRACE_MS).then(() => {
    isClosed = true;
  });
}

async function tick(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await settled();
}
