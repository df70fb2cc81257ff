// Sign-ins that one network begins within a minute.

import * as assert from 'uvu/assert';
import { appFor } from '../../helpers/http/app.ts';
import { begin, register, startSignIn } from '../../helpers/identity/sign-in.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the number of sign-ins');
const app = appFor(test, () => startSignIn({ signIn: { signInsPerMinute: 3 } }), 'each');

test('of one network in a minute is that of the setting', async () => {
  const client = await register(app.url);
  const statuses: number[] = [];
  for (let n = 0; n < 4; n += 1) statuses.push((await begin(app.url, client)).page.status);
  assert.equal(statuses, [200, 200, 200, 429]);
});

test.run();
