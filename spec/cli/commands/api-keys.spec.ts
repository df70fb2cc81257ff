// Creating, listing and revoking API keys.

import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { cellsOf, complaint, gatewayFor, runCommand, serverFor } from './against-gateway.ts';

const test = suite('api-key list, create and revoke');
const KEY = /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/;
const folder = folderOfEach(test);
const gateway = gatewayFor(test, { withAccounts: true });
const serve = serverFor(test);

const mint = async (name: string, more: object = {}) =>
  (await gateway.server.auth.accounts.createApiKey({ name, permissions: ['tools:call'], ...more })).key;
const idOf = (key: string) => key.slice(3, 19);
const authenticate = async (apiKey: string) => gateway.server.auth.authenticate({ apiKey });

test('list every key in a line, without its secret', async () => {
  const key = await mint('ci', { templates: ['files', 'search'] });
  const { code, out } = await gateway.run('api-key list');
  const [headings, , row] = cellsOf(out);
  const names = ['ID', 'NAME', 'PERMISSIONS', 'TEMPLATES', 'STATE', 'EXPIRES', 'LAST USED', 'CREATED BY'];
  assert.equal([code, headings], [0, names]);
  assert.equal(row, [
    ...[idOf(key), 'ci', 'tools:call', 'files, search', 'active', 'never', 'never', 'the operator'],
  ]);
  assert.not.match(out, key.slice(20));
  const records: { name: string }[] = JSON.parse((await gateway.run('api-key list --json')).out);
  const found = records.map(({ name }) => name);
  assert.equal(found, ['operator', 'ci']);
});

test('show whether a key is valid, and its times to the minute', async () => {
  const [past, future] = ['2020-01-01T00:00:00.000Z', '2999-01-31T12:34:56.789Z'];
  const keys = [
    { is_active: true, expires_at: future, created_by: 'bo', last_used_at: past, templates: [] },
    { is_active: false, expires_at: past, created_by: 'ada' },
    { is_active: false, expires_at: null, created_by: 'ada' },
  ];
  const url = await serve((_, response) => void response.end(JSON.stringify(keys)));
  const env = { STAGEDOOR_API_KEY: '' }; // no gateway that could prove anything
  const { out } = await gateway.runAt({ env }, 'api-key list --url', url);
  const rows = out.split('\n').map((line) => line.trim().replace(/ {2,}/g, '|'));
  assert.equal(rows.slice(1), [
    'none|active|2999-01-31 12:34Z|2020-01-01 00:00Z|bo',
    'all|expired|2020-01-01 00:00Z|never|ada',
    'all|not valid|never|never|ada',
  ]);
});

test('print a new key before the gateway is asked anything else', async () => {
  let printed = '';
  let before: string | undefined;
  const url = await serve(({ url: path = '' }, response) => {
    if (path === '/gateway/registry') before = printed;
    response.end(JSON.stringify({ key: 'planted-key', templates: {} }));
  });
  const options = { env: { STAGEDOOR_API_KEY: '' }, onPrint: (text: string) => (printed = text) };
  const line = 'api-key create ci --templates search --url';
  assert.is((await gateway.runAt(options, line, url)).code, 0);
  assert.is(before, 'planted-key');
});

test('print only the new key to a pipe', async () => {
  const { code, out, err } = await gateway.run('api-key create new');
  assert.equal([code, err], [0, `using the gateway ${gateway.url}`]);
  assert.match(out, KEY);
  assert.equal([...(await authenticate(out)).scopes].sort(), ['gateway:read', 'tools:call']);
});

test('print the permissions, templates and expiry of a new key on a terminal', async () => {
  const words = '--permissions tools:call --templates files --expires 2999-01-31T00:00:00Z';
  const { out } = await gateway.runAt({ columns: 80 }, `api-key create ci ${words}`);
  const [first, , line = ''] = out.split('\n');
  const facts = 'tools:call; templates files; until 2999-01-31 00:00Z';
  assert.is(first, `The key "ci" (${facts}), shown only this once:`);
  assert.match(line.trim(), KEY);
});

