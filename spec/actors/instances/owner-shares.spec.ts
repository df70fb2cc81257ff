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

test.run();
