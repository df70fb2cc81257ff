import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import { anonymousAuth } from './anonymous-auth.ts';
import { suite } from './suite.ts';

const test = suite('authentication that is off');

test('takes every caller for the anonymous admin, without a look at what he sends', async () => {
  const auth = anonymousAuth();
  assert.is(auth.isEnabled, false);
  for (const credentials of [{}, { authorization: 'Basic x' }, { apiKey: 'sd_wrong' }])
    assert.is(auth.authenticate(credentials), ANONYMOUS);
  assert.is((await auth.limiter.take(ANONYMOUS)).retryAfterSeconds, undefined);
  await auth.close();
});

test('manages accounts of its own', async () => {
  const [one, other] = [anonymousAuth(), anonymousAuth()];
  const { apiKey } = await one.accounts.createApiKey({ name: 'robot', permissions: ['admin'] });
  assert.equal(await one.accounts.apiKeys(), [apiKey]);
  assert.equal(await other.accounts.apiKeys(), []);
});

test.run();
