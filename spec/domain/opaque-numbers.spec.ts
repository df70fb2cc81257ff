// Numbers that do not show how many there were.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { OPAQUE_NUMBERS, OpaqueNumbers } from '../../src/domain/opaque-numbers.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('opaque numbers');
const anyNumber = fc.integer({ min: 0, max: OPAQUE_NUMBERS - 1 });

test('are revealed by those who hid them, whatever the number', () => {
  const numbers = new OpaqueNumbers();
  fc.assert(
    fc.property(anyNumber, (number) => {
      const hidden = numbers.hide(number);
      assert.ok(Number.isInteger(hidden) && hidden >= 0 && hidden < OPAQUE_NUMBERS);
      assert.equal([numbers.reveal(hidden), numbers.hide(numbers.reveal(number))], [number, number]);
    }),
  );
});

test('differ from one instance to another, and are not in order', () => {
  const [some, others] = [new OpaqueNumbers(), new OpaqueNumbers()];
  const hidden = Array.from({ length: 1_000 }, (_, number) => some.hide(number));
  assert.is(new Set(hidden).size, 1_000);
  assert.ok(hidden.some((number, index) => number !== others.hide(index)));
  const rising = hidden.filter((number, index) => number > Number(hidden[index - 1])).length;
  assert.ok(rising > 400 && rising < 600, `${rising} of 1,000 are greater than the one before`);
});

test.run();
