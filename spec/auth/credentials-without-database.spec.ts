// Credentials while the database does not answer, or answers late. authenticator.spec.ts has all else of them.

import { mock } from 'node:test';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/accounts/principal.ts';
import { invalidCredentials } from '../../src/domain/errors/account-errors.ts';
import type { RevisionChange } from '../../src/persistence/revision-watch.ts';
import { suite } from '../helpers/suite.ts';
import { passTurns } from '../helpers/time/turns.ts';
import { authHarness, cached, idOf, minuteMs, verifiedUser } from './auth-harness.ts';

const test = suite('authentication without the database');

test('the first answer of the store does not confirm earlier verifications', async () => {
  const { token, ...harness } = await verifiedUser({ hasAnswered: false });
  harness.emitChange('away');
  harness.emitChange('answered');
  assert.ok(harness.auth.authenticate(token) instanceof Promise);
  await harness.auth.authenticate(token);
  harness.clock.pass(minuteMs);
  harness.emitChange('answered');
  assert.ok(!(harness.auth.authenticate(token) instanceof Promise), 'every later answer confirms them');
});

test('without the database cached credentials are served for 15 min, and others get DATABASE_UNAVAILABLE', async () => {
  for (const story of ['away', 'changed, then away', 'away without a word']) {
    const { user, token: known, ...harness } = await verifiedUser();
    const unknown = await harness.bearer(await harness.createUser('bob'));
    harness.emitChange('answered');
    harness.watch.isAway = true;
    if (story === 'changed, then away') harness.emitChange('changed');
    if (story !== 'away without a word') harness.emitChange('away');
    harness.watch.asked.length = 0;
    assert.is(idOf(await harness.auth.authenticate(known)), `user:${user.id}`, story);
    assert.equal(harness.watch.asked, [], story);
    assert.is(await harness.codeFor(unknown), 'DATABASE_UNAVAILABLE', story);
    harness.clock.pass(15 * minuteMs);
    assert.is(await harness.codeFor(known), 'none', story);
    harness.clock.pass(1_001);
    assert.is(await harness.codeFor(known), 'DATABASE_UNAVAILABLE', story);
    harness.watch.isAway = false;
    harness.emitChange('answered');
    assert.is(await harness.codeFor(known), 'none', 'it is back');
    assert.is(await harness.codeFor(unknown), 'none', 'it is back');
  }
});

test('a step of the wall clock neither ends nor extends the 15 min without the database', async () => {
  for (const stepMs of [20 * minuteMs, -24 * 60 * minuteMs, 100 * 24 * 60 * minuteMs]) {
    const harness = authHarness();
    const { key } = await harness.createKey();
    const code = () => harness.codeFor({ apiKey: key });
    assert.is(await code(), 'none');
    harness.watch.isAway = true;
    harness.emitChange('away');
    harness.clock.pass(5 * minuteMs);
    harness.clock.step(stepMs);
    assert.is(await code(), 'none', `${stepMs}`);
    harness.clock.pass(10 * minuteMs);
    assert.is(await code(), 'none', `${stepMs}`);
    harness.clock.pass(1_001);
    assert.is(await code(), 'DATABASE_UNAVAILABLE', `${stepMs}`);
  }
});

test('one request queries a database that does not answer, until it reports again', async () => {
  const { token, ...harness } = await verifiedUser();
  harness.emitChange('changed');
  harness.watch.isAway = true;
  harness.watch.asked.length = 0;
  for (let request = 0; request < 50; request += 1) await harness.auth.authenticate(token);
  assert.equal(harness.watch.asked, ['findUsers']);
  harness.emitChange('answered');
  await harness.auth.authenticate(token);
  assert.equal(harness.watch.asked, ['findUsers', 'findUsers']);
});

test('a node that has heard nothing of the database for 10 s, as after a freeze, waits 1.5 s for it', async () => {
  for (const isChanged of [false, true]) {
    const { user, token, ...harness } = await verifiedUser();
    const { key, apiKey } = await harness.createKey();
    assert.is(await harness.codeFor({ apiKey: key }), 'none');
    const unknown = await harness.bearer(await harness.createUser('bob'));
    if (isChanged) harness.emitChange('changed');
    harness.clock.pass(10_001);
    const gate = Promise.withResolvers<void>();
    harness.watch.gate = gate.promise;
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const outcomes: unknown[] = [];
      const hear = (outcome: unknown) => outcomes.push(outcome);
      const asked = [token, { apiKey: key }].map((each) => Promise.resolve(harness.auth.authenticate(each)));
      for (const each of asked) each.then(({ id }) => hear(id), hear);
      const stranger = harness.codeFor(unknown).then(hear);
      await passTurns(10);
      mock.timers.tick(1_499);
      await passTurns(10);
      assert.equal(outcomes, []);
      mock.timers.tick(1);
      await Promise.all(asked);
      assert.equal(outcomes, [`user:${user.id}`, `key:${apiKey.apiKey.id}`]);
      assert.ok(!(harness.auth.authenticate(token) instanceof Promise), 'it is away until it answers');
      await harness.store.accounts.deleteApiKey(apiKey.apiKey.id);
      gate.resolve();
      await stranger;
      assert.is(outcomes.at(-1), 'none');
    } finally {
      mock.timers.reset();
    }
    harness.watch.gate = undefined;
    harness.emitChange('changed');
    assert.is(await harness.codeFor({ apiKey: key }), 'INVALID_CREDENTIALS');
    assert.is(await harness.codeFor(token), 'none');
  }
});

