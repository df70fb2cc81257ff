import * as assert from 'uvu/assert';
import { rounded } from '../../src/http/schemas.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('rounding');

test('keeps so many digits and no trailing zeros', () => {
  assert.equal(
    [rounded(1.23456, 3), rounded(2, 3), rounded(0.00001, 3), rounded(1 / 3, 0)],
    [1.235, 2, 0, 0],
  );
});

test.run();
