import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { CredentialCache, type StoreChange, type Verified } from '../../src/auth/credential-cache.ts';
import { suite } from '../helpers/suite.ts';

const minuteMs = 60_000;
const verifiedAt = (verifiedAtMs: number): Verified => ({
  verifiedAtMs,
  staleSinceMs: undefined,
  retryAtMs: 0,
});

const test = suite('how long what was verified is believed');

test('for 10 s of silence, then the store is asked', () => {
  const freshness = new CredentialCache(0);
  const verified = verifiedAt(5_000);
  assert.is(freshness.judge(verified, 15_000), 'believe');
  assert.is(freshness.judge(verified, 15_001), 'verify');
});

test('nothing any longer when something changed, or when the first answer comes', () => {
  const said = (...news: StoreChange[]) => {
    const freshness = new CredentialCache(0);
    return news.map((kind) => freshness.isChange(kind));
  };
  assert.equal(said('answered', 'answered', 'changed', 'answered'), [true, false, true, false]);
  assert.equal(said('away', 'away', 'answered', 'away', 'answered'), [false, false, true, false, false]);
  assert.equal(said('changed', 'answered'), [true, false]);
});

test('as long as the store says that nothing changed', () => {
  const freshness = new CredentialCache(0);
  const verified = verifiedAt(0);
  for (let nowMs = 0; nowMs <= 60 * minuteMs; nowMs += 9_000) {
    freshness.hear('answered', nowMs);
    assert.is(freshness.judge(verified, nowMs + 8_999), 'believe');
  }
});

test('not at all after a change', () => {
  const freshness = new CredentialCache(0);
  const verified = verifiedAt(0);
  change(freshness, verified, 1_000);
  assert.is(freshness.judge(verified, 1_000), 'verify');
  freshness.hear('answered', 2_000);
  assert.is(freshness.judge(verified, 2_000), 'verify', 'an answer does not undo a change');
});

test('while the store is away, for 15 min since it last answered', () => {
  const freshness = new CredentialCache(0);
  const verified = verifiedAt(0);
  freshness.hear('answered', 1_000);
  freshness.hear('away', 4_000);
  assert.is(freshness.judge(verified, 15 * minuteMs + 1_000), 'believe');
  freshness.hear('away', 15 * minuteMs);
  assert.is(freshness.judge(verified, 15 * minuteMs + 1_001), 'refuse');
  freshness.hear('answered', 20 * minuteMs);
  assert.is(freshness.judge(verified, 20 * minuteMs), 'believe');
});

test('when a change was heard of before the store went away: 15 min since it last agreed', () => {
  const freshness = new CredentialCache(0);
  const verified = verifiedAt(0);
  freshness.hear('answered', 1_000);
  change(freshness, verified, 3_000);
  change(freshness, verified, 5_000);
  freshness.hear('away', 6_000);
  assert.is(freshness.judge(verified, 15 * minuteMs + 1_000), 'believe');
  assert.is(freshness.judge(verified, 15 * minuteMs + 1_001), 'refuse');
});

test('a store that answers about changes but not about accounts is no way around the bound', () => {
  const freshness = new CredentialCache(0);
  const verified = verifiedAt(0);
  change(freshness, verified, 1_000);
  for (let nowMs = 2_000; nowMs < 15 * minuteMs; nowMs += 2_000) {
    freshness.hear('answered', nowMs);
    assert.is(freshness.judge(verified, nowMs), 'verify');
    assert.is(freshness.mayServe(verified, nowMs), true);
    assert.is(freshness.judge(verified, nowMs + 999), 'believe', 'the store is left in peace for a second');
  }
  assert.is(freshness.mayServe(verified, 15 * minuteMs + 1), false);
});

test('a clock that is set back makes nothing younger', () => {
  const freshness = new CredentialCache(60 * minuteMs);
  assert.is(freshness.judge(verifiedAt(60 * minuteMs), 30 * minuteMs), 'verify');
});

test('whatever is heard and in whichever order, the two bounds hold', () => {
  const news = fc.constantFrom<StoreChange>('changed', 'answered', 'away');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(news, fc.integer({ min: 0, max: 4 * minuteMs })), { maxLength: 40 }),
      (story) => {
        const freshness = new CredentialCache(0);
        const verified = verifiedAt(0);
        let nowMs = 0;
        let agreedAtMs = 0;
        let isChanged = false;
        let isAway = false;
        for (const [kind, laterMs] of story) {
          nowMs += laterMs;
          const verdict = freshness.judge(verified, nowMs);
          const ageMs = nowMs - agreedAtMs;
          if (verdict === 'believe')
            assert.ok(isAway ? ageMs <= 15 * minuteMs : !isChanged && ageMs <= 10_000);
          if (verdict === 'refuse') assert.ok(isAway && ageMs > 15 * minuteMs);
          if (kind === 'changed') {
            change(freshness, verified, nowMs);
            isChanged = true;
          } else freshness.hear(kind, nowMs);
          isAway = kind === 'away';
          if (kind === 'answered' && !isChanged) agreedAtMs = nowMs;
        }
      },
    ),
  );
});

function change(freshness: CredentialCache, verified: Verified, nowMs: number): void {
  freshness.markStale(verified);
  freshness.hear('changed', nowMs);
}

test.run();
