import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { CredentialsFile, credentialsPath } from '../../../src/cli/accounts/credentials.ts';
import { suite } from '../../helpers/suite.ts';
import { ADMIN_PASSWORD, runCommand, startGateway } from './against-gateway.ts';

const test = suite('gateway logout');
const urls = ['http://127.0.0.1:8080', 'http://127.0.0.1:8000', 'https://gateway.invalid'];
let env: Record<string, string> = {};
test.before.each(() => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-logout-'));
  env = { XDG_CONFIG_HOME: folder, APPDATA: folder };
  const token = { username: 'ada', access_token: 'x', expires_at: '2999-01-01T00:00:00.000Z' };
  for (const url of urls) new CredentialsFile(credentialsPath(env)).keep(url, token);
});
test.after.each(() => rmSync(String(env.XDG_CONFIG_HOME), { recursive: true, force: true }));

test('forgets the token of the gateway that is named, also when it does not answer', async () => {
  const words = ['gateway', 'logout', '--url', 'https://gateway.invalid/'];
  const [first, second] = [await runCommand(words, env), await runCommand(words, env)];
  assert.equal([first.code, first.out], [0, 'logged out of https://gateway.invalid']);
  assert.match(first.err, /was not ended at https:\/\/gateway\.invalid, where it is valid until 2999/);
  assert.equal([second.code, second.out], [0, 'Not logged in.']);
  assert.equal(left(), urls.slice(0, 2));
});

test('ends the token at its gateway', async () => {
  const gateway = await startGateway({ withAccounts: true });
  try {
    const login = { username: 'admin', password: ADMIN_PASSWORD };
    const answer = await fetch(`${gateway.url}/auth/login`, {
      method: 'POST',
      body: new URLSearchParams(login),
    });
    const { access_token: token } = Object(await answer.json());
    const kept = { username: 'admin', access_token: token, expires_at: '2999-01-01T00:00:00.000Z' };
    new CredentialsFile(credentialsPath(env)).keep(gateway.url, kept);
    const headers = { authorization: `Bearer ${token}` };
    const me = async () => (await fetch(`${gateway.url}/auth/me`, { headers })).status;
    assert.is(await me(), 200);
    const { code, out, err } = await runCommand(['gateway', 'logout', '--url', gateway.url], env);
    assert.equal([code, out, err], [0, `logged out of ${gateway.url}`, '']);
    assert.is(await me(), 401);
  } finally {
    await gateway.close();
  }
});

test('forgets those of the default addresses when none is named', async () => {
  const { out } = await runCommand(['gateway', 'logout', '--json'], env);
  assert.equal(JSON.parse(out), { logged_out: urls.slice(0, 2) });
  assert.equal(left(), [urls[2]]);
});

test('forgets the one of STAGEDOOR_URL before those', async () => {
  await runCommand(['gateway', 'logout'], { ...env, STAGEDOOR_URL: String(urls[2]) });
  assert.equal(left(), urls.slice(0, 2));
});

test('forgets all', async () => {
  const { out } = await runCommand(['gateway', 'logout', '--all'], env);
  assert.is(out, `logged out of ${urls.join(', ')}`);
  assert.equal(left(), []);
});

test('refuses to forget all and one', async () => {
  const { code, err } = await runCommand(['gateway', 'logout', '--all', '--url', 'http://a'], env);
  assert.equal([code, err], [2, 'stagedoor: --all cannot be combined with --url']);
});

test.run();

function left(): string[] {
  const file = new CredentialsFile(credentialsPath(env));
  return urls.filter((url) => file.find(url) !== undefined);
}
