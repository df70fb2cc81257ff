import * as assert from 'uvu/assert';
import { latin1Of } from '../../src/http/respond.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('bytes as text');

test('are the same bytes again when they are written as latin1, wherever they stand in their buffer', () => {
  const all = Uint8Array.from({ length: 256 }, (_, index) => index);
  assert.equal(Buffer.from(latin1Of(all), 'latin1'), Buffer.from(all));
  const part = all.subarray(100, 200);
  assert.equal(Buffer.from(latin1Of(part), 'latin1'), Buffer.from(part));
});

test.run();
