// The tools of one instance: listed once, again after a change, and on demand; and listed again for calls of a template that would
// be refused.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { MOST_ASKED, ToolCache, ToolRenewal } from '../../../src/actors/instances/tool-cache.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Tool } from '../../../src/domain/mcp.ts';
import { settled } from '../../helpers/failing-backend.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('tool cache');
simulateTime(test);

/** Caches with listings and a clock that the spec controls. */
function staged(count = 1) {
  const listings: PromiseWithResolvers<readonly Tool[]>[] = [];
  const clock = { nowMs: 0 };
  const now = () => clock.nowMs;
  const load = () => {
    const listing = Promise.withResolvers<readonly Tool[]>();
    listings.push(listing);
    return listing.promise;
  };
  const cache = new ToolCache(load, now);
  const instances: { tools: ToolCache | undefined }[] = Array.from({ length: count }, () => ({
    tools: new ToolCache(load, now),
  }));
  const renewal = new ToolRenewal(() => instances, now);
  const answer = async (...names: string[]) => {
    for (const listing of listings) listing.resolve(names.map((name) => ({ name })));
    await settled();
  };
  return { cache, listings, clock, instances, renewal, answer };
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
  assert.is(await changesAfter([{ name: 'b' }]), 0, 'a removed tool is not a change');
  assert.is(await changesAfter([asking('New'), { name: 'b' }]), 0, 'nor is an added one');
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
  assert.is(listings.length, 5);
});

test('renewal: does not list again within 3 s after the end of the last listing', async () => {
  const { clock, listings, renewal, answer } = staged();
  void renewal.renew();
  clock.nowMs = 2_000;
  await answer();
  clock.nowMs += LIMITS.toolRenewalMs - 1;
  assert.is(renewal.renew(), undefined);
  clock.nowMs += 1;
  assert.is.not(renewal.renew(), undefined);
  assert.is(listings.length, 2);
  await answer();
});

test('renewal: asks a limited number of instances, and waits for all of them', async () => {
  const { listings, renewal, answer } = staged(3 * MOST_ASKED);
  let isDone = false;
  void renewal.renew()?.then(() => {
    isDone = true;
  });
  assert.is(listings.length, MOST_ASKED);
  listings[0]?.resolve([]);
  await settled();
  assert.is(isDone, false);
  await answer();
  assert.is(isDone, true);
});

test('renewal: lets no caller wait longer than five seconds', async () => {
  const { clock, renewal, answer } = staged(2);
  let isDone = false;
  void renewal.renew()?.then(() => {
    isDone = true;
  });
  mock.timers.tick(LIMITS.toolLookupMs - 1);
  await settled();
  assert.is(isDone, false);
  mock.timers.tick(1);
  await settled();
  assert.is(isDone, true);
  assert.is(renewal.renew(), undefined);
  clock.nowMs = LIMITS.toolRenewalMs;
  assert.is.not(renewal.renew(), undefined);
  await answer();
});

test('renewal: lets at most as many callers wait as may queue per instance', async () => {
  const { renewal, answer } = staged();
  for (let asker = 0; asker < LIMITS.queuedPerInstance; asker += 1) assert.is.not(renewal.renew(), undefined);
  assert.is(renewal.renew(), undefined);
  await answer();
});

test('renewal: is undefined without an instance, and lists as soon as there is one', async () => {
  const { instances, renewal } = staged(0);
  const other = staged();
  assert.is(renewal.renew(), undefined);
  instances.push({ tools: undefined });
  assert.is(renewal.renew(), undefined);
  instances.push(...other.instances);
  assert.is.not(renewal.renew(), undefined);
  assert.is(other.listings.length, 1);
  await other.answer();
});

test.run();
