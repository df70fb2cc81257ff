// The tools of one instance: listed once, again after a change, and on demand.

import * as assert from 'uvu/assert';
import { ToolCache } from '../../../src/actors/instances/tool-cache.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Tool } from '../../../src/domain/mcp.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from './instance-harness.ts';

const test = suite('tool cache');
/** A cache whose listings the spec settles one by one, on a clock the spec turns. */
function staged() {
  const listings: PromiseWithResolvers<readonly Tool[]>[] = [];
  const clock = { nowMs: 0 };
  const load = () => {
    const listing = Promise.withResolvers<readonly Tool[]>();
    listings.push(listing);
    return listing.promise;
  };
  const cache = new ToolCache(load, () => clock.nowMs);
  const answer = async (...names: string[]) => {
    listings.at(-1)?.resolve(names.map((name) => ({ name })));
    await settled();
  };
  const fail = async () => {
    listings.at(-1)?.reject(new Error('it does not list'));
    await settled();
  };
  return { cache, listings, clock, answer, fail };
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

test('does not believe a list that changed while it was listed', async () => {
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

test('notices a change at the moment at which a listing ends', async () => {
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

test('lists what it put off at the first question a second later', async () => {
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

test('reports a tool that requires other headers, unless its backend notified a changed list', async () => {
  const asking = (header: string): Tool => ({
    name: 'a',
    inputSchema: { properties: { x: { type: 'string', 'x-mcp-header': header } } },
  });
  let lists: readonly Tool[] = [asking('Old')];
  let nowMs = 0;
  let changes = 0;
  const cache = new ToolCache(
    async () => lists,
    () => nowMs,
    () => {
      changes += 1;
    },
  );
  const changesAfter = async (listed: readonly Tool[], list: () => Promise<void> = () => cache.refresh()) => {
    lists = listed;
    await list();
    return changes;
  };
  assert.is(await changesAfter(lists), 0, 'the first list');
  assert.is(await changesAfter([{ ...asking('Old'), description: 'new' }, { name: 'b' }]), 0);
  assert.is(await changesAfter([{ name: 'b' }]), 0, 'a tool that is gone is not listed wrongly');
  assert.is(await changesAfter([asking('New'), { name: 'b' }]), 0, 'nor is one that came');
  assert.is(await changesAfter([asking('Old'), { name: 'b' }]), 1);
  nowMs = LIMITS.toolListAgeMs;
  assert.is(await changesAfter([asking('New')], () => cache.invalidate()), 1, 'that was said');
  assert.equal(cache.find('a'), asking('New'));
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
  assert.ok(listings.length <= 5 * LIMITS.toolListRounds, `listed ${listings.length} times`);
});

test.run();
