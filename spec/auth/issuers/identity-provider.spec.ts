// The gateway as a client of an identity provider, a second authorization server of the same library.

import * as assert from 'uvu/assert';
import { IdentityProvider } from '../../../src/auth/issuers/identity-provider.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import {
  answerOf,
  type CompanyProvider,
  startCompanyProvider,
} from '../../helpers/identity/company-provider.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('an identity provider');
const CALLBACK = 'http://127.0.0.1:43118/oauth/callback/example';

/** The gateway as a client of `there`, and the warnings about it. */
function clientOf(there: CompanyProvider) {
  const { client_id: clientId, client_secret: clientSecret } = Object(there.setting({}));
  const warnings: string[] = [];
  const provider = new IdentityProvider(
    {
      ...{ id: 'example', issuer: there.issuer, label: 'Example', clientId, clientSecret, claims: {} },
      ...{ roles: [], require: [], everyone: { role: 'user' }, sessionMs: 1 },
    },
    { clock: systemClock, keepsSecrets: true, warn: (line) => void warnings.push(line) },
  );
  return { provider, warnings };
}

for (const refusal of ['invalid_client', 'unauthorized_client'])
  test(`that refuses the secret in the header with ${refusal} gets it in the body, from then on at once`, async () => {
    const there = await startCompanyProvider({ auth: 'client_secret_post', refusal });
    try {
      there.users.set('s-1', { preferred_username: 'eve' });
      const { provider, warnings } = clientOf(there);
      const { proof, location } = await provider.begin(CALLBACK);
      const answer = await answerOf(there, new URL(location), 's-1');
      const { subject, refreshToken = '' } = await provider.finish(answer, proof);
      assert.equal([subject, there.tokenRequests()], ['s-1', 2]);
      assert.is((await provider.refresh(refreshToken, 's-1')).subject, 's-1');
      assert.is(there.tokenRequests(), 3);
      assert.equal(warnings, []);
    } finally {
      await there.close();
    }
  });

test('that refuses the secret in the header of two first sign-ins at once gets it in the body of both', async () => {
  const there = await startCompanyProvider({ auth: 'client_secret_post' });
  try {
    const { provider, warnings } = clientOf(there);
    const users = ['s-1', 's-2'];
    const begun = await Promise.all(
      users.map(async (user) => {
        there.users.set(user, { preferred_username: user });
        const { proof, location } = await provider.begin(CALLBACK);
        return { proof, answer: await answerOf(there, new URL(location), user) };
      }),
    );
    const answers = await Promise.all(begun.map(({ answer, proof }) => provider.finish(answer, proof)));
    assert.equal(
      answers.map(({ subject }) => subject),
      users,
    );
    assert.is(there.tokenRequests(), 4);
    await provider.refresh(answers[0]?.refreshToken ?? '', 's-1');
    assert.is(there.tokenRequests(), 5, 'the way that was found is kept');
    assert.equal(warnings, []);
  } finally {
    await there.close();
  }
});

test.run();
