// The tools of one instance: listed once, again after a change, and on demand.

import * as assert from 'uvu/assert';
import { MAX_QUEUED_PER_INSTANCE } from '../../../src/actors/instances/call-counter.ts';
import { ToolCache, type ToolRules } from '../../../src/actors/instances/tool-cache.ts';
import type { ToolTrust } from '../../../src/actors/instances/tool-trust.ts';
import type { Tool } from '../../../src/domain/mcp/mcp.ts';
import { UserShares } from '../../../src/domain/memory/user-shares.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { NO_RULES } from '../../helpers/backends/tool-rules.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('tool cache');
simulateTime(test);

/** A cache with listings and a clock that the spec controls. */
function staged(rules: Partial<ToolRules> = {}) {
  const listings: PromiseWithResolvers<readonly Tool[]>[] = [];
  const clock = { nowMs: 0 };
  const load = () => {
    const listing = Promise.withResolvers<readonly Tool[]>();
    listings.push(listing);
    return listing.promise;
  };
  const cache = new ToolCache(load, { ...systemClock, now: () => clock.nowMs }, { ...NO_RULES, ...rules });
  const answer = async (...names: string[]) => {
    for (const listing of listings) listing.resolve(names.map((name) => ({ name })));
    await settled();
  };
  return { cache, listings, clock, answer };
}

test('keeps of a tool only what the gateway itself needs', async () => {
  const { cache, listings } = staged();
  const mirrored = { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'A' } } };
  const title = {
    title: 'A tool',
    description: 'does things',
    annotations: { readOnlyHint: true, title: 'x' },
  };
  const refreshed = cache.refresh();
  listings[0]?.resolve([
    { name: 'plain', ...title, inputSchema: { type: 'object' } },
    { name: 'mirrored', inputSchema: mirrored },
  ]);
  await refreshed;
  assert.equal(cache.find('plain'), { name: 'plain', annotations: { readOnlyHint: true } });
  assert.equal(cache.find('mirrored'), { name: 'mirrored', inputSchema: mirrored });
});

test('annotations that are no object say nothing about their tool', async () => {
  const { cache, listings } = staged();
  const refreshed = cache.refresh();
  const odd: readonly unknown[] = [null, 'readOnlyHint', [], { readOnlyHint: 'yes' }];
  const tools = odd.map((annotations, at) => ({ name: `odd-${at}`, annotations }) as Tool);
  listings[0]?.resolve([...tools, { name: 'sane', annotations: { idempotentHint: true } }]);
  await refreshed;
  assert.equal(cache.find('sane'), { name: 'sane', annotations: { idempotentHint: true } });
  for (const { name } of tools) assert.equal(cache.find(name), { name });
});

test('a list with a schema that is too deep to be counted is a failed listing', async () => {
  const { cache, listings } = staged();
  let deep: object = {};
  for (let level = 0; level < 20_000; level += 1) deep = { deep };
  const refreshed = cache.refresh();
  const properties = { a: { type: 'string', 'x-mcp-header': 'A' } };
  listings[0]?.resolve([{ name: 'deep', inputSchema: { type: 'object', properties, deep } }]);
  await refreshed;
  assert.is(cache.find('deep'), undefined);
});

test('a listing that began before a changed definition was seen says nothing about it', async () => {
  const digests = (tool: Tool) => ({ own: tool.description ?? '', shown: '' });
  const trust: ToolTrust = {
    isRequiredFor: () => true,
    isApproved: (_tool, { own }) => own === 'as approved',
    digestsOf: async (tools) => new Map(tools.map((tool) => [tool, digests(tool)])),
    areUsedEverywhere: async () => true,
    listed: async () => {},
  };
  const { cache, listings } = staged({ trust: () => trust });
  const approved: Tool = { name: 'pay', description: 'as approved' };
  const first = cache.refresh();
  listings[0]?.resolve([approved]);
  await first;
  const underWay = cache.refresh(); // its server changes the tool now
  void cache.distrust(new Map([['pay', { own: 'changed', shown: '' }]]));
  listings[1]?.resolve([approved]);
  await settled();
  assert.is(cache.lists('pay'), 'no');
  listings[2]?.resolve([{ name: 'pay', description: 'changed' }]);
  await underWay;
  assert.equal([cache.lists('pay'), listings.length], ['no', 3]);
});

