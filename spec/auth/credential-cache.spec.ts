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

test('nothing any longer when something changed, or when the first answer comes', () => {
  const said = (...news: StoreChange[]) => {
    const cache = new CredentialCache<Verified>(0);
    return news.map((kind) => cache.onStoreChange(kind, 0));
  };
  assert.equal(said('answered', 'answered', 'changed', 'answered'), [true, false, true, false]);
  assert.equal(said('away', 'away', 'answered', 'away', 'answered'), [false, false, true, false, false]);
  assert.equal(said('changed', 'answered'), [true, false]);
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
