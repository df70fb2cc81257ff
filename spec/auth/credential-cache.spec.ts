import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { CredentialCache, type StoreChange, type Verified } from '../../src/auth/authenticator.ts';
import { suite } from '../helpers/suite.ts';

const minuteMs = 60_000;
/** A cache that has heard of its store, with one entry. */
function made(startMs = 0, verifiedAtMs = startMs) {
  const cache = new CredentialCache<Verified>(startMs);
  cache.onStoreChange('answered', startMs);
  const entry: Verified = { verifiedAtMs, staleSinceMs: undefined, retryAtMs: 0 };
  cache.entries.set('entry', entry);
  return { cache, entry };
}

const test = suite('credential cache');

test('for 10 s of silence, then the store is asked', () => {
  const { cache, entry } = made(0, 5_000);
  assert.is(cache.judge(entry, 15_000), 'fresh');
  assert.is(cache.judge(entry, 15_001), 'stale');
});

test('nothing any longer when something changed, or when the first answer comes', () => {
  const said = (...news: StoreChange[]) => {
    const cache = new CredentialCache<Verified>(0);
    return news.map((kind) => cache.onStoreChange(kind, 0));
  };
  assert.equal(said('answered', 'answered', 'changed', 'answered'), [true, false, true, false]);
  assert.equal(said('away', 'away', 'answered', 'away', 'answered'), [false, false, true, false, false]);
  assert.equal(said('changed', 'answered'), [true, false]);
});

test('as long as the store says that nothing changed', () => {
  const { cache, entry } = made();
  for (let nowMs = 0; nowMs <= 60 * minuteMs; nowMs += 9_000) {
    cache.onStoreChange('answered', nowMs);
    assert.is(cache.judge(entry, nowMs + 8_999), 'fresh');
  }
});

test('not at all after a change', () => {
  const { cache, entry } = made();
  cache.onStoreChange('changed', 1_000);
  assert.is(cache.judge(entry, 1_000), 'stale');
  cache.onStoreChange('answered', 2_000);
  assert.is(cache.judge(entry, 2_000), 'stale', 'an answer does not undo a change');
});

test('while the store is away, for 15 min since it last answered', () => {
  const { cache, entry } = made();
  cache.onStoreChange('answered', 1_000);
  cache.onStoreChange('away', 4_000);
  assert.is(cache.judge(entry, 15 * minuteMs + 1_000), 'fresh');
  cache.onStoreChange('away', 15 * minuteMs);
  assert.is(cache.judge(entry, 15 * minuteMs + 1_001), 'expired');
  cache.onStoreChange('answered', 20 * minuteMs);
  assert.is(cache.judge(entry, 20 * minuteMs), 'fresh');
});

test('when a change was heard of before the store went away: 15 min since it last agreed', () => {
  const { cache, entry } = made();
  cache.onStoreChange('answered', 1_000);
  cache.onStoreChange('changed', 3_000);
  cache.onStoreChange('changed', 5_000);
  cache.onStoreChange('away', 6_000);
  assert.is(cache.judge(entry, 15 * minuteMs + 1_000), 'fresh');
  assert.is(cache.judge(entry, 15 * minuteMs + 1_001), 'expired');
});

test('a store that answers about changes but not about accounts is no way around the bound', () => {
  const { cache, entry } = made();
  cache.onStoreChange('changed', 1_000);
  for (let nowMs = 2_000; nowMs < 15 * minuteMs; nowMs += 2_000) {
    cache.onStoreChange('answered', nowMs);
    assert.is(cache.judge(entry, nowMs), 'stale');
    assert.is(cache.mayServe(entry, nowMs), true);
    assert.is(cache.judge(entry, nowMs + 999), 'fresh', 'the store is left in peace for a second');
  }
  assert.is(cache.mayServe(entry, 15 * minuteMs + 1), false);
});

test('a clock that is set back makes nothing younger', () => {
  const { cache, entry } = made(60 * minuteMs);
  assert.is(cache.judge(entry, 30 * minuteMs), 'stale');
});

test('whatever is heard and in whichever order, the two bounds hold', () => {
  const news = fc.constantFrom<StoreChange>('changed', 'answered', 'away');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(news, fc.integer({ min: 0, max: 4 * minuteMs })), { maxLength: 40 }),
      (story) => {
        const { cache, entry } = made();
        let nowMs = 0;
        let agreedAtMs = 0;
        let isChanged = false;
        let isAway = false;
        for (const [kind, laterMs] of story) {
          nowMs += laterMs;
          const verdict = cache.judge(entry, nowMs);
          const ageMs = nowMs - agreedAtMs;
          if (verdict === 'fresh') assert.ok(isAway ? ageMs <= 15 * minuteMs : !isChanged && ageMs <= 10_000);
          if (verdict === 'expired') assert.ok(isAway && ageMs > 15 * minuteMs);
          cache.onStoreChange(kind, nowMs);
          isChanged ||= kind === 'changed';
          isAway = kind === 'away';
          if (kind === 'answered' && !isChanged) agreedAtMs = nowMs;
        }
      },
    ),
  );
});

test.run();
