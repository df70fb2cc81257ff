import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway delete-user');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
  for (const username of ['ada', 'bo']) {
    const user = { username, email: 'x@localhost', password: 'correct horse', role: 'user' } as const;
    await gateway.server.auth.accounts.createUser(user);
  }
});
test.after(() => gateway.close());

test('deletes the user of that name, in any case', async () => {
  const { code, out } = await gateway.run('gateway', 'delete-user', 'ADA');
  assert.equal([code, out], [0, 'ada is deleted']);
  const { out: as } = await gateway.run('gateway', 'delete-user', 'bo', '--json');
  const { username, deleted } = JSON.parse(as);
  assert.equal([username, deleted], ['bo', true]);
  assert.is((await gateway.server.auth.accounts.users()).length, 1);
});

test('fails for nobody and for the last admin', async () => {
  const nobody = await gateway.run('gateway', 'delete-user', 'nobody');
  assert.equal([nobody.code, nobody.err.split('\n').at(-1)], [1, 'stagedoor: there is no user "nobody"']);
  const last = await gateway.run('gateway', 'delete-user', 'admin');
  assert.is(last.code, 1);
  assert.match(last.err, /\(LAST_ADMIN\)$/);
});

test.run();
