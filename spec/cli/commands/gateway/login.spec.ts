// Tokens are stored at a login, and removed at a logout.

import { existsSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { findToken, storeToken } from '../../../../src/cli/accounts/stored-tokens.ts';
import { filesIn, writeDaemon } from '../../../../src/cli/background/daemon-files.ts';
import { credentialsPath } from '../../../../src/templates/command-exposure.ts';
import { folderOfEach } from '../../../helpers/folder.ts';
import { suite } from '../../../helpers/suite.ts';
import {
  ADMIN_PASSWORD,
  complaint,
  gatewayFor,
  printed,
  runAtTerminal,
  serverFor,
} from '../against-gateway.ts';

const test = suite('gateway login and logout');
const folder = folderOfEach(test);
const gateway = gatewayFor(test, { withAccounts: true });
const serve = serverFor(test);

const path = () => folder('stagedoor', 'credentials.json');
const home = () => ({ XDG_CONFIG_HOME: folder(), APPDATA: folder() });
/** With a password on standard input. */
const run = (words: string, line?: string, env: Record<string, string> = { STAGEDOOR_URL: gateway.url }) =>
  runAtTerminal(words.split(' '), {
    ...{ env: { ...home(), ...env }, folder: folder() },
    ...(line === undefined ? {} : { line }),
  });

test('login asks for the password, stores the token and does not print it', async () => {
  const env = { ...home(), STAGEDOOR_URL: gateway.url };
  const words = ['gateway', 'login', 'admin'];
  const out = await printed(runAtTerminal(words, { env, answers: [ADMIN_PASSWORD] }));
  assert.is(out, `admin is logged in at ${gateway.url} for 1 h 0 min; the token is in ${path()}`);
  const kept = JSON.parse(readFileSync(path(), 'utf8')).tokens[gateway.url];
  assert.is(kept.username, 'admin');
  assert.not.match(out, kept.access_token);
  assert.equal(JSON.parse((await run('user list --json')).out).length, 1);
  const done = JSON.parse((await run('gateway login admin --password - --json', ADMIN_PASSWORD)).out);
  assert.equal(Object.keys(done), ['url', 'username', 'expires_at']);
  assert.ok(Date.parse(done.expires_at) > Date.now());
});

test('login stores nothing when the password is wrong, and does not reveal whether the user exists', async () => {
  const errors: string[] = [];
  for (const name of ['admin', 'nobody']) {
    const err = await complaint(run(`gateway login ${name} --password -`, 'not the password'));
    errors.push(err.replaceAll(name, '<name>'));
  }
  assert.is(errors[0], errors[1]);
  assert.match(String(errors[0]), /^stagedoor: [^\n]+ \(INVALID_CREDENTIALS\)$/);
  assert.is(existsSync(path()), false);
});

test('login sends no stored token or API key', async () => {
  const seen: unknown[] = [];
  const url = await serve(({ headers }, response) => {
    seen.push(headers.authorization, headers['x-api-key'], headers['content-type']);
    response.end(JSON.stringify({ access_token: 'x', token_type: 'bearer', expires_in: 60 }));
  });
  const env = { STAGEDOOR_API_KEY: 'planted' };
  const { code, err } = await run(`gateway login ada --password - --url ${url}`, 'secret', env);
  assert.equal(seen, [undefined, undefined, 'application/x-www-form-urlencoded;charset=UTF-8']);
  assert.is(code, 0);
  const [precedence, proof] = err.split('\n');
  assert.is(precedence, 'warning: STAGEDOOR_API_KEY is set and takes precedence over this login');
  assert.match(
    String(proof),
    /^warning: \S+ did not prove that it knows this login, .* give the next command --trust, once$/,
  );
});

test('login keeps a token with a life that no date can express for ten years', async () => {
  const url = await serve((_, response) => {
    response.end(JSON.stringify({ access_token: 'x', token_type: 'bearer', expires_in: 1e300 }));
  });
  const { code, out } = await run(`gateway login ada --password - --url ${url} --json`, 'secret');
  assert.is(code, 0);
  const years = (Date.parse(JSON.parse(out).expires_at) - Date.now()) / (365 * 24 * 3_600_000);
  assert.is(Math.round(years), 10);
});

test('login that is refused names no credentials, because it sent none but the password', async () => {
  const url = await serve((_, response) => {
    response
      .writeHead(403)
      .end(JSON.stringify({ detail: 'No passwords here.', error_code: 'PASSWORDS_OFF' }));
  });
  const login = run(`gateway login ada --password - --url ${url}`, 'secret');
  assert.is(await complaint(login), 'stagedoor: No passwords here (PASSWORDS_OFF)');
});

test('login warns before it sends a password to another machine without encryption', async () => {
  const login = run('gateway login ada --url http://gateway.invalid --password -', 'secret');
  const warning = /^warning: the password travels to gateway\.invalid without encryption/;
  assert.match(await complaint(login), warning);
});

const urls = ['http://127.0.0.1:8080', 'http://127.0.0.1:8000', 'https://gateway.invalid'];
const [, , far = ''] = urls;
/** A logout with a stored token for each of those; its output, and the gateways whose tokens are left. */
async function logout(words: string, env: Record<string, string> = {}) {
  const path = credentialsPath(home());
  const token = { username: 'ada', access_token: 'x', expires_at: '2999-01-01T00:00:00.000Z' };
  for (const url of urls) storeToken(path, url, token);
  const outcome = await run(`gateway logout${words}`, undefined, env);
  return { ...outcome, left: urls.filter((url) => findToken(path, url) !== undefined) };
}

test('logout removes the token of the given gateway, even if that does not answer', async () => {
  const first = await logout(` --url ${far}/`);
  assert.equal([first.code, first.out, first.left], [0, `logged out of ${far}`, urls.slice(0, 2)]);
  assert.match(first.err, /was not ended at https:\/\/gateway\.invalid, where it is valid until 2999/);
  assert.is(await printed(run(`gateway logout --url ${far}/`, undefined, {})), 'not logged in');
});

test('logout revokes the token at its gateway', async () => {
  await run('gateway login admin --password -', ADMIN_PASSWORD);
  const { access_token } = JSON.parse(readFileSync(path(), 'utf8')).tokens[gateway.url];
  const headers = { authorization: `Bearer ${access_token}` };
  const me = async () => (await fetch(`${gateway.url}/auth/me`, { headers })).status;
  assert.is(await me(), 200);
  const out = await printed(run(`gateway logout --url ${gateway.url}`, undefined, {}));
  assert.equal([out, await me()], [`logged out of ${gateway.url}`, 401]);
});

test('logout removes the token of STAGEDOOR_URL, else those of the default addresses', async () => {
  const here = 'http://127.0.0.1:9001';
  writeDaemon(filesIn(folder()), { pid: 1, url: here, words: [], folder: folder(), graceMs: 0 });
  urls.push(here);
  assert.is((await logout('')).out, `logged out of ${here}, ${urls[0]}, ${urls[1]}`);
  urls.pop();
  const defaults = await logout(' --json');
  assert.equal([JSON.parse(defaults.out), defaults.left], [{ logged_out: urls.slice(0, 2) }, [far]]);
  assert.equal((await logout('', { STAGEDOOR_URL: far })).left, urls.slice(0, 2));
});

test.run();
