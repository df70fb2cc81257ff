import * as assert from 'uvu/assert';
import { EventBudget } from '../../../src/protocol/legacy/legacy-event-log.ts';
import { UndeliveredMessages } from '../../../src/protocol/legacy/legacy-listener.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('legacy undelivered');

const KIB = 1024;

function setUp(budget = EventBudget.ofSession()) {
  const waiting = new UndeliveredMessages(budget);
  const keep = (text: string, question?: number) => waiting.store({ message: text, question });
  const taken = () => waiting.takeAll().map(({ message }) => message[0]);
  return { budget, waiting, keep, taken };
}

test('hands out what waits, oldest first, once', () => {
  const { waiting, keep, taken } = setUp();
  assert.is(waiting.isEmpty, true);
  keep('a');
  keep('b', 1);
  assert.is(waiting.isEmpty, false);
  assert.equal([taken(), taken(), waiting.isEmpty], [['a', 'b'], [], true]);
});

test('has room for 64: the oldest notification makes room, a question never', () => {
  const { keep, taken } = setUp();
  keep('a');
  keep('b');
  for (let question = 0; question < 62; question += 1) keep('q', question);
  assert.is(keep('c'), true);
  assert.is(keep('q', 62), true);
  assert.is(keep('q', 63), true);
  assert.is(keep('d'), false);
  assert.is(keep('q', 64), false);
  assert.equal(
    taken(),
    Array.from({ length: 64 }, () => 'q'),
  );
});

test('has room for 1 MiB', () => {
  const { keep, taken } = setUp();
  assert.is(keep('x'.repeat(1024 * KIB + 1)), false);
  assert.is(keep('a'.repeat(512 * KIB)), true);
  assert.is(keep('b'.repeat(512 * KIB), 1), true);
  assert.is(keep('c'), true);
  assert.equal(taken(), ['b', 'c']);
  keep('ü'.repeat(512 * KIB));
  keep('d');
  assert.equal(taken(), ['d']);
});

test('counts as a part of what the session may hold, until it is handed out', () => {
  const budget = new EventBudget({ bytes: 10, spareBytes: 10, spares: 1 });
  const { keep, taken } = setUp(budget);
  budget.count(5);
  assert.equal([keep('aaa'), keep('bbb'), keep('cccccc'), budget.bytes], [true, true, false, 5]);
  keep('ddddd');
  assert.equal([budget.bytes, taken(), budget.bytes], [10, ['d'], 5]);
});

test('what is spare goes before a notification does', () => {
  const budget = new EventBudget({ bytes: 10, spareBytes: 10, spares: 1 });
  const { keep, taken } = setUp(budget);
  const spare = {
    bytes: 4,
    discard: () => {
      budget.removeSpare(spare);
      budget.count(-spare.bytes);
    },
  };
  budget.count(spare.bytes);
  budget.addSpare(spare);
  assert.equal([keep('aaaa'), keep('bbbb'), budget.spares, budget.bytes], [true, true, 0, 8]);
  assert.equal(taken(), ['a', 'b']);
});

test.run();
