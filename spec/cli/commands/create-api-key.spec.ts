import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway create-api-key');
const key = /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/;
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after(() => gateway.close());

test('prints the key and nothing else where a program reads', async () => {
  const { code, out, err } = await gateway.run('gateway', 'create-api-key', 'ci');
  assert.is(code, 0);
  assert.match(out, key);
  assert.is(err, `using the gateway ${gateway.url}`);
  const principal = await gateway.server.auth.authenticate({ apiKey: out });
  assert.equal([...principal.scopes].sort(), ['gateway:read', 'tools:call']);
});

test('tells a person what it is for', async () => {
  const { out } = await gateway.runAt(
    { columns: 80 },
    ...['gateway', 'create-api-key', 'ci', '--permissions', 'tools:call', '--templates', 'files'],
    ...['--expires', '2999-01-31T00:00:00Z'],
  );
  const [first, , line = ''] = out.split('\n');
  const facts = 'tools:call; templates files; until 2999-01-31 00:00Z';
  assert.is(first, `The key "ci" (${facts}), shown only this once:`);
  assert.match(line.trim(), key);
});

test('warns of a template that is not there, and makes the key', async () => {
  const words = ['gateway', 'create-api-key', 'later', '--templates', 'filesystem,memoy'];
  const { code, out, err } = await gateway.run(...words);
  assert.is(code, 0);
  assert.match(out, key);
  const warning = 'template "memoy" does not exist yet; did you mean "memory"?';
  assert.equal(err.split('\n').slice(1), [`warning: ${warning}`]);
});

test('prints the record as JSON, the key in it', async () => {
  const words = ['gateway', 'create-api-key', 'all', '--role', 'admin', '--expires', '1d', '--json'];
  const record = JSON.parse((await gateway.run(...words)).out);
  assert.match(record.key, key);
  assert.equal([record.name, record.permissions.length, record.templates], ['all', 4, null]);
  assert.ok(Math.abs(Date.parse(record.expires_at) - Date.now() - 86_400_000) < 60_000);
});

test('refuses what makes no key, before anybody is asked', async () => {
  const misuses = [
    [],
    [''],
    ['a', '--permissions', 'everything'],
    ['a', '--role', 'root'],
    ['a', '--role', 'user', '--permissions', 'admin'],
    ['a', '--expires', 'tomorrow'],
    ['a', '--templates', 'A'],
    ['a', '--local', '--url', 'http://a'],
  ];
  for (const words of misuses) {
    const { code, out, err } = await gateway.run('gateway', 'create-api-key', ...words);
    assert.equal([code, out], [2, ''], words.join(' '));
    assert.match(err, /^stagedoor: [^\n]+$/);
  }
});

test.run();