test('of a server that notifies a change before each list, the last list is trusted', async () => {
  const trust: ToolTrust = {
    isRequiredFor: () => true,
    isApproved: () => true,
    digestsOf: async (tools) => new Map(tools.map((tool) => [tool, { own: tool.name, shown: tool.name }])),
    areUsedEverywhere: async () => true,
    listed: async () => {},
  };
  const { cache, answer, listings, clock } = staged({ trust: () => trust });
  const refreshed = cache.refresh();
  for (let round = 0; round < 3; round += 1) {
    void cache.invalidate();
    await answer('a');
  }
  await refreshed;
  assert.equal([cache.lists('a'), listings.length], ['yes', 3]);
  clock.nowMs += 1_000;
  assert.equal(
    [cache.lists('a'), listings.length],
    ['yes', 4],
    'it is listed again, since it may have changed',
  );
  await answer('a');
});

test('a list whose definitions cannot be recorded is not trusted, and the next one is', async () => {
  let isBroken = true;
  const trust: ToolTrust = {
    isRequiredFor: () => true,
    isApproved: () => true,
    digestsOf: async (tools) => new Map(tools.map((tool) => [tool, { own: tool.name, shown: tool.name }])),
    areUsedEverywhere: async () => true,
    listed: async () => {
      if (isBroken) throw new Error('not recorded');
    },
  };
  const { cache, answer, clock } = staged({ trust: () => trust });
  const first = cache.refresh();
  await answer('a');
  await first;
  assert.is(cache.lists('a'), 'no');
  isBroken = false;
  clock.nowMs += 1_000;
  const second = cache.refresh();
  await answer('a');
  await second;
  assert.is(cache.lists('a'), 'yes');
});

test('counts its list, and knows no tools when there is no room for it', async () => {
  const budget = new UserShares(100_000, 50_000);
  const names = (count: number) => Array.from({ length: count }, (_, index) => `tool ${index}`);
  const { cache, answer, clock } = staged({ count: (bytes) => budget.take('a', bytes) });
  const list = async (count: number) => {
    clock.nowMs += 1_000;
    void cache.invalidate();
    await answer(...names(count));
    return cache.lists('tool 0');
  };
  assert.equal([await list(100), budget.total > 4_096], ['yes', true]);
  assert.equal([await list(1_000), budget.total], ['unknown', 0]);
  assert.equal([await list(100), budget.total > 4_096], ['yes', true]);
  cache.forget();
  assert.equal([await list(100), budget.total], ['unknown', 0]);
});

test('bounds the calls that wait for one look-up', async () => {
  const { cache, listings, answer } = staged();
  let done = 0;
  for (let place = 0; place < MAX_QUEUED_PER_INSTANCE; place += 1) void cache.lookUp()?.then(() => done++);
  assert.is(cache.lookUp(), undefined);
  await answer('a');
  assert.equal([done, listings.length], [MAX_QUEUED_PER_INSTANCE, 1]);
  assert.is.not(cache.lookUp(), undefined);
  await answer('a');
});

test('discards a list that changed while it was requested', async () => {
  const { cache, listings, answer } = staged();
  const refreshed = cache.refresh();
  void cache.invalidate();
  void cache.invalidate();
  await answer('old');
  assert.is(cache.lists('old'), 'unknown');
  assert.is(listings.length, 2);
  await answer('new');
  await refreshed;
  assert.is(cache.lists('new'), 'yes');
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
    assert.is(cache.lists('new'), 'yes');
  }
});

test('lists no more than three times in a row, and once more, however often the list changes meanwhile', async () => {
  const { cache, listings, answer } = staged();
  void cache.refresh();
  for (let round = 0; round < 10; round += 1) {
    void cache.invalidate();
    await answer('a');
  }
  assert.is(listings.length, 4);
  assert.is(cache.lists('a'), 'unknown');
});

for (const use of ['lists', 'isRepeatable', 'find'] as const) {
  test(`requests a postponed list at the first use a second later: ${use}`, async () => {
    const { cache, clock, listings, answer } = staged();
    void cache.refresh();
    await answer('a');
    void cache.invalidate();
    await answer('a'); // the second listing within a second is not postponed, the third is
    assert.equal([cache.lists('a'), listings.length], ['yes', 2]);
    void cache.invalidate();
    cache[use]('a');
    assert.equal([cache.lists('a'), listings.length], ['unknown', 2]);
    clock.nowMs = 1_000;
    cache[use]('a');
    await answer('b');
    assert.equal([cache.lists('b'), listings.length], ['yes', 3]);
  });
}

test('lists at most twice a second for a backend that notifies a change after every listing', async () => {
  const { cache, clock, listings, answer } = staged();
  void cache.refresh();
  for (let second = 0; second < 5; second += 1) {
    for (let flood = 0; flood < 1_000; flood += 1) {
      await answer('a');
      void cache.invalidate();
      cache.lists('a');
    }
    clock.nowMs += 1_000;
  }
  assert.is(listings.length, 10);
});

test.run();
