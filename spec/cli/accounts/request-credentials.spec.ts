// The tokens that `gateway login` stores, and the credentials that are sent to each gateway.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as assert from 'uvu/assert';
import { namedEnvironment, requestCredentials } from '../../../src/cli/accounts/request-credentials.ts';
import { findToken, removeToken, storeToken } from '../../../src/cli/accounts/stored-tokens.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { credentialsPath } from '../../../src/templates/command-exposure.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { messageOf, rejects } from '../../helpers/outcome.ts';
import { binPath } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('credentials');
const folder = folderOfEach(test);
const nowMs = Date.parse('2027-01-01T00:00:00Z');
const url = 'http://127.0.0.1:8080';
const token = { username: 'ada', access_token: 'planted-token', expires_at: '2027-01-01T01:00:00.000Z' };
let path = '';
test.before.each(() => {
  path = folder('stagedoor', 'credentials.json');
});

test('stores the tokens of several gateways, and removes expired ones at the next login', () => {
  assert.is(removeToken(path, url), undefined);
  assert.is(existsSync(path), false);
  const other = { ...token, expires_at: '2028-01-01T00:00:00.000Z' };
  storeToken(path, url, token, nowMs);
  storeToken(path, 'http://b', other, nowMs);
  const found = [removeToken(path, url), removeToken(path, url), findToken(path, 'http://b')];
  assert.equal(found, [token, undefined, other]);
  storeToken(path, url, token, nowMs);
  storeToken(path, 'http://c', other, nowMs + 3_600_000);
  assert.not.match(readFileSync(path, 'utf8'), url);
  assert.equal(findToken(path, 'http://b'), other);
});

test('keeps the tokens that several commands store at once', async () => {
  const module = JSON.stringify(new URL('../../../src/cli/accounts/stored-tokens.ts', import.meta.url).href);
  const script = `import { storeToken } from ${module};
    const [path, name, token] = process.argv.slice(1);
    for (let n = 0; n < 25; n += 1) storeToken(path, 'http://' + name + n, JSON.parse(token), ${nowMs});`;
  const running = ['a', 'b', 'c', 'd'].map(async (name) => {
    const words = ['--input-type=module', '-e', script, path, name, JSON.stringify(token)];
    const [code] = await once(spawn(process.execPath, words, { stdio: 'inherit' }), 'exit');
    return code;
  });
  assert.equal(await Promise.all(running), [0, 0, 0, 0]);
  assert.is(Object.keys(JSON.parse(readFileSync(path, 'utf8')).tokens).length, 100);
  assert.equal(readdirSync(dirname(path)), ['credentials.json']);
});

