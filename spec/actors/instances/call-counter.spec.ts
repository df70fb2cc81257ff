// What counts as a call under way, and what fills a place.

import * as assert from 'uvu/assert';
import { InFlightSlots } from '../../../src/actors/instances/in-flight-slots.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('places');

test('are free while their call waits for its client, and taken again when it goes on', () => {
  const slots = new InFlightSlots();
  slots.take('ann');
  slots.take('ann');
  assert.equal([slots.rest('ann'), slots.carried, slots.working], [true, 2, 1]);
  slots.goOn('ann');
  slots.leave('ann');
  assert.equal([slots.carried, slots.working], [1, 1]);
});

test('are kept when too many wait, of one owner or of all', () => {
  const slots = new InFlightSlots();
  for (let call = 0; call <= LIMITS.parkedCalls; call += 1) slots.take('ann');
  for (const owner of ['ann', 'bob', 'cyd', 'dan'])
    for (let call = 0; call < LIMITS.parkedCalls / 4; call += 1) assert.ok(slots.rest(owner));
  assert.equal([slots.rest('eve'), slots.working], [false, 1]);
  slots.goOn('ann');
  assert.equal([slots.rest('bob'), slots.rest('ann'), slots.working], [false, true, 1]);
});

test('has places above the bound only for owners below an equal part, while others are above it', () => {
  const slots = new InFlightSlots();
  const take = (owner: string, calls: number) => {
    for (let call = 0; call < calls; call += 1) slots.take(owner);
  };
  for (let owner = 0; owner < LIMITS.inFlightPerInstance; owner += 1) take(`${owner}`, 1);
  assert.is(slots.hasPlaceFor('one more'), false, 'nobody holds more than one place');
  slots.leave('0');
  take('1', 1);
  assert.is(slots.hasPlaceFor('0'), true);
  assert.equal([slots.hasPlaceFor('1'), slots.isBelowShare('1')], [false, false]);
  take('0', 1);
  assert.is(slots.working, LIMITS.inFlightPerInstance + 1);
});

test.run();
