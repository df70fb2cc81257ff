// Users are created, listed, changed and deleted at a gateway; on the database: spec/cli/accounts/local-client.spec.ts.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { cellsOf, complaint, gatewayFor, HANDLER } from './against-gateway.ts';

const test = suite('user list, create, set, set-password and delete');
const gateway = gatewayFor(test, { withAccounts: true }, async ({ server }) => {
  const user = { username: 'ada', email: 'ada@localhost', password: 'correct horse', role: 'user' } as const;
  const { id } = await server.auth.accounts.createUser({ ...user, templates: ['files'] });
  await server.auth.accounts.changeUser(id, { isActive: false });
});

test('list every user in a line, and records without hashes', async () => {
  const { code, out } = await gateway.run('user list');
  assert.is(code, 0);
  const rows = cellsOf(out).map((cells) => cells.slice(0, 5));
  assert.equal(rows, [
    ['USER', 'ROLE', 'E-MAIL', 'TEMPLATES', 'STATE'],
    ['admin', 'admin', 'admin@localhost', 'all', 'active'],
    ['ada', 'user', 'ada@localhost', 'files', 'disabled'],
  ]);
  const asJson = (await gateway.run('user list --json')).out;
  const names = JSON.parse(asJson).map((user: { username: string }) => user.username);
  assert.equal(names, ['admin', 'ada']);
  assert.not.match(asJson, /\$2b\$/);
});

test('ask for the password of a new user twice', async () => {
  const answers = ['correct horse', 'correct horse'];
  const { code, out, err } = await gateway.runAt({ answers }, 'user create eve');
  assert.equal(
    [code, out, err],
    [0, 'created the user eve with the role user', `using the gateway ${gateway.url}`],
  );
  const user = (await gateway.server.auth.accounts.users()).find(({ username }) => username === 'eve');
  assert.equal([user?.role, user?.email, user?.templates], ['user', 'eve@localhost', undefined]);
});

test('create an admin with an e-mail address and templates, and print the record', async () => {
  const { code, out } = await gateway.runAt(
    { line: 'correct horse' },
    'user create bo --role admin --email bo@example.com --password - --json --templates',
    'a, b',
  );
  const { role, is_superuser, email, templates, ...rest } = JSON.parse(out);
  const wanted = [0, 'admin', true, 'bo@example.com', ['a', 'b']];
  assert.equal([code, role, is_superuser, email, templates], wanted);
  assert.not.match(JSON.stringify(rest), 'correct horse');
});

test('warn of templates and views that the gateway does not have', async () => {
  await gateway.server.gateway.register('files', { handler: HANDLER }, { waitMs: 5_000 });
  const { err } = await gateway.runAt(
    { line: 'correct horse' },
    'user create ed --password - --templates fiels,files',
  );
  assert.match(err, /^warning: the gateway has no template "fiels"; did you mean "files"\?$/m);
  assert.not.match(err, 'no template "files"');
  await gateway.run('user delete ed');
  const key = await gateway.run('api-key create k --templates other');
  assert.match(key.err, /^warning: the gateway has no template "other"$/m);
  await gateway.server.gateway.views.put({ id: 'desk', from: [{ template: 'files' }] });
  const ofView = await gateway.run('api-key create v --views dsek,desk --templates none');
  assert.equal(
    ofView.err.split('\n').filter((line) => line.startsWith('warning')),
    ['warning: the gateway has no view "dsek"; did you mean "desk"?'],
  );
});

test('say that views without a list of templates leave all templates', async () => {
  const all = /^all templates may be used beside these views; "--templates none" leaves the views only$/m;
  const noteOf = async (command: string) => all.test((await gateway.run(command)).err);
  assert.ok(await noteOf('api-key create k1 --views support'));
  assert.not.ok(await noteOf('api-key create k2 --views support --templates none'));
  assert.not.ok(await noteOf('api-key create k3 --views support --templates all'));
  assert.not.ok(await noteOf('user set ada --views support')); // she has a list of templates
  assert.not.ok(await noteOf('user set ada --templates all'));
  assert.ok(await noteOf('user set ada --views support'));
  assert.not.ok(await noteOf('user set ada --templates none'));
  assert.not.ok(await noteOf('user set ada --views all'));
  await gateway.run('user set ada --templates files');
});

test('set changes what its options name, and nothing else', async () => {
  const set = async (line: string) => JSON.parse((await gateway.run(`user set ada --json ${line}`)).out);
  assert.match(
    await complaint(gateway.run('user set ada'), 2),
    /nothing to change: give at least one option$/,
  );
  const { role, templates, is_active } = await set('--role admin --enable');
  assert.equal([role, templates, is_active], ['admin', ['files'], true]);
  assert.equal((await set('--templates all')).templates, null);
  const { role: kept, email, is_active: isActive } = await set('--email a@b --disable');
  assert.equal([kept, email, isActive], ['admin', 'a@b', false]);
  assert.equal((await set('--role user --templates files')).templates, ['files']);
  assert.match((await gateway.run('user set ada --role user')).out, /^ada +user/m);
});

