import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway create-user');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after(() => gateway.close());

test('asks for the password twice and makes a user', async () => {
  const answers = ['correct horse', 'correct horse'];
  const { code, out, err } = await gateway.runAt({ answers }, 'gateway', 'create-user', 'ada');
  assert.equal([code, out, err], [0, 'created the user ada', `using the gateway ${gateway.url}`]);
  const user = (await gateway.server.auth.accounts.users()).find(({ username }) => username === 'ada');
  assert.equal([user?.role, user?.email, user?.templates], ['user', 'ada@localhost', undefined]);
});

test('makes an admin, with an address and templates, and prints the record', async () => {
  const { code, out, err } = await gateway.runAt(
    { line: 'correct horse' },
    ...['gateway', 'create-user', 'bo', '--role', 'admin', '--email', 'bo@example.com', '--templates', 'a,b'],
    ...['--password', '-', '--json'],
  );
  const { role, is_superuser, email, templates, ...rest } = JSON.parse(out);
  assert.equal(
    [code, role, is_superuser, email, templates],
    [0, 'admin', true, 'bo@example.com', ['a', 'b']],
  );
  assert.not.match(JSON.stringify(rest), 'correct horse');
  assert.match(err, /^warning: template "a" does not exist yet$/m);
});

test('takes a password of the command line and warns', async () => {
  const { code, err } = await gateway.run('gateway', 'create-user', 'cy', '--password', 'planted-password');
  assert.is(code, 0);
  assert.match(err, /^warning: every user of this machine can read a command line/m);
  assert.not.match(err, 'planted');
});

test('asks nobody when something else is wrong', async () => {
  for (const words of [
    ['a b'],
    ['dee', '--role', 'root'],
    ['dee', '--email', 'x'],
    ['dee', '--templates', ''],
  ]) {
    const { code } = await gateway.runAt({ answers: [] }, 'gateway', 'create-user', ...words);
    assert.is(code, 2, words.join(' '));
  }
});

test('shows why the gateway refuses', async () => {
  const words = ['gateway', 'create-user', 'ADMIN', '--password', '-'];
  const { code, err } = await gateway.runAt({ line: 'correct horse' }, ...words);
  assert.is(code, 1);
  assert.match(err, /^stagedoor: There is a user named "ADMIN" already \(DUPLICATE_USERNAME\)$/m);
});

test.run();
