// The keys of access tokens: shared by all nodes, replaced in time, and published before they sign.

import * as assert from 'uvu/assert';
import { OAuthKeys } from '../../../src/auth/grants/oauth-keys.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('keys of access tokens');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

test('two nodes that start at the same time use one key, which is a private one in the store only', async () => {
  const { oauth } = new MemoryStore();
  const clock = { ...systemClock, now: () => 0, wall: () => 0 };
  const nodes = [1, 2].map(() => new OAuthKeys({ store: oauth, clock }));
  const [left, right] = await Promise.all(nodes.map((keys) => keys.current()));
  assert.ok(left && right);
  assert.is(left.signing.kid, right.signing.kid);
  assert.is((await oauth.list({ kind: 'key' }, 10)).length, 1);
  const published = await nodes[0]?.publicKeys();
  assert.is(published?.get(left.signing.kid)?.type, 'public');
});

test('a new key is published a day before it signs, and an old one until its last token is over', async () => {
  const { oauth } = new MemoryStore();
  let atMs = 0;
  const keys = new OAuthKeys({ store: oauth, clock: { ...systemClock, now: () => atMs, wall: () => atMs } });
  const at = async (ms: number) => {
    atMs = ms;
    const { signing, published } = await keys.current();
    return { signing: signing.kid, published: published.map(({ kid }) => kid) };
  };
  const first = await at(0);
  assert.equal(await at(89 * DAY_MS), first);
  const announced = await at(90 * DAY_MS);
  assert.equal([announced.signing, announced.published.length], [first.signing, 2]);
  assert.is((await at(91 * DAY_MS - HOUR_MS)).signing, first.signing);
  const changed = await at(91 * DAY_MS);
  assert.is(changed.signing, announced.published[0]);
  assert.is(changed.published.length, 2);
  assert.equal((await at(92 * DAY_MS)).published, [changed.signing]);
});

test('the keys in use go on while the store does not answer', async () => {
  const { oauth } = new MemoryStore();
  let atMs = 0;
  let isAway = false;
  const find: typeof oauth.find = (...of) => (isAway ? Promise.reject(new Error('away')) : oauth.find(...of));
  const keys = new OAuthKeys({
    store: { ...oauth, find },
    clock: { ...systemClock, now: () => atMs, wall: () => atMs },
  });
  const { signing } = await keys.current();
  [atMs, isAway] = [HOUR_MS, true];
  assert.is((await keys.current()).signing.kid, signing.kid);
});

test.run();
