// Failed logins that several nodes count together: throttles of simulated nodes. Whole gateways: spec/system/nodes/logins-of-nodes.spec.ts.

import * as assert from 'uvu/assert';
import {
  type LoginCounts,
  type LoginKeys,
  LoginThrottle,
} from '../../../src/auth/accounts/login-throttle.ts';
import { thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { codeOf } from '../auth-harness.ts';

const test = suite('failed logins at several nodes');

const MINUTE_MS = 60_000;

/** Nodes that ask each other. `away`: those that do not answer. Each has a clock of its own. */
function nodesOf(count: number, away: ReadonlySet<number> = new Set()) {
  const clock = { nowMs: 1_000.25 };
  const asked: string[] = [];
  const gate: { open: Promise<unknown> } = { open: Promise.resolve() };
  const nodes = Array.from({ length: count }, (_, own) => {
    const throttle = new LoginThrottle(() => clock.nowMs + own * 86_400_000.5);
    throttle.shareIn({
      lives: () => [own, ...nodes.keys()].filter((node, place) => place === 0 || node !== own).map(String),
      ask: async (life: string, keys: LoginKeys): Promise<LoginCounts | undefined> => {
        asked.push(`${own} asks ${life}`);
        await gate.open;
        return away.has(Number(life)) ? undefined : nodes[Number(life)]?.countsOf(keys);
      },
    });
    return throttle;
  });
  const attempt = (node: number, username = 'ada', address = '10.0.0.1') => {
    const throttle = nodes[node];
    assert.ok(throttle);
    return throttle.admit({ username, address });
  };
  /** The code of an attempt with a wrong password. */
  const fail = (node: number, username?: string, address?: string) =>
    codeOf(async () => {
      const counted = await attempt(node, username, address);
      counted.settle('wrong');
      if (counted.refusal !== undefined) throw counted.refusal;
    });
  return { clock, asked, gate, attempt, fail };
}

for (const [where, nodeOf] of [
  ['at one node', () => 0],
  ['in turn at all', (attempt: number) => attempt % 3],
  ['at one after the other', (attempt: number) => Math.floor(attempt / 4) % 3],
] as const)
  test(`ten failures of one user from one address are admitted ${where}, in each minute`, async () => {
    const { clock, fail } = nodesOf(3);
    for (let minute = 0; minute < 4; minute += 1) {
      const codes: string[] = [];
      for (let count = 0; count < 30; count += 1) {
        codes.push(await fail(nodeOf(count)));
        clock.nowMs += 1_000;
      }
      assert.is(codes.filter((code) => code === 'none').length, 10);
      assert.is(await fail(1, 'ada', '10.0.0.2'), 'none', 'another address');
      clock.nowMs += MINUTE_MS / 2;
    }
  });

test('attempts at all nodes at the same time do not exceed the limit', async () => {
  const { fail } = nodesOf(3);
  const codes = await Promise.all(Array.from({ length: 60 }, (_, count) => fail(count % 3)));
  const admitted = codes.filter((code) => code === 'none').length;
  assert.ok(admitted <= 10, `${admitted}`);
  // Those that refused each other are not counted: the rest of the limit is still there.
  for (let count = admitted; count < 10; count += 1) assert.is(await fail(count % 3), 'none');
  for (const node of [0, 1, 2]) assert.is(await fail(node), 'TOO_MANY_ATTEMPTS');
});

test('sixty failures of one address count at all nodes, and a user that did not fail may still try', async () => {
  const { fail, attempt } = nodesOf(2);
  for (let count = 0; count < 60; count += 1) assert.is(await fail(count % 2, `user ${count}`), 'none');
  for (const node of [0, 1]) {
    assert.is(await fail(node, 'user 0'), 'TOO_MANY_ATTEMPTS', 'it failed at one of them');
    const counted = await attempt(node, 'bob');
    assert.is(counted.refusal?.code, 'TOO_MANY_ATTEMPTS');
    counted.settle('right');
  }
  assert.is(await fail(0, 'eve'), 'TOO_MANY_ATTEMPTS');
  const refused = await codeOf(() => attempt(1, 'eve'));
  assert.is(refused, 'TOO_MANY_ATTEMPTS', 'its one failure was at the other node');
});

test('a success is subtracted, and failures before it stay counted everywhere', async () => {
  const { attempt, fail } = nodesOf(2);
  for (let count = 0; count < 40; count += 1) (await attempt(count % 2)).settle('right');
  for (let count = 0; count < 9; count += 1) assert.is(await fail(count % 2), 'none');
  (await attempt(1)).settle('right');
  assert.is(await fail(1), 'none');
  for (const node of [0, 1]) assert.is(await fail(node), 'TOO_MANY_ATTEMPTS');
});

test('an attempt in flight when its node joins the minute of another is subtracted, too', async () => {
  const { clock, gate, attempt, fail } = nodesOf(2);
  assert.is(await fail(1), 'none');
  clock.nowMs += 20_000;
  const answer = Promise.withResolvers<void>();
  gate.open = answer.promise;
  const all = Array.from({ length: 8 }, () => attempt(0));
  answer.resolve();
  for (const counted of await Promise.all(all)) counted.settle('right');
  for (let count = 0; count < 9; count += 1) assert.is(await fail(0), 'none');
  assert.is(await fail(0), 'TOO_MANY_ATTEMPTS');
});

test('the minute is the same at all nodes: staggered first failures do not add limits', async () => {
  const { clock, fail } = nodesOf(3);
  let admitted = 0;
  const fails = async (node: number, tries: number) => {
    for (let count = 0; count < tries; count += 1) if ((await fail(node % 3)) === 'none') admitted += 1;
  };
  // Minutes of their own would begin 20 s after each other, with one failure, and be used up just before their end.
  for (let turn = 0; turn < 30; turn += 1) {
    await fails(turn, 1);
    clock.nowMs += 19_000;
    if (turn >= 2) await fails(turn + 1, 12);
    clock.nowMs += 1_000;
  }
  assert.ok(admitted <= 110, `${admitted} in ten minutes`);
});

test('a minute of another node that is about to end is not joined: failures are not forgotten at once', async () => {
  const { clock, fail } = nodesOf(2);
  assert.is(await fail(1), 'none');
  clock.nowMs += MINUTE_MS - 500;
  for (let count = 0; count < 9; count += 1) assert.is(await fail(0), 'none');
  clock.nowMs += 1_000;
  assert.equal([await fail(1), await fail(0)], ['none', 'TOO_MANY_ATTEMPTS']);
});

test('the time to wait is that of the minute, at a node without a failure, too', async () => {
  const { clock, attempt, fail } = nodesOf(2);
  for (let count = 0; count < 10; count += 1) await fail(0);
  clock.nowMs += 12_500;
  const error = await thrownBy(() => attempt(1));
  assert.is(Object(error).facts.retryAfterSeconds, 48);
  clock.nowMs += 47_500;
  assert.is(await fail(1), 'none');
});

test('a node that does not answer keeps its share of the limit, also where no node hears another', async () => {
  const twoOfThree = nodesOf(3, new Set([2]));
  const codes: string[] = [];
  for (let count = 0; count < 30; count += 1) codes.push(await twoOfThree.fail(count % 2));
  assert.is(codes.filter((code) => code === 'none').length, 6);
  const apart = nodesOf(2, new Set([0, 1]));
  const admitted: string[] = [];
  for (let count = 0; count < 30; count += 1) admitted.push(await apart.fail(count % 2));
  assert.is(admitted.filter((code) => code === 'none').length, 10);
});

test('a node alone asks nothing, and an attempt that is refused here asks nothing', async () => {
  const alone = nodesOf(1);
  for (let count = 0; count < 12; count += 1) await alone.fail(0);
  assert.equal(alone.asked, []);
  const { asked, fail } = nodesOf(3);
  for (let count = 0; count < 50; count += 1) await fail(0);
  assert.equal(asked.length, 20, 'ten attempts asked two nodes each; the answers asked nobody');
});

test('while 64 attempts wait for other nodes, a node admits its share of the limit', async () => {
  const { gate, asked, attempt, fail } = nodesOf(2);
  const answer = Promise.withResolvers<void>();
  gate.open = answer.promise;
  const waiting = Array.from({ length: 64 }, (_, count) => attempt(0, 'ada', `10.0.1.${count}`));
  assert.is(asked.length, 64);
  const codes: string[] = [];
  for (let count = 0; count < 8; count += 1) codes.push(await fail(0));
  assert.is(asked.length, 64);
  assert.is(codes.filter((code) => code === 'none').length, 5);
  answer.resolve();
  for (const counted of await Promise.all(waiting)) counted.settle('right');
  assert.is(await fail(0), 'none', 'asked again');
});

test.run();