test('a command that was killed while it stored a token stops no other one', () => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.lock`, '');
  storeToken(path, url, token, nowMs);
  assert.equal(findToken(path, url), token);
  assert.is(existsSync(`${path}.lock`), false);
});

test('ignores an invalid file, and replaces it', () => {
  mkdirSync(dirname(path), { recursive: true });
  for (const text of ['', '{"tokens": ', 'null', `{"tokens": {"${url}": null}}`]) {
    writeFileSync(path, text);
    assert.is(findToken(path, url), undefined, text);
    storeToken(path, url, token, nowMs);
    assert.equal(findToken(path, url), token, text);
  }
});

test('fails with one line when the file cannot be read or written', async () => {
  mkdirSync(folder('taken'));
  writeFileSync(folder('file'), '');
  const read = () => findToken(folder('taken'), url);
  await rejects(read, CommandFailure, /taken cannot be read \(it is a folder\)$/);
  const keep = () => storeToken(folder('file', 'credentials.json'), url, token, nowMs);
  await rejects(keep, CommandFailure, /cannot be written \((ENOTDIR|EEXIST)\)$/);
});

if (process.platform !== 'win32') {
  test('a device in place of the file has no token', () => {
    symlinkSync('/dev/null', folder('null'));
    assert.is(findToken(folder('null'), url), undefined);
  });

  test('does not wait for the program of a pipe', async () => {
    execFileSync('mkfifo', [folder('pipe')]);
    await rejects(
      () => findToken(folder('pipe'), url),
      CommandFailure,
      /pipe cannot be read \(not a file\)$/,
    );
    mkdirSync(dirname(path));
    execFileSync('mkfifo', [folder('stagedoor', 'environments.json')]);
    const named = () => namedEnvironment('work', { XDG_CONFIG_HOME: folder() });
    await rejects(named, UsageError, /environments\.json: not a file$/);
  });
}

test('an environment that is not in the file, or whose file is missing, is refused in words', async () => {
  const env = { XDG_CONFIG_HOME: folder() };
  const file = folder('stagedoor', 'environments.json');
  const missing = `--env takes KEY=VALUE, or a name in ${file}: there is no such file`;
  assert.is(await messageOf(() => namedEnvironment('prod', env), UsageError), missing);
  mkdirSync(dirname(file));
  writeFileSync(file, '{"prod": {"url": "https://mcp.example.com"}}');
  const near = `there is no environment "prd" with a url in ${file}; did you mean "prod"?`;
  assert.is(await messageOf(() => namedEnvironment('prd', env), UsageError), near);
});

test('are stored in the configuration folder of the user', () => {
  const HOME = '/home/ada';
  const usual = '/home/ada/.config/stagedoor/credentials.json';
  assert.is(credentialsPath({ HOME }, 'linux'), usual);
  assert.is(credentialsPath({ HOME, XDG_CONFIG_HOME: 'x' }, 'linux'), usual);
  assert.is(credentialsPath({ HOME, XDG_CONFIG_HOME: '/x' }, 'linux'), '/x/stagedoor/credentials.json');
  for (const relative of ['', '.', 'home'])
    assert.is(credentialsPath({ HOME: relative }, 'linux'), credentialsPath({}, 'linux'));
  assert.is(credentialsPath({ HOME, APPDATA: '/data' }, 'win32'), '/data/stagedoor/credentials.json');
});

/** The environment after a login at `url`. */
function loggedIn(kept = { ...token, expires_at: '2999-01-01T00:00:00.000Z' }): Record<string, string> {
  const env = { XDG_CONFIG_HOME: folder() };
  storeToken(credentialsPath(env, 'linux'), url, kept);
  return env;
}

test('sends the stored token only to the gateway that issued it', () => {
  const env = loggedIn();
  const another = { ...token, access_token: 'of-another', expires_at: '2999-01-01T00:00:00.000Z' };
  storeToken(credentialsPath(env, 'linux'), 'http://127.0.0.1:80', another);
  const headersOf = (at: string) => requestCredentials(at, { env, folder: folder() }).headers;
  assert.equal(headersOf(url), { Authorization: 'Bearer planted-token' });
  assert.equal(headersOf('http://127.0.0.1:80'), { Authorization: 'Bearer of-another' });
  for (const other of ['http://b', url.replace('127.0.0.1', 'localhost')]) assert.equal(headersOf(other), {});
});

test('refuses a key with invalid characters, and does not show it', async () => {
  const env = { STAGEDOOR_API_KEY: 'planted\nX: y' };
  const message = await messageOf(() => requestCredentials(url, { env, folder: folder() }), UsageError);
  assert.is(message, 'STAGEDOOR_API_KEY contains characters that are not allowed in a header');
});

test('names the login command, or the rejected variable, when the gateway refuses', () => {
  const env = loggedIn();
  const refused = (to: string, more = {}) =>
    requestCredentials(to, { env: { ...env, ...more }, folder: folder() }).refused('The key has expired');
  const advice = (words: string) => `; run "npx stagedoor gateway login ${words}", or set STAGEDOOR_API_KEY`;
  const login = advice('ada');
  assert.is(refused(url), `not logged in at ${url}${login}`);
  assert.is(refused('http://b'), `not logged in at http://b${advice('<name> --url http://b')}`);
  const key = refused(url, { STAGEDOOR_API_KEY: 'planted' });
  assert.is(key, `${url} rejects the API key in STAGEDOOR_API_KEY: The key has expired`);
  const before = '2020-01-01T00:00:00.000Z';
  loggedIn({ ...token, expires_at: before });
  assert.equal(requestCredentials(url, { env, folder: folder() }).headers, {});
  assert.is(refused(url), `the login of ada at ${url} expired at ${before}${login}`);
});

test('finds no token below a home that is not a folder', () => {
  writeFileSync(folder('home'), '');
  assert.is(findToken(credentialsPath({ HOME: folder('home') }), url), undefined);
});

const asRoot = test.needs(
  process.getuid?.() === 0,
  'only root can start a program as a user without an account',
);

asRoot('needs no home folder to check the machine', () => {
  const env = { PATH: process.env.PATH };
  const words = [binPath, 'doctor', '--state-dir', '/', '--port', '0', '--database', 'memory://'];
  const nobody = { env, cwd: '/', uid: 54_321, gid: 54_321, encoding: 'utf8' } as const;
  const { stdout, stderr } = spawnSync(process.execPath, words, nobody);
  assert.is(stderr, '');
  assert.match(stdout, /^ok +node/);
});

test.run();
