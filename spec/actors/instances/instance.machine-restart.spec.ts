// The new session of an instance that is restarted by hand: when it is opened, and what the instance is then. What is
// waited for before is in instance.machine-duty.spec.ts.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, restart');
const check = onHarness(test);

check('waits until the old session is gone before it opens a new one by hand', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  harness.ref.restart();
  await harness.pass(5_000);
  assert.is(harness.opener.openings.length, 1);
  transport.finishClosing();
  await settled();
  assert.is(harness.opener.openings.length, 2);
});

check('opens a new session by hand also while a lost one still closes', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  transport.lose();
  await settled();
  harness.ref.restart();
  transport.finishClosing();
  await settled();
  assert.is(harness.opener.openings.length, 2);
});

check('does not wait for ever for an old session when it is restarted', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  harness.ref.restart();
  await harness.pass(LIMITS.drainMs);
  assert.is(harness.opener.openings.length, 2);
  transport.finishClosing();
  await harness.healthy();
  assert.is(harness.ref.state, 'healthy');
});

check('goes on draining after a restart when it drained before', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  harness.ref.drain();
  harness.ref.restart();
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([caller.error, harness.opener.openings.length], [undefined, 2]);
  await harness.healthy();
  assert.is(harness.ref.state, 'draining');
  harness.ref.resume();
  assert.is(harness.ref.state, 'healthy');
});

check('restarts a draining one after 30 s at the latest, too', async (harness) => {
  await harness.healthy();
  harness.call();
  harness.ref.drain();
  harness.ref.restart();
  await harness.pass(LIMITS.drainMs);
  await harness.healthy();
  assert.equal([harness.ref.state, harness.opener.openings.length], ['draining', 2]);
});

test.run();
