// What is seen of an instance when its transport breaks its promises. What is seen otherwise is in instance-ref.spec.ts.

import * as assert from 'uvu/assert';
import { snapshotOf, stateOf, whyNot } from '../../src/actors/instance-view.ts';
import { suite } from '../helpers/suite.ts';
import { onStage } from './instance-stage.ts';

const test = suite('instance view');
const check = onStage(test);

check('says in one word how it is, and why when that is not healthy', async (stage) => {
  const seen = () => [stateOf(stage.actor.getSnapshot()), whyNot(stage.actor.getSnapshot())];
  assert.equal(seen(), ['starting', null]);
  const transport = await stage.healthy();
  assert.equal(seen(), ['healthy', null]);
  transport.lose('exited with code 7');
  await stage.pass(0);
  assert.equal(seen(), ['unhealthy', 'exited with code 7']);
  stage.ref.drain();
  assert.is(seen()[0], 'draining');
});

check('shows an instance whose transport has no facts', async (stage) => {
  const transport = await stage.healthy();
  transport.thrownByFacts = new Error('no facts');
  const { pid, stderr, score, inFlight } = snapshotOf(stage.actor.getSnapshot(), { score: 7, inFlight: 3 });
  assert.equal([pid, stderr, score, inFlight], [null, [], 7, 3]);
});

test.run();
