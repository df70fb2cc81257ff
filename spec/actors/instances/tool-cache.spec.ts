// The tools of one instance: listed once, again after a change, and on demand.

import * as assert from 'uvu/assert';
import { ToolCache } from '../../../src/actors/instances/tool-cache.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Tool } from '../../../src/domain/mcp.ts';
import { settled } from '../../helpers/failing-backend.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('tool cache');
simulateTime(test);

/** A cache with listings and a clock that the spec controls. */
function staged() {
  const listings: PromiseWithResolvers<readonly Tool[]>[] = [];
  const clock = { nowMs: 0 };
  const now = () => clock.nowMs;
  const load = () => {
    const listing = Promise.withResolvers<readonly Tool[]>();
    listings.push(listing);
    return listing.promise;
  };
  const cache = new ToolCache(load, now);
  const answer = async (...names: string[]) => {
    for (const listing of listings) listing.resolve(names.map((name) => ({ name })));
    await settled();
  };
  return { cache, listings, clock, answer };
}

test('bounds the calls that wait for one look-up', async () => {
  const { cache, listings, answer } = staged();
  let done = 0;
  for (let place = 0; place < LIMITS.queuedPerInstance; place += 1) void cache.lookUp()?.then(() => done++);
  assert.is(cache.lookUp(), undefined);
  await answer('a');
  assert.equal([done, listings.length], [LIMITS.queuedPerInstance, 1]);
  assert.is.not(cache.lookUp(), undefined);
  await answer('a');
});

test('discards a list that changed while it was requested', async () => {
  const { cache, listings, answer } = staged();
  const refreshed = cache.refresh();
  void cache.invalidate();
  void cache.invalidate();
  await answer('old');
  assert.is(cache.knows('old'), 'unknown');
  assert.is(listings.length, 2);
  await answer('new');
  await refreshed;
  assert.is(cache.knows('new'), 'yes');
});

test('notices a change that arrives just as a listing ends', async () => {
  // However many turns the cache takes to digest the list, the change comes in each of them once.
  for (let turns = 0; turns < 10; turns += 1) {
    const { cache, clock, listings, answer } = staged();
    void cache.refresh();
    listings[0]?.resolve([{ name: 'old' }]);
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    clock.nowMs = 5_000;
    void cache.invalidate();
    await settled();
    assert.is(listings.length, 2, `lost after ${turns} turns`);
    await answer('new');
    assert.is(cache.knows('new'), 'yes');
  }
});

test('lists no more than three times in a row, however often the list changes meanwhile', async () => {
  const { cache, listings, answer } = staged();
  void cache.refresh();
  for (let round = 0; round < 10; round += 1) {
    void cache.invalidate();
    await answer('a');
  }
  assert.is(listings.length, LIMITS.toolListRounds);
  assert.is(cache.knows('a'), 'unknown');
});

test('requests a postponed list at the first look-up a second later', async () => {
  const { cache, clock, listings, answer } = staged();
  void cache.refresh();
  await answer('a');
  void cache.invalidate();
  assert.is(cache.knows('a'), 'unknown');
  assert.is(listings.length, 1);
  clock.nowMs = LIMITS.toolListAgeMs;
  assert.is(cache.knows('a'), 'unknown');
  await answer('b');
  assert.is(listings.length, 2);
  assert.is(cache.knows('b'), 'yes');
});

test('lists at most once a second for a backend that notifies a change after every listing', async () => {
  const { cache, clock, listings, answer } = staged();
  void cache.refresh();
  for (let second = 0; second < 5; second += 1) {
    for (let flood = 0; flood < 1_000; flood += 1) {
      await answer('a');
      void cache.invalidate();
      cache.knows('a');
    }
    clock.nowMs += 1_000;
  }
  assert.is(listings.length, 5);
});

test.run();