test('print the record of a new key as JSON, with the key', async () => {
  const { out } = await gateway.run('api-key create all --role admin --expires 1d --json');
  const record = JSON.parse(out);
  assert.match(record.key, KEY);
  assert.equal([record.name, record.permissions.length, record.templates], ['all', 4, null]);
  assert.ok(Math.abs(Date.parse(record.expires_at) - Date.now() - 86_400_000) < 60_000);
});

test('give a key a role of the settings, by the gateway and in the database', async () => {
  const refused = await complaint(gateway.run('api-key create a --role nurse'));
  assert.match(refused, /role: Input should be one of admin, user/);
  const at = (line: string) => runCommand(line.split(' '), {}, folder());
  const rights = 'scopes: [tools:call, gateway:read], templates: [files], tools: ["files/read_*"]';
  writeFileSync(folder('gateway.yaml'), `roles:\n  support: { ${rights} }\n`);
  await at('db migrate');
  const { out, err } = await at('api-key create helper --role support --local --json');
  const { permissions, templates, views, tools } = JSON.parse(out || JSON.stringify({ err }));
  assert.equal(
    [permissions, templates, views, tools],
    [['gateway:read', 'tools:call'], ['files'], [], ['files/read_*']],
  );
  const wider = await at('api-key create b --role support --local --permissions admin');
  assert.match(wider.err, /permissions: Value error, the role 'support' has no admin/);
  const made = await at('user create sue --role support --local --password planted-password');
  assert.is(made.code, 0, made.err);
});

test('refuse invalid options with one line and exit code 2, before a request', async () => {
  for (const [line, reason] of [
    ['', 'missing required argument <name>;'],
    ['a --permissions everything', '--permissions must be gateway:read or'],
    ['a --role Root', '--role must be admin, user or the name of a role of the settings,'],
    ['a --role user --permissions admin', '--permissions must be gateway:read or'],
    ['a --expires tomorrow', '--expires takes a time'],
    ['a --local', '--url cannot be combined with --local'],
  ] as const) {
    // Nothing listens there: a request would end with exit code 1.
    const words = ['--url', 'http://127.0.0.1:2'];
    const refused = complaint(gateway.run(`api-key create ${line}`.trim(), ...words), 2);
    assert.match(await refused, new RegExp(`^stagedoor: ${reason}[^\n]*$`));
  }
});

test('revoke a key by its id, its name, or the key itself', async () => {
  const [one, two, three] = [await mint('one'), await mint('two'), await mint('three')];
  const named = await gateway.run('api-key revoke one');
  assert.equal([named.code, named.out], [0, `the key "one" (${idOf(one)}) is revoked`]);
  const byId = await gateway.run(`api-key revoke ${idOf(two)} --json`);
  assert.equal(JSON.parse(byId.out), { id: idOf(two), name: 'two', revoked: true });
  assert.is((await gateway.run(`api-key revoke ${three}`)).code, 0);
  for (const key of [one, two, three]) assert.is(await codeOf(authenticate(key)), 'INVALID_CREDENTIALS');
});

test('refuse an ambiguous name, and prefer an id to a name', async () => {
  const [one, two] = [await mint('twin'), await mint('twin')];
  const line = `stagedoor: 2 API keys are called "twin"; name one by its id: ${idOf(one)}, ${idOf(two)}`;
  assert.match(await complaint(gateway.run('api-key revoke twin')), new RegExp(`^${line}$`, 'm'));
  const misleading = await mint(idOf(one));
  await gateway.run(`api-key revoke ${idOf(one)}`);
  assert.is(await codeOf(authenticate(one)), 'INVALID_CREDENTIALS');
  for (const key of [two, misleading]) assert.ok(await authenticate(key));
  const near = /API key "tiwn" not found; did you mean "twin"\?$/;
  assert.match(await complaint(gateway.run('api-key revoke tiwn')), near);
  const unknown = /^stagedoor: API key "nothing" not found$/m;
  assert.match(await complaint(gateway.run('api-key revoke nothing')), unknown);
});

test.run();
