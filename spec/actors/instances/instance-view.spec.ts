// What is seen of an instance when its transport breaks its promises. What is seen otherwise is in instance-ref.spec.ts.

import * as assert from 'uvu/assert';
import { snapshotOf, stateOf, whyNot } from '../../../src/actors/instances/instance-view.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance view');
const check = onHarness(test);

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
  const { pid, stderr, score } = snapshotOf(stage.actor.getSnapshot(), {
    score: 7,
    ejection: undefined,
  });
  assert.equal([pid, stderr, score], [null, [], 7]);
});

check(
  'shows what a program has said so far while it starts, and why nothing came of it yet',
  async (stage) => {
    const seen = () => {
      const { pid, stderr, reason } = snapshotOf(stage.actor.getSnapshot(), {
        score: 7,
        ejection: undefined,
      });
      return { pid, stderr, reason };
    };
    stage.opener.last.start({ pid: 7, stderr: ['loading'], unmatchedMessages: 0 });
    assert.equal(seen(), { pid: 7, stderr: ['loading'], reason: null });
    stage.opener.last.start({ pid: 8, stderr: ['hello'], unmatchedMessages: 150 });
    const reason = 'it is still starting, and wrote 150 lines that are no JSON-RPC';
    assert.equal(seen(), { pid: 8, stderr: ['hello'], reason });
    stage.opener.last.fail('it never answered');
    await settled();
    assert.equal(seen(), { pid: null, stderr: [], reason: 'it never answered' });
    await stage.pass(stage.actor.getSnapshot().context.backOffMs);
    assert.equal(seen(), { pid: null, stderr: [], reason: 'it never answered' });
    stage.opener.last.start({ pid: 9, stderr: [], unmatchedMessages: 1 });
    assert.is(seen().reason, 'it never answered', 'what it failed of last says more');
    await stage.healthy();
    assert.equal(seen().reason, null);
  },
);

test.run();
