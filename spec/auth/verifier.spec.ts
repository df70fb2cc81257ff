import * as assert from 'uvu/assert';
import { isKey, Verifier } from '../../src/auth/authenticator.ts';
import { keyStatus, userStatus } from '../../src/auth/permissions.ts';
import { suite } from '../helpers/suite.ts';
import { authHarness, codeOf, LIMITS, START_MS } from './auth-harness.ts';

const test = suite('verification against the store');

test('a token is its user until it ends, a key itself until it expires', async () => {
  const { verifier, harness } = made();
  const user = await harness.createUser('ada');
  const { accessToken } = await harness.tokens.issue(user);
  const identity = await verifier.verify(accessToken);
  assert.is(identity.principal.id, `user:${user.id}`);
  assert.is(identity.expiresAtMs, (Math.floor(START_MS / 1000) + 3_600) * 1_000);
  assert.is(identity.keyId, undefined);

  const { apiKey, key } = await harness.auth.accounts.createApiKey({
    name: 'robot',
    permissions: ['gateway:read'],
    expiresAt: '2031-01-01T00:00:00+01:00',
    ownerId: user.id,
  });
  const { principal, ...rest } = await verifier.verify(key);
  assert.is(principal.id, `key:${apiKey.apiKey.id}`);
  const expiresAtMs = Date.parse('2030-12-31T23:00:00Z');
  const status = keyStatus({ ...apiKey.apiKey, expiresAt: '2030-12-31T23:00:00Z' }, user);
  assert.equal(rest, { expiresAtMs, keyId: apiKey.apiKey.id, status });
  assert.equal(identity.status, userStatus(user));
});

test('unknown, revoked and wrong keys get one answer in the same words', async () => {
  const { verifier, harness } = made();
  const { apiKey, key } = await harness.auth.accounts.createApiKey({ name: 'robot', permissions: ['admin'] });
  const { key: other } = await harness.auth.accounts.createApiKey({ name: 'other', permissions: ['admin'] });
  const secretOfOther = other.slice(-43);
  const said = new Set<string>();
  const refused = async (text: string): Promise<void> => {
    const error = await verifier.verify(text).then(
      () => new Error('accepted'),
      (thrown: Error) => thrown,
    );
    assert.is(await codeOf(() => Promise.reject(error)), 'INVALID_CREDENTIALS');
    said.add(error.message);
  };
  await refused(`sd_${apiKey.apiKey.id}_${secretOfOther}`);
  await refused(`sd_0000000000000000_${secretOfOther}`);
  await refused('sd_nonsense');
  await harness.auth.accounts.revokeApiKey(apiKey.apiKey.id);
  await refused(key);
  assert.is(said.size, 1);
  assert.is(await codeOf(() => verifier.verify(other)), 'none');
});

test('a text is taken for a key by its beginning', () => {
  assert.is(isKey('sd_x'), true);
  assert.is(isKey('eyJhbGciOi.x.y'), false);
});

function made() {
  const harness = authHarness();
  const { tokens, clock, store } = harness;
  return {
    harness,
    verifier: new Verifier({ accounts: store.accounts, tokens, limits: LIMITS, now: clock.now }),
  };
}

test.run();
