// What is kept of a stream, and the bounds of it.

import * as assert from 'uvu/assert';
import { EventBudget, StreamLog } from '../../../src/protocol/legacy/legacy-event-log.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('legacy event log');
const MIB = 1024 * 1024;
const numbersAfter = (log: StreamLog, number: number) => log.after(number).map((event) => event.number);

test('gives back what came after a number, oldest first', () => {
  const log = new StreamLog(EventBudget.ofSession());
  for (const number of [1, 2, 3]) log.append(number, `${number}`);
  assert.equal(
    log.after(1).map(({ data }) => data),
    ['2', '3'],
  );
  assert.equal(numbersAfter(log, 9), []);
});

test('the 256 latest stay', () => {
  const log = new StreamLog(EventBudget.ofSession());
  for (let number = 1; number <= 300; number += 1) log.append(number, 'x');
  assert.equal([numbersAfter(log, 0)[0], log.after(0).length, log.bytes], [45, 256, 256]);
});

test('1 MiB of them stays', () => {
  const log = new StreamLog(EventBudget.ofSession());
  for (let number = 1; number <= 5; number += 1) log.append(number, Buffer.alloc(MIB / 4));
  assert.equal([numbersAfter(log, 0), log.bytes], [[2, 3, 4, 5], MIB]);
  assert.is(log.append(6, Buffer.alloc(MIB + 1)), false);
  assert.equal(numbersAfter(log, 0), [2, 3, 4, 5]);
});

test('bytes are counted, not characters', () => {
  const log = new StreamLog(EventBudget.ofSession());
  log.append(1, 'é€');
  assert.is(log.bytes, 5);
});

test('4 MiB of all streams of a session stay', () => {
  const budget = EventBudget.ofSession();
  const logs = Array.from({ length: 5 }, () => new StreamLog(budget));
  const kept = logs.map((log) => log.append(1, Buffer.alloc(MIB)));
  assert.equal([kept, budget.bytes], [[true, true, true, true, false], 4 * MIB]);
  logs[0]?.clear();
  assert.is(budget.bytes, 3 * MIB);
  assert.is(logs[4]?.append(2, Buffer.alloc(MIB)), true);
});

test('room is made of its own events, never of those of others', () => {
  const budget = EventBudget.ofSession();
  const [full, tight] = [new StreamLog(budget), new StreamLog(budget)];
  budget.count(3 * MIB);
  full.append(1, Buffer.alloc(MIB / 2));
  tight.append(1, Buffer.alloc(MIB / 2));
  assert.is(tight.append(2, Buffer.alloc(MIB / 4)), true);
  assert.equal([numbersAfter(full, 0), numbersAfter(tight, 0)], [[1], [2]]);
});

test('what is spare goes before an event of its own, and before one is refused', () => {
  const budget = EventBudget.ofSession();
  const log = new StreamLog(budget);
  budget.count(3 * MIB + 10);
  const spare = {
    bytes: MIB / 2,
    discard: () => {
      budget.removeSpare(spare);
      budget.count(-spare.bytes);
    },
  };
  budget.count(spare.bytes);
  budget.addSpare(spare);
  log.append(1, Buffer.alloc(MIB / 4));
  assert.is(log.append(2, Buffer.alloc(MIB / 2)), true);
  assert.equal([numbersAfter(log, 0), budget.spares], [[1, 2], 0]);
  assert.is(log.append(3, Buffer.alloc(MIB)), false);
});

test('what all sessions hold is bounded, too', () => {
  const all = EventBudget.ofAll();
  const [log, other] = [new StreamLog(EventBudget.ofSession(all)), new StreamLog(EventBudget.ofSession(all))];
  all.count(254 * MIB);
  const bytes = Buffer.alloc(MIB);
  assert.equal([log.append(1, bytes), other.append(1, bytes), log.append(2, bytes)], [true, true, true]);
  all.count(1);
  assert.equal([log.append(3, bytes), other.append(2, Buffer.alloc(MIB - 1))], [false, true]);
  log.clear();
  other.clear();
  assert.is(all.bytes, 254 * MIB + 1);
});

test.run();
