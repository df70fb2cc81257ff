import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { ADMIN_PASSWORD, type GatewayUnderTest, runAtTerminal, startGateway } from './against-gateway.ts';

const test = suite('gateway login');
let gateway: GatewayUnderTest;
let env: Record<string, string> = {};
let path = '';
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after(() => gateway.close());
test.before.each(() => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-login-'));
  env = { XDG_CONFIG_HOME: folder, APPDATA: folder, STAGEDOOR_URL: gateway.url };
  path = join(folder, 'stagedoor', 'credentials.json');
});
test.after.each(() => rmSync(String(env.XDG_CONFIG_HOME), { recursive: true, force: true }));

test('asks for the password, keeps the token and does not print it', async () => {
  const { code, out, err } = await runAtTerminal(['gateway', 'login', 'admin'], {
    env,
    answers: [ADMIN_PASSWORD],
  });
  assert.equal([code, err], [0, '']);
  assert.is(out, `admin is logged in at ${gateway.url} for 1 h 0 min; the token is in ${path}`);
  const kept = JSON.parse(readFileSync(path, 'utf8')).tokens[gateway.url];
  assert.is(kept.username, 'admin');
  assert.not.match(out, kept.access_token);
  const listed = await runAtTerminal(['gateway', 'users', '--json'], { env });
  assert.equal(JSON.parse(listed.out).length, 1);
});

test('tells what was kept as JSON, without the token', async () => {
  const words = ['gateway', 'login', 'admin', '--password', '-', '--json'];
  const { out } = await runAtTerminal(words, { env, line: ADMIN_PASSWORD });
  const done = JSON.parse(out);
  assert.equal(Object.keys(done), ['url', 'username', 'expires_at']);
  assert.ok(Date.parse(done.expires_at) > Date.now());
});

test('keeps nothing when the password is wrong, and does not say who exists', async () => {
  const errors = [];
  for (const name of ['admin', 'nobody']) {
    const words = ['gateway', 'login', name, '--password', '-'];
    const { code, err } = await runAtTerminal(words, { env, line: 'not the password' });
    assert.is(code, 1);
    errors.push(err.replaceAll(name, '<name>'));
  }
  assert.is(errors[0], errors[1]);
  const [line = '', hint] = String(errors[0]).split('\n');
  assert.match(line, /^stagedoor: [^\n]+ \(INVALID_CREDENTIALS\)$/);
  assert.is(
    hint,
    'To replace a lost password, run "npx stagedoor gateway set-password <name>" in the folder in which the gateway is started.',
  );
  assert.is(existsSync(path), false);
});

test('sends no kept token or key with a login', async () => {
  const seen: unknown[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization, request.headers['x-api-key'], request.headers['content-type']);
    response.end(JSON.stringify({ access_token: 'x', token_type: 'bearer', expires_in: 60 }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const words = ['gateway', 'login', 'ada', '--password', '-', '--url', url];
  const { code, err } = await runAtTerminal(words, {
    env: { ...env, STAGEDOOR_API_KEY: 'planted' },
    line: 'secret',
  });
  server.close();
  server.closeAllConnections();
  assert.is(code, 0);
  assert.equal(seen, [undefined, undefined, 'application/x-www-form-urlencoded;charset=UTF-8']);
  assert.is(err, 'warning: STAGEDOOR_API_KEY is set and takes precedence over this login');
});

test('warns before a password leaves this machine unencrypted', async () => {
  const words = ['gateway', 'login', 'ada', '--url', 'http://gateway.invalid', '--password', '-'];
  const { code, err } = await runAtTerminal(words, { env, line: 'secret' });
  assert.is(code, 1);
  assert.match(err, /^warning: the password travels to gateway\.invalid without encryption/);
});

test('says when to try again after too many attempts, and nothing of lost passwords', async () => {
  const server = createServer((_, response) => {
    const body = { detail: 'Too many attempts to log in.', error_code: 'TOO_MANY_ATTEMPTS' };
    response.writeHead(429, { 'Retry-After': '59' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const words = ['gateway', 'login', 'ada', '--password', '-', '--url', url];
  const { code, err } = await runAtTerminal(words, { env, line: 'secret' });
  server.close();
  server.closeAllConnections();
  const line = 'stagedoor: Too many attempts to log in; try again in 59 s (TOO_MANY_ATTEMPTS)';
  assert.equal([code, err], [1, line]);
});

test('fails when the answer is no token', async () => {
  const server = createServer((_, response) => void response.end('{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const words = ['gateway', 'login', 'ada', '--password', '-', '--url', url];
  const { code, err } = await runAtTerminal(words, { env, line: 'secret' });
  server.close();
  server.closeAllConnections();
  assert.equal([code, err], [1, `stagedoor: ${url} answered the login without a token`]);
});

test.run();