test('scopes limit those of the role, and the list shows them where a user has some', async () => {
  assert.not.match((await gateway.run('user list')).out, 'SCOPES');
  const set = async (scopes: string) =>
    JSON.parse((await gateway.run(`user set ada --json --scopes ${scopes}`)).out).scopes;
  assert.equal(await set('tools:call'), ['tools:call']);
  assert.match((await gateway.run('user list')).out, /SCOPES.*^ada .*tools:call/ms);
  assert.match(await complaint(gateway.run('user set ada --scopes tools'), 2), '--scopes must be');
  assert.is(await set('all'), undefined);
  const made = await gateway.runAt(
    { line: 'correct horse' },
    'user create flo --json --password - --scopes gateway:read',
  );
  assert.equal(JSON.parse(made.out).scopes, ['gateway:read']);
  await gateway.run('user delete flo');
});

test('link only to a user of a provider that the gateway knows, and say so', async () => {
  assert.match(await complaint(gateway.run('user link ada --issuer x'), 2), 'needs --issuer and --subject');
  assert.match(
    await complaint(gateway.run('user link ada --issuer=https://login.example.com --subject=-1')),
    /body\.issuer: .*auth\.providers.*\(VALIDATION_ERROR\)$/m,
  );
  assert.match(await complaint(gateway.run('user unlink ada')), /ada has no account .*\(NOT_FOUND\)$/m);
});

test('accept a password on the command line with a warning', async () => {
  const words = 'user create cy@example.com --password planted-password --json';
  const { code, out, err } = await gateway.run(words);
  assert.equal([code, JSON.parse(out).email], [0, 'cy@example.com']);
  assert.match(err, /^warning: every user of this machine can read a command line/m);
  assert.not.match(err, 'planted');
});

test('refuse an invalid role before they ask for a password, and show why the gateway refuses', async () => {
  const role = await complaint(gateway.runAt({ answers: [] }, 'user create dee --role Root'), 2);
  assert.match(
    role,
    'stagedoor: --role must be admin, user or the name of a role of the settings, not "Root"',
  );
  for (const [words, reason] of [
    ['ADMIN', /^stagedoor: User "ADMIN" already exists \(DUPLICATE_USERNAME\)$/m],
    ['dee --email nowhere', /^stagedoor: body\.email: .*\(VALIDATION_ERROR\)$/m],
    ['dee --role root', /^stagedoor: body\.role: Input should be one of admin, user \(VALIDATION_ERROR\)$/m],
    ['dee --templates ,', /^stagedoor: body\.templates\S*: .*\(VALIDATION_ERROR\)$/m],
  ] as const) {
    const refused = gateway.runAt({ line: 'correct horse' }, `user create ${words} --password -`);
    assert.match(await complaint(refused), reason);
  }
});

test('a name that no user may have is refused in words, before the password is asked for', async () => {
  const refused = await complaint(gateway.run('user create', 'Jörg Ä', '--password', '-'), 2);
  assert.match(refused, /^stagedoor: a user name has 1 to 64 letters from A to Z, /);
});

test('set the password of a user', async () => {
  const answers = ['battery staple', 'battery staple'];
  const { code, out } = await gateway.runAt({ answers }, 'user set-password Admin');
  const done = 'changed the password of admin; earlier tokens become void on all gateways within 10 s';
  assert.equal([code, out], [0, done]);
  const attempt = { username: 'admin', password: 'battery staple', address: '127.0.0.1' };
  assert.is((await gateway.server.auth.logins.login(attempt)).user.username, 'admin');
  const nobody = gateway.runAt({ answers: [] }, 'user set-password nobody');
  assert.match(await complaint(nobody), /^stagedoor: user "nobody" not found$/m);
});

test('delete a user by its name in any letter case, but not the last admin', async () => {
  assert.match(
    await complaint(gateway.run('user delete adda')),
    /user "adda" not found; did you mean "ada"\?$/,
  );
  const first = await gateway.run('user delete ADA');
  assert.equal([first.code, first.out], [0, 'ada is deleted']);
  const { username, deleted } = JSON.parse((await gateway.run('user delete bo --json')).out);
  assert.equal([username, deleted], ['bo', true]);
  const left = (await gateway.server.auth.accounts.users()).map((user) => user.username);
  assert.equal(left.sort(), ['admin', 'cy@example.com', 'eve']);
  const nobody = gateway.run('user delete nobody');
  assert.match(await complaint(nobody), /^stagedoor: user "nobody" not found$/m);
  assert.match(await complaint(gateway.run('user delete admin')), /\(LAST_ADMIN\)$/);
});

test.run();
