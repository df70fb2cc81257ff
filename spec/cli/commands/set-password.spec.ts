// With a gateway named; on the database it is spec/cli/accounts/local-client.spec.ts.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway set-password');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after(() => gateway.close());

test('gives a user of the gateway that is named a new password', async () => {
  const { code, out } = await gateway.runAt(
    { answers: ['battery staple', 'battery staple'] },
    ...['gateway', 'set-password', 'Admin', '--url', gateway.url],
  );
  assert.equal(
    [code, out],
    [
      0,
      'changed the password of admin; earlier tokens become void, on other gateways of its database within 10 s',
    ],
  );
  const attempt = { username: 'admin', password: 'battery staple', address: '127.0.0.1' };
  assert.is((await gateway.server.auth.login(attempt)).user.username, 'admin');
});

test('works on the database when no gateway is named, even if one is known', async () => {
  const { code, err } = await gateway.runAt(
    { line: 'correct horse' },
    ...['gateway', 'set-password', 'admin', '--password', '-', '--database', 'memory://'],
  );
  assert.is(code, 1);
  assert.match(err, /^stagedoor: the database memory:\/\/ exists only inside a running gateway/);
  const implicit = await gateway.runAt(
    { line: 'correct horse', env: { GATEWAY_DATABASE_URL: 'memory://' } },
    ...['gateway', 'set-password', 'admin', '--password', '-'],
  );
  assert.is(implicit.err, err);
});

test('asks nobody for the password of nobody', async () => {
  const words = ['gateway', 'set-password', 'nobody', '--url', gateway.url];
  const { code, err } = await gateway.runAt({ answers: [] }, ...words);
  assert.equal([code, err.split('\n').at(-1)], [1, 'stagedoor: there is no user "nobody"']);
});

test.run();
