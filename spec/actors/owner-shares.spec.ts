// The share of one owner in what all owners use.

import * as assert from 'uvu/assert';
import { OwnerShares } from '../../src/actors/owner-shares.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('owner shares');

test('are a quarter for each owner, and free again when given back', () => {
  const shares = new OwnerShares(9);
  for (const _ of [1, 2]) shares.take('user:ann');
  assert.equal([shares.share, shares.isFull('user:ann'), shares.isFull('user:bob')], [2, true, false]);
  shares.giveBack('user:ann');
  assert.not.ok(shares.isFull('user:ann'));
  shares.giveBack('user:ann');
  assert.is(shares.size, 0);
});

test('are never less than one', () => {
  const shares = new OwnerShares(1);
  assert.equal([shares.share, shares.isFull('user:ann')], [1, false]);
});

test('do not bound those who cannot be told apart', () => {
  const shares = new OwnerShares(4);
  for (let count = 0; count < 4; count += 1) shares.take('anonymous');
  assert.not.ok(shares.isFull('anonymous'));
});

test.run();
