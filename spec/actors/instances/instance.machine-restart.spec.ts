// The new session of an instance that is restarted by hand: when it is opened, and what the instance is then. What is
// waited for before is in instance.machine-duty.spec.ts.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, restart');
const check = onHarness(test);

check('waits until the old session is gone before it opens a new one by hand', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  stage.ref.restart();
  await stage.pass(5_000);
  assert.is(stage.opener.openings.length, 1);
  transport.finishClosing();
  await settled();
  assert.is(stage.opener.openings.length, 2);
});

check('opens a new session by hand also while a lost one still closes', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  transport.lose();
  await settled();
  stage.ref.restart();
  transport.finishClosing();
  await settled();
  assert.is(stage.opener.openings.length, 2);
});

check('does not wait for ever for an old session when it is restarted', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  stage.ref.restart();
  await stage.pass(LIMITS.drainMs);
  assert.is(stage.opener.openings.length, 2);
  transport.finishClosing();
  await stage.healthy();
  assert.is(stage.ref.state, 'healthy');
});

check('goes on draining after a restart when it drained before', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.drain();
  stage.ref.restart();
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([caller.error, stage.opener.openings.length], [undefined, 2]);
  await stage.healthy();
  assert.is(stage.ref.state, 'draining');
  stage.ref.resume();
  assert.is(stage.ref.state, 'healthy');
});

check('restarts a draining one after 30 s at the latest, too', async (stage) => {
  await stage.healthy();
  stage.call();
  stage.ref.drain();
  stage.ref.restart();
  await stage.pass(LIMITS.drainMs);
  await stage.healthy();
  assert.equal([stage.ref.state, stage.opener.openings.length], ['draining', 2]);
});

test.run();
