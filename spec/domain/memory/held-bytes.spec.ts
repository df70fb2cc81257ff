// Limits, and bytes that are held in memory: which answer is cut, which body is refused, and the bounds by the memory.

import * as assert from 'uvu/assert';
import { QUEUE_WAIT_MS } from '../../../src/actors/fleet/wait-queue.ts';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { ANONYMOUS, grantPrincipalId } from '../../../src/domain/accounts/principal.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import {
  CONNECTION_BYTES,
  HeldBytes,
  type Holding,
  memoryBounds,
  TLS_CONNECTION_BYTES,
} from '../../../src/domain/memory/held-bytes.ts';
import { UserAmounts, UserShares } from '../../../src/domain/memory/user-shares.ts';
import { RESTART_FORGIVEN_MS } from '../../../src/domain/time/back-off.ts';
import { STDIN_END_MS, TERMINATE_MS } from '../../../src/programs/process-group.ts';
import { seeded } from '../../balancing/candidates.ts';
import { suite } from '../../helpers/suite.ts';

const GIB = 1024 ** 3;
const test = suite('held bytes');

/** A budget of 100 bytes, 60 per owner, with a clock that the spec moves. */
function setUp() {
  const clock = { nowMs: 0 };
  const held = new HeldBytes({ totalBytes: 100, ownerBytes: 60 }, () => clock.nowMs);
  const cut: string[] = [];
  const hold = (name: string, bytes: number): Holding => {
    const holding = held.hold(name.slice(0, 1), () => cut.push(name));
    holding.set(bytes);
    return holding;
  };
  return { held, cut, hold, clock };
}

test('keeps the amounts of owners like a Map, for any sequence of changes', () => {
  const random = seeded(9);
  const amounts = new UserAmounts();
  const expected = new Map<string, number>();
  for (let step = 0; step < 5_000; step += 1) {
    const owner = ['a', 'b', 'c', ''][Math.floor(random() * 4)] as string;
    const before = expected.get(owner) ?? 0;
    const change = random() < 0.4 ? 1 : -Math.min(before, 2);
    amounts.add(owner, change);
    if (before + change > 0) expected.set(owner, before + change);
    else expected.delete(owner);
    const total = [...expected.values()].reduce((sum, held) => sum + held, 0);
    assert.equal([amounts.held(owner), amounts.size, amounts.total], [before + change, expected.size, total]);
    assert.equal([...amounts.users].sort(), [...expected.keys()].sort());
  }
});

test('over the limit of an owner cut the holding of that owner with the most bytes for the longest time', () => {
  const { held, cut, hold, clock } = setUp();
  hold('b1', 30);
  hold('a-slow', 20);
  clock.nowMs = 1_000;
  hold('a-large', 35);
  const growing = hold('a-growing', 5);
  assert.ok(growing.set(10));
  assert.equal([cut, held.bytes], [['a-slow'], 75]);
});

test('over the total limit cut the owner that holds the most, not the one that adds', () => {
  const { held, cut, hold } = setUp();
  hold('a1', 50);
  hold('b1', 45);
  hold('c1', 30);
  assert.equal([cut, held.bytes], [['a1'], 75]);
});

test('of several clients of one user count as those of one owner', () => {
  for (const [own, others] of [
    [[35, 20, 10], []],
    [
      [40, 10],
      [45, 10],
    ],
  ] as const) {
    const { held, cut, hold } = setUp();
    for (const [index, bytes] of own.entries())
      held.hold(grantPrincipalId(`${index}`, 'ann'), () => cut.push(`ann's ${bytes}`)).set(bytes);
    for (const bytes of others) hold('b', bytes);
    assert.equal(cut, [`ann's ${own[0]}`]);
  }
});

test('are crowded when these bytes would cut a new holding of the owner of about their size', () => {
  const { held, cut, hold, clock } = setUp();
  hold('a1', 40);
  assert.equal(
    [held.isCrowded('a', 20), held.isCrowded('a', 21), held.isCrowded('b', 60)],
    [false, true, false],
  );
  // A much larger one is cut, and so is one that is not new.
  hold('a2', 10);
  assert.equal([held.isCrowded('a', 19), held.isCrowded('a', 20)], [false, true]);
  clock.nowMs = 10_000;
  assert.not(held.isCrowded('a', 60));
  // Of all owners together the one that holds the most is cut.
  hold('b1', 45);
  hold('c1', 1);
  assert.equal([held.isCrowded('c', 20), cut], [false, []]);
});

