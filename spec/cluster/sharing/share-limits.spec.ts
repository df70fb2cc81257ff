// The rate limits that nodes share without Redis: which nodes are asked. Whole gateways: spec/system/nodes/divided-limits.spec.ts.

import * as assert from 'uvu/assert';
import type { DividedCounter } from '../../../src/auth/limits/rate-limiter.ts';
import { peerQuestions } from '../../../src/cluster/sharing/peer-questions.ts';
import { shareLimits } from '../../../src/cluster/sharing/share-limits.ts';
import type { ShownNode } from '../../../src/domain/nodes/nodes.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('shared limits');

test('a silent node is not asked: requests are not delayed for it', async () => {
  const asked: string[] = [];
  const counters: DividedCounter[] = [];
  shareLimits({
    limiter: { shareIn: (counter) => counters.push(counter) },
    process: 'A',
    now: systemClock.now,
    peers: peerQuestions({
      clock: systemClock,
      peers: {
        ofLife: (life) => {
          asked.push(life);
          return undefined;
        },
      },
      nodes: () => [node('A', 'live'), node('B', 'live'), node('C', 'silent')],
    }),
  });
  // A limit so small that each principal is counted at its home; some have each node as theirs.
  for (let id = 0; id < 20; id += 1) await counters[0]?.add(`user:${id}`, 1, 30);
  assert.equal([asked.includes('B'), asked.includes('C')], [true, false]);
});
test.run();

function node(life: string, state: ShownNode['state']): ShownNode {
  const since = '2026-11-26T00:00:00.000Z';
  const idle = { programs: 0, calls: 0, isDraining: false };
  return { id: life, life, address: undefined, version: '1', since, ...idle, state };
}
