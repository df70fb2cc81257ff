import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway api-keys');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after(() => gateway.close());

test('shows every key in a line, without its secret', async () => {
  const { key } = await gateway.server.auth.accounts.createApiKey({
    name: 'ci',
    permissions: ['tools:call'],
    templates: ['files', 'search'],
  });
  const { code, out } = await gateway.run('gateway', 'api-keys');
  const rows = out.split('\n').map((line) => line.split(/ {2,}/));
  assert.is(code, 0);
  assert.equal(rows[0], [
    'ID',
    'NAME',
    'PERMISSIONS',
    'TEMPLATES',
    'STATE',
    'EXPIRES',
    'LAST USED',
    'CREATED BY',
  ]);
  const row = [
    key.slice(3, 19),
    'ci',
    'tools:call',
    'files, search',
    'active',
    'never',
    'never',
    'the operator',
  ];
  assert.equal(rows[2], row);
  assert.not.match(out, key.slice(20));
});

test('says that the owner of a key is disabled', async () => {
  const { accounts } = gateway.server.auth;
  const ada = await accounts.createUser({
    ...{ username: 'ada', email: 'ada@localhost', role: 'user', password: 'correct horse' },
    templates: undefined,
  });
  const { apiKey } = await accounts.createApiKey({
    name: 'hers',
    permissions: ['tools:call'],
    ownerId: ada.id,
  });
  await accounts.changeUser(ada.id, { isActive: false });
  const { out } = await gateway.run('gateway', 'api-keys');
  await accounts.revokeApiKey(apiKey.apiKey.id);
  const row =
    out
      .split('\n')
      .find((line) => line.includes('hers'))
      ?.split(/ {2,}/) ?? [];
  assert.equal(row.slice(1, 5), ['hers', 'tools:call', 'all', 'owner disabled']);
});

test('prints the records as JSON', async () => {
  const { out } = await gateway.run('gateway', 'api-keys', '--json');
  const names = JSON.parse(out).map(({ name }: { name: string }) => name);
  assert.equal(names, ['operator', 'ci']);
});

test.run();
