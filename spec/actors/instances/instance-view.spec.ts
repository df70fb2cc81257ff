// What is seen of an instance when its transport breaks its promises. What is seen otherwise is in instance-ref.spec.ts.

import * as assert from 'uvu/assert';
import { snapshotOf } from '../../../src/actors/instances/instance-view.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance view');
const check = onHarness(test);

check(
  'shows what a program has said so far while it starts, and why nothing came of it yet',
  async (harness) => {
    const seen = () => {
      const { pid, stderr, reason } = snapshotOf(harness.actor.getSnapshot(), {
        score: 7,
        ejection: undefined,
      });
      return { pid, stderr, reason };
    };
    harness.opener.last.start({ pid: 7, stderr: ['loading'], unmatchedMessages: 0 });
    assert.equal(seen(), { pid: 7, stderr: ['loading'], reason: null });
    harness.opener.last.start({ pid: 8, stderr: ['hello'], unmatchedMessages: 150 });
    const reason = 'it is still starting, and wrote 150 lines that are no JSON-RPC';
    assert.equal(seen(), { pid: 8, stderr: ['hello'], reason });
    harness.opener.last.fail('it never answered');
    await settled();
    assert.equal(seen(), { pid: null, stderr: [], reason: 'it never answered' });
    await harness.pass(harness.actor.getSnapshot().context.backOffMs);
    assert.equal(seen(), { pid: null, stderr: [], reason: 'it never answered' });
    harness.opener.last.start({ pid: 9, stderr: [], unmatchedMessages: 1 });
    assert.is(seen().reason, 'it never answered', 'what it failed of last says more');
    await harness.healthy();
    assert.equal(seen().reason, null);
  },
);

test.run();