test('cut the holding that grows if it is the largest, and refuse it from then on', () => {
  const { held, cut, hold } = setUp();
  const holding = hold('a1', 40);
  assert.not(holding.set(61));
  assert.not(holding.set(10));
  assert.equal([cut, held.bytes], [['a1'], 0]);
});

test('are released once', () => {
  const { held, hold } = setUp();
  const holding = hold('a1', 40);
  holding.set(20);
  assert.is(held.bytes, 20);
  holding.release();
  holding.release();
  assert.is(held.bytes, 0);
});

test('refuse calls of an owner near its limit, and near the total limit of every owner that holds bytes', () => {
  const { held, hold } = setUp();
  hold('a1', 40);
  assert.not(held.isPressed('a'));
  const more = hold('a2', 10);
  assert.equal([held.isPressed('a'), held.isPressed('b')], [true, false]);
  hold('b1', 30);
  more.release();
  hold('a3', 8);
  assert.ok(held.of('b').refuses('tools/call', 'user'));
  assert.not(held.of('b').refuses('ping', 'user'));
  assert.not(held.isPressed('c'));
});

test('of bodies are refused over the limit of their owner, while other owners are served', () => {
  const budget = new UserShares(100, 40);
  const taken = [budget.take('a', 40), budget.take('a', 1), budget.take('b', 40)];
  assert.equal([taken, budget.total], [[true, false, true], 80]);
});

test('of callers without authentication have no share: all bytes may be theirs', () => {
  const shares = new UserShares(100, 40);
  assert.equal([shares.take(ANONYMOUS.id, 100), shares.take(ANONYMOUS.id, 1)], [true, false]);
  assert.equal(shares.exceededBy(ANONYMOUS.id), { most: 100, isShare: false });
  const held = new HeldBytes({ totalBytes: 100, ownerBytes: 40 }, () => 0);
  const holding = held.hold(ANONYMOUS.id, () => {});
  assert.equal([holding.set(70), held.isPressed(ANONYMOUS.id)], [true, false]);
  assert.equal([holding.set(80), held.isPressed(ANONYMOUS.id)], [true, true]);
});

test('of bodies are refused over the total limit, and are not counted then', () => {
  const budget = new UserShares(100, 100);
  assert.equal([budget.take('a', 90), budget.take('b', 11), budget.held('b')], [true, false, 0]);
  assert.ok(budget.take('b', 10));
});

test('of bodies list no owner that released all bytes', () => {
  const budget = new UserShares(100, 100);
  budget.take('a', 10);
  budget.take('b', 30);
  budget.add('b', -30);
  assert.equal([...budget.users], ['a']);
});

test('are bounded by the memory, but allow one message of the largest size', () => {
  const { requests, backendAnswers } = memoryBounds(GIB);
  assert.equal(requests, { totalBytes: GIB / 8, ownerBytes: GIB / 32 });
  assert.equal(backendAnswers, { totalBytes: GIB / 8, ownerBytes: LIMITS.backendMessageBytes });
  const small = memoryBounds(0.1 * GIB);
  assert.is(small.backendAnswers.totalBytes, LIMITS.backendMessageBytes);
  assert.ok(small.requests.ownerBytes >= LIMITS.requestBodyBytes);
});

test('have limits in a consistent order: messages, the end of a child, queue waits and restart delays', () => {
  const { inspectedResultBytes, parsedMessageBytes, backendMessageBytes, callDefaultBoundMs } = LIMITS;
  assert.ok(inspectedResultBytes < parsedMessageBytes && parsedMessageBytes < backendMessageBytes);
  assert.ok(STDIN_END_MS + TERMINATE_MS < LIMITS.graceMs);
  const { callTimeoutMs } = DEFAULT_POLICY;
  assert.ok(QUEUE_WAIT_MS < callTimeoutMs && callTimeoutMs <= callDefaultBoundMs);
  const { restartFirstMs, restartLongestMs } = LIMITS;
  assert.ok(restartFirstMs < restartLongestMs && restartLongestMs < RESTART_FORGIVEN_MS);
});

test('connections have an eighth of the memory, with TLS a quarter of their number', () => {
  const numbers = [CONNECTION_BYTES, TLS_CONNECTION_BYTES].map(
    (bytes) => memoryBounds(GIB, bytes).connections.total,
  );
  assert.equal(numbers, [8_192, 2_048]);
});

test.run();
