// How seldom, how long and by how many at a time the tools of a template are listed for calls that would be refused.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ToolCache } from '../../src/actors/instances/tool-cache.ts';
import { MOST_ASKED, ToolRenewal } from '../../src/actors/tool-renewal.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import type { Tool } from '../../src/domain/mcp.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('tool renewal');

/** A renewal over so many instances, whose listings the spec settles, on a clock the spec turns. */
function staged(count = 1) {
  const clock = { nowMs: 0 };
  const listings: PromiseWithResolvers<readonly Tool[]>[] = [];
  const load = () => {
    const listing = Promise.withResolvers<readonly Tool[]>();
    listings.push(listing);
    return listing.promise;
  };
  const now = () => clock.nowMs;
  const instances: { tools: ToolCache | undefined }[] = Array.from({ length: count }, () => ({
    tools: new ToolCache(load, now),
  }));
  const renewal = new ToolRenewal(() => instances, now);
  const answer = async () => {
    for (const listing of listings) listing.resolve([{ name: 'a' }]);
    await turn();
  };
  return { clock, listings, instances, renewal, answer };
}

test('lists once for all simultaneous callers, and resolves at the end', async () => {
  const { listings, renewal, answer } = staged();
  let done = 0;
  for (let asker = 0; asker < 5; asker += 1) void renewal.renew()?.then(() => done++);
  await turn();
  assert.equal([listings.length, done], [1, 0]);
  await answer();
  assert.equal([listings.length, done], [1, 5]);
});

test('does not list again within three seconds, which count from the end', async () => {
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

test('asks several instances, and no more than are needed to see what changed', async () => {
  const { listings, renewal, answer } = staged(3 * MOST_ASKED);
  let isDone = false;
  void renewal.renew()?.then(() => {
    isDone = true;
  });
  assert.is(listings.length, MOST_ASKED);
  listings[0]?.resolve([]);
  await turn();
  assert.is(isDone, false);
  await answer();
  assert.is(isDone, true);
});

test('lets no caller wait longer than five seconds', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  try {
    const { clock, renewal, answer } = staged(2);
    let isDone = false;
    void renewal.renew()?.then(() => {
      isDone = true;
    });
    mock.timers.tick(LIMITS.toolLookupMs - 1);
    await turn();
    assert.is(isDone, false);
    mock.timers.tick(1);
    await turn();
    assert.is(isDone, true);
    assert.is(renewal.renew(), undefined);
    clock.nowMs = LIMITS.toolRenewalMs;
    assert.is.not(renewal.renew(), undefined);
    await answer();
  } finally {
    mock.timers.reset();
  }
});

test('lets no more wait than may queue per instance', async () => {
  const { renewal, answer } = staged();
  for (let asker = 0; asker < LIMITS.queuedPerInstance; asker += 1) assert.is.not(renewal.renew(), undefined);
  assert.is(renewal.renew(), undefined);
  await answer();
});

test('is undefined without an instance, and lists as soon as there is one', async () => {
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
