// What is known of an instance's tools while lists come, fail and change. The spec settles every listing by hand.
// How the session fills it is in session-tools.spec.ts.

import { mock } from 'node:test';
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

test('knows nothing before the first list is here', async () => {
  const { cache, answer } = staged();
  assert.is(cache.knows('a'), 'unknown');
  void cache.refresh();
  assert.is(cache.knows('a'), 'unknown');
  await answer('a');
  assert.is(cache.knows('a'), 'yes');
  assert.is(cache.knows('b'), 'no');
});

test('does not list before it is told to', () => {
  const { cache, listings } = staged();
  cache.knows('a');
  cache.isRepeatable('a');
  assert.is(listings.length, 0);
});

test('reads from the annotations whether a call may be repeated', async () => {
  const { cache, listings } = staged();
  void cache.refresh();
  listings[0]?.resolve([
    { name: 'reads', annotations: { readOnlyHint: true } },
    { name: 'sets', annotations: { idempotentHint: true } },
    { name: 'adds' },
  ]);
  await settled();
  assert.equal(
    ['reads', 'sets', 'adds', 'other'].map((name) => cache.isRepeatable(name)),
    [true, true, false, false],
  );
});

test('lets as many wait for one look-up as may queue per instance, and no more', async () => {
  const { cache, listings, answer } = staged();
  let done = 0;
  for (let place = 0; place < LIMITS.queuedPerInstance; place += 1) void cache.lookUp()?.then(() => done++);
  assert.is(cache.lookUp(), undefined);
  await answer('a');
  assert.equal([done, listings.length], [LIMITS.queuedPerInstance, 1]);
  assert.is.not(cache.lookUp(), undefined);
  await answer('a');
});

test('ends a look-up after 5 s, while the listing goes on', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  const { cache, listings, answer } = staged();
  let done = 0;
  void cache.lookUp()?.then(() => done++);
  mock.timers.tick(LIMITS.toolLookupMs - 1);
  await settled();
  assert.is(done, 0);
  mock.timers.tick(1);
  await settled();
  assert.equal([done, listings.length, cache.mayRefresh], [1, 1, true]);
  void cache.lookUp()?.then(() => done++);
  await answer('a');
  assert.equal([done, listings.length, cache.knows('a')], [2, 1, 'yes']);
  mock.timers.reset();
});

test('shares one listing among all who ask for it', async () => {
  const { cache, listings, answer } = staged();
  let done = 0;
  for (let asker = 0; asker < 5; asker += 1) {
    void cache.refresh().then(() => {
      done += 1;
    });
  }
  await answer('a');
  assert.equal([listings.length, done], [1, 5]);
  void cache.refresh();
  assert.is(listings.length, 2);
});

test('may look again while it lists and when the list is a second old', async () => {
  const { cache, clock, answer } = staged();
  assert.is(cache.mayRefresh, true);
  void cache.refresh();
  assert.is(cache.mayRefresh, true);
  await answer('a');
  assert.is(cache.mayRefresh, false);
  clock.nowMs = LIMITS.toolListAgeMs - 1;
  assert.is(cache.mayRefresh, false);
  void cache.refresh();
  assert.is(cache.mayRefresh, true);
  await answer('a');
  assert.is(cache.mayRefresh, false);
  clock.nowMs = 2 * LIMITS.toolListAgeMs - 1;
  assert.is(cache.mayRefresh, true);
});

test('keeps what it knew when a listing fails', async () => {
  const { cache, answer, fail } = staged();
  void cache.refresh();
  await answer('a');
  const again = cache.refresh();
  await fail();
  await again;
  assert.is(cache.knows('a'), 'yes');
});

test('knows nothing when the first listing fails, and does not try again by itself', async () => {
  const { cache, clock, listings, fail } = staged();
  void cache.refresh();
  await fail();
  clock.nowMs = 60_000;
  assert.is(cache.knows('a'), 'unknown');
  assert.is(listings.length, 1);
});

test('forgets everything at once when the list changed, and lists again', async () => {
  const { cache, clock, listings, answer } = staged();
  void cache.refresh();
  await answer('a');
  clock.nowMs = 5_000;
  void cache.drop();
  assert.is(cache.knows('a'), 'unknown');
  assert.is(listings.length, 2);
  await answer('b');
  assert.equal([cache.knows('a'), cache.knows('b')], ['no', 'yes']);
});

test('knows nothing when the list changed and the new one does not come', async () => {
  const { cache, clock, answer, fail } = staged();
  void cache.refresh();
  await answer('a');
  clock.nowMs = 5_000;
  void cache.drop();
  await fail();
  assert.is(cache.knows('a'), 'unknown');
});

test('does not believe a list that changed while it was listed', async () => {
  const { cache, listings, answer } = staged();
  const refreshed = cache.refresh();
  void cache.drop();
  void cache.drop();
  await answer('old');
  assert.is(cache.knows('old'), 'unknown');
  assert.is(listings.length, 2);
  await answer('new');
  await refreshed;
  assert.is(cache.knows('new'), 'yes');
});

test('hears a change in the very moment in which a listing ends', async () => {
  // However many turns the cache takes to digest the list, the change comes in each of them once.
  for (let turns = 0; turns < 10; turns += 1) {
    const { cache, clock, listings, answer } = staged();
    void cache.refresh();
    listings[0]?.resolve([{ name: 'old' }]);
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    clock.nowMs = 5_000;
    void cache.drop();
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
    void cache.drop();
    await answer('a');
  }
  assert.is(listings.length, LIMITS.toolListRounds);
  assert.is(cache.knows('a'), 'unknown');
});

test('lists at most once a second for a backend that says after every list that it changed', async () => {
  const { cache, clock, listings, answer } = staged();
  void cache.refresh();
  for (let second = 0; second < 5; second += 1) {
    for (let flood = 0; flood < 1_000; flood += 1) {
      await answer('a');
      void cache.drop();
      cache.knows('a');
    }
    clock.nowMs += 1_000;
  }
  assert.ok(listings.length <= 5 * LIMITS.toolListRounds, `listed ${listings.length} times`);
});

test('lists what it put off at the first question a second later', async () => {
  const { cache, clock, listings, answer } = staged();
  void cache.refresh();
  await answer('a');
  void cache.drop();
  assert.is(cache.knows('a'), 'unknown');
  assert.is(listings.length, 1);
  clock.nowMs = LIMITS.toolListAgeMs;
  assert.is(cache.knows('a'), 'unknown');
  await answer('b');
  assert.is(listings.length, 2);
  assert.is(cache.knows('b'), 'yes');
});

test('never rejects, also when listing throws at once', async () => {
  const cache = new ToolCache(
    () => {
      throw new Error('at once');
    },
    () => 0,
  );
  await cache.refresh();
  await cache.drop();
  assert.is(cache.knows('a'), 'unknown');
});

test('lists again after a listing that threw at once', async () => {
  let tries = 0;
  const load = () => {
    tries += 1;
    if (tries === 1) throw new Error('at once');
    return Promise.resolve([{ name: 'a' }]);
  };
  const cache = new ToolCache(load, () => 0);
  await cache.refresh();
  await cache.refresh();
  assert.is(cache.knows('a'), 'yes');
});

test.run();
