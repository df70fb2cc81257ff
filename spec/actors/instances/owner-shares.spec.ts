// The share of one owner in what all owners use.

import * as assert from 'uvu/assert';
import { OwnerShares } from '../../../src/actors/instances/owner-shares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('owner shares');

test('are a quarter for each owner, and free again when given back', () => {
  const shares = new OwnerShares(40);
  for (let count = 0; count < 10; count += 1) shares.take('user:ann');
  assert.equal([shares.share, shares.isFull('user:ann'), shares.isFull('user:bob')], [10, true, false]);
  shares.giveBack('user:ann');
  assert.not.ok(shares.isFull('user:ann'));
  assert.equal([...shares.owners], ['user:ann']);
  for (let count = 0; count < 9; count += 1) shares.giveBack('user:ann');
  assert.is(shares.size, 0);
  assert.equal([...shares.owners], []);
});

test('are what was said, and of little what one client needs', () => {
  const sharesOf = (most: number, share?: number) => new OwnerShares(most, share).share;
  assert.equal([sharesOf(100, 0.5), sharesOf(100, 1), sharesOf(64), sharesOf(100, 0.07)], [50, 100, 16, 8]);
  assert.equal([sharesOf(1), sharesOf(6), sharesOf(8), sharesOf(31), sharesOf(40)], [1, 6, 8, 8, 10]);
  assert.equal([sharesOf(100, 0.29), sharesOf(1_000, 0.57)], [29, 570], 'not a hair less than was said');
});

test('tell whether a share is all there is', () => {
  const isAll = (most: number, share?: number) => new OwnerShares(most, share).isAll;
  assert.equal([isAll(3), isAll(8), isAll(9), isAll(100), isAll(100, 1)], [true, true, false, false, true]);
});

test('do not bound those who cannot be told apart', () => {
  const shares = new OwnerShares(40);
  for (let count = 0; count < 40; count += 1) shares.take('anonymous');
  assert.not.ok(shares.isFull('anonymous'));
});

test.run();