test('late keys of an issuer, as after a freeze, are waited for, and say nothing about the database', async () => {
  const keys = Promise.withResolvers<void>();
  const identity = {
    principal: ANONYMOUS,
    expiresAtMs: Number.POSITIVE_INFINITY,
    status: { stamp: '', endsAtMs: Number.POSITIVE_INFINITY },
  };
  const issuers = {
    has: (token: string) => token === 'foreign',
    verify: async (_: string, isKnown: boolean) => {
      if (isKnown) await keys.promise;
      return identity;
    },
    granted: () => undefined,
  };
  const harness = await verifiedUser({ issuers });
  const foreign = { authorization: 'Bearer foreign' };
  assert.is(await harness.codeFor(foreign), 'none');
  harness.clock.pass(10_001);
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    let outcome = 'waits';
    const asked = harness.codeFor(foreign).then((code) => {
      outcome = code;
    });
    await passTurns(10);
    mock.timers.tick(2_400);
    await passTurns(10);
    assert.is(outcome, 'waits');
    harness.watch.asked.length = 0;
    await harness.auth.authenticate(harness.token);
    assert.ok(harness.watch.asked.includes('findUsers'), 'others are verified again');
    keys.reject(invalidCredentials());
    await asked;
    assert.is(outcome, 'INVALID_CREDENTIALS');
  } finally {
    mock.timers.reset();
  }
});

test('a late answer of the database about a caller that was served meanwhile counts', async () => {
  const harness = authHarness();
  const { key, apiKey } = await harness.createKey();
  assert.is(await harness.codeFor({ apiKey: key }), 'none');
  harness.clock.pass(10_001);
  await harness.store.accounts.deleteApiKey(apiKey.apiKey.id);
  const gate = Promise.withResolvers<void>();
  harness.watch.gate = gate.promise;
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const asked = harness.codeFor({ apiKey: key });
    await passTurns(10);
    mock.timers.tick(1_500);
    assert.is(await asked, 'none');
  } finally {
    mock.timers.reset();
  }
  gate.resolve();
  await passTurns(10);
  harness.watch.gate = undefined;
  assert.is(await harness.codeFor({ apiKey: key }), 'INVALID_CREDENTIALS');
});

test('credentials that were revoked here, or refused since, are not accepted without the database', async () => {
  for (const isRevokedHere of [true, false]) {
    const harness = authHarness();
    const { key, apiKey } = await harness.createKey();
    const code = () => harness.codeFor({ apiKey: key });
    assert.is(await code(), 'none');
    if (isRevokedHere) await harness.auth.accounts.revokeApiKey(apiKey.apiKey.id);
    else {
      await harness.store.accounts.deleteApiKey(apiKey.apiKey.id);
      harness.emitChange('changed');
      assert.is(await code(), 'INVALID_CREDENTIALS');
    }
    harness.watch.isAway = true;
    harness.emitChange('away');
    assert.is(await code(), 'DATABASE_UNAVAILABLE');
  }
});

test('a store that reports changes but does not answer queries does not extend the 15 minutes', () => {
  const { cache, entry } = cached();
  cache.onStoreChange('changed', 1_000);
  for (let nowMs = 2_000; nowMs < 15 * minuteMs; nowMs += 2_000) {
    cache.onStoreChange('answered', nowMs);
    assert.is(cache.freshnessOf(entry, nowMs), 'stale');
    cache.onStoreChange('away', nowMs);
    assert.is(cache.freshnessOf(entry, nowMs), 'fresh', 'the store is left in peace until it answers');
  }
  assert.is(cache.freshnessOf(entry, 15 * minuteMs + 1), 'expired');
});

test('for any order of reports both age limits hold', () => {
  const news = fc.constantFrom<RevisionChange['kind']>('changed', 'answered', 'away');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(news, fc.integer({ min: 0, max: 4 * minuteMs })), { maxLength: 40 }),
      (story) => {
        const { cache, entry } = cached();
        let nowMs = 0;
        let agreedAtMs = 0;
        let isChanged = false;
        let isAway = false;
        for (const [kind, laterMs] of story) {
          nowMs += laterMs;
          const freshness = cache.freshnessOf(entry, nowMs);
          const ageMs = nowMs - agreedAtMs;
          if (freshness === 'fresh')
            assert.ok(isAway ? ageMs <= 15 * minuteMs : !isChanged && ageMs <= 10_000);
          if (freshness === 'expired') assert.ok(isAway && ageMs > 15 * minuteMs);
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
