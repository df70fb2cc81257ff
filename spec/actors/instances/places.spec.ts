// What counts as a call under way, and what fills a place.

import * as assert from 'uvu/assert';
import { InFlightSlots } from '../../../src/actors/instances/in-flight-slots.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('places');

test('are free while their call waits for its client, and taken again when it goes on', () => {
  const places = new InFlightSlots();
  places.take('ann');
  places.take('ann');
  assert.equal([places.rest('ann'), places.carried, places.working], [true, 2, 1]);
  places.goOn('ann');
  places.leave('ann');
  assert.equal([places.carried, places.working], [1, 1]);
});

test('are kept when too many wait, of one owner or of all', () => {
  const places = new InFlightSlots();
  for (let call = 0; call <= LIMITS.parkedCalls; call += 1) places.take('ann');
  for (const owner of ['ann', 'bob', 'cyd', 'dan'])
    for (let call = 0; call < LIMITS.parkedCalls / 4; call += 1) assert.ok(places.rest(owner));
  assert.equal([places.rest('eve'), places.working], [false, 1]);
  places.goOn('ann');
  assert.equal([places.rest('bob'), places.rest('ann'), places.working], [false, true, 1]);
});

test('has places above the bound only for owners below an equal part, while others are above it', () => {
  const places = new InFlightSlots();
  const take = (owner: string, calls: number) => {
    for (let call = 0; call < calls; call += 1) places.take(owner);
  };
  for (let owner = 0; owner < LIMITS.inFlightPerInstance; owner += 1) take(`${owner}`, 1);
  assert.is(places.hasPlaceFor('one more'), false, 'nobody holds more than one place');
  places.leave('0');
  take('1', 1);
  assert.is(places.hasPlaceFor('0'), true);
  assert.equal([places.hasPlaceFor('1'), places.isBelowShare('1')], [false, false]);
  take('0', 1);
  assert.is(places.working, LIMITS.inFlightPerInstance + 1);
});

test.run();
