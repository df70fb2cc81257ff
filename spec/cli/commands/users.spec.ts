import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway users');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
  const user = { username: 'ada', email: 'ada@localhost', password: 'correct horse', role: 'user' } as const;
  const { id } = await gateway.server.auth.accounts.createUser({ ...user, templates: ['files'] });
  await gateway.server.auth.accounts.changeUser(id, { isActive: false });
});
test.after(() => gateway.close());

test('shows every user in a line', async () => {
  const { code, out } = await gateway.run('gateway', 'users');
  const cells = out.split('\n').map((line) => line.split(/ {2,}/).slice(0, 5));
  assert.is(code, 0);
  assert.equal(cells, [
    ['USER', 'ROLE', 'E-MAIL', 'TEMPLATES', 'STATE'],
    ['admin', 'admin', 'admin@localhost', 'all', 'active'],
    ['ada', 'user', 'ada@localhost', 'files', 'disabled'],
  ]);
});

test('prints the records as JSON, without hashes', async () => {
  const { out } = await gateway.run('gateway', 'users', '--json');
  const names = JSON.parse(out).map(({ username }: { username: string }) => username);
  assert.equal(names, ['admin', 'ada']);
  assert.not.match(out, /\$2b\$/);
});

test('says how to log in when nobody is', async () => {
  const { code, out, err } = await gateway.runAt({ env: { STAGEDOOR_API_KEY: '' } }, 'gateway', 'users');
  const line = `stagedoor: not logged in at ${gateway.url}; run "npx stagedoor gateway login <name>", or set STAGEDOOR_API_KEY`;
  assert.equal([code, out, err], [1, '', `using the gateway ${gateway.url}\n${line}`]);
});

test.run();
