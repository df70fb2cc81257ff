// The questions to the other nodes: what becomes of a long answer, and of one that several callers wait for.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { ForwardedAnswer } from '../../../src/domain/nodes/forwarding.ts';
import type { ShownNode } from '../../../src/domain/nodes/nodes.ts';
import { OtherMembers } from '../../../src/http/all-nodes/other-members.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock } from '../../helpers/time/simulated-time.ts';
import { schedulerWith } from '../../helpers/time/turns.ts';

const test = suite('questions to all nodes');

test('a long answer is parsed in one turn and checked in another one, once for all callers that share it', async () => {
  const answering: ForwardedAnswer[] = [];
  const turns: number[] = [];
  const otherMembers = new OtherMembers({
    clock: simulatedClock,
    scheduler: schedulerWith({ turn: async (cost = 1) => void turns.push(cost) }),
    nodes: () => [member('a'), member('b')],
    peers: {
      ofLife: () => ({
        node: 'b',
        forward: (_request, answer) => {
          answering.push(answer);
          return { isSent: true, cancel: () => {}, resume: () => {} };
        },
      }),
    },
  });
  let checks = 0;
  const shape = {
    accepts: (value: unknown): value is string[] => {
      checks += 1;
      return Array.isArray(value);
    },
  };
  const ask = () => otherMembers.ask({ target: '/servers', principal: ANONYMOUS, shape });
  const asked = [ask(), ask()];
  const text = JSON.stringify(['x'.repeat(1_000_000)]);
  assert.is(answering.length, 1);
  answering[0]?.head(200, {});
  answering[0]?.data(Buffer.from(text));
  answering[0]?.end();
  for (const { answers } of await Promise.all(asked)) assert.is(answers.get('b')?.[0]?.length, 1_000_000);
  assert.equal([checks, turns.length], [1, 2]);
  assert.ok(turns.every((cost) => cost > 20));
  assert.equal((await ask()).partial, []);
});

test.run();

function member(id: string): ShownNode {
  const shown = { version: '1', since: '', programs: 0, calls: 0, isDraining: false, address: undefined };
  return { ...shown, id, life: id.repeat(8), state: 'live' };
}
