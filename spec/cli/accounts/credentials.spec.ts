// The tokens that `gateway login` stores, and the credentials that are sent to each gateway.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as assert from 'uvu/assert';
import {
  CredentialsFile,
  credentialsPath,
  requestCredentials,
} from '../../../src/cli/accounts/credentials.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { writePrivateFile } from '../../../src/cli/private-file.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { messageOf, rejects } from '../../helpers/outcome.ts';
import { binPath } from '../../helpers/program.ts';
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

test('keeps the tokens of concurrent logins, and gives up the check after five attempts', () => {
  let others = 0;
  // Another process logs in right before this one replaces the file.
  const another = () => {
    others += 1;
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '{"tokens":{}}';
    const tokens = { ...JSON.parse(text).tokens, [`http://other-${others}`]: token };
    writeFileSync(path, JSON.stringify({ tokens }));
  };
  const disturbed = (most: number) =>
    new CredentialsFile(path, (target, text, isStillRight) =>
      writePrivateFile(target, text, () => {
        if (others < most) another();
        return isStillRight?.() ?? true;
      }),
    );
  const kept = () => Object.keys(JSON.parse(readFileSync(path, 'utf8')).tokens).sort();

  disturbed(2).store(url, token, nowMs);
  assert.equal(kept(), [url, 'http://other-1', 'http://other-2']);
  assert.is(disturbed(4).remove('http://other-1'), true);
  assert.equal(kept(), [url, 'http://other-2', 'http://other-3', 'http://other-4']);

  disturbed(Number.POSITIVE_INFINITY).store('http://mine', token, nowMs);
  assert.is(others, 4 + 5);
  assert.is(kept().includes('http://mine'), true);
});

test('does not use an expired token, and removes it with the next login or logout', () => {
  const file = new CredentialsFile(path);
  const later = nowMs + 3_600_000;
  file.store(url, token, nowMs);
  assert.is(file.valid(later).get(url), undefined);
  assert.equal([file.remove(url), file.remove(url)], [true, false]);
  file.store(url, token, nowMs);
  file.store('http://b', { ...token, expires_at: '2028-01-01T00:00:00.000Z' }, later);
  assert.not.match(readFileSync(path, 'utf8'), url);
});

test('removes one token or all, returns which, and writes no file when there was none', () => {
  const file = new CredentialsFile(path);
  assert.equal([file.remove(url), file.removeAll(), existsSync(path)], [false, [], false]);
  for (const each of [url, 'http://b', 'http://c']) file.store(each, token, nowMs);
  assert.equal([file.remove('http://b'), file.removeAll()], [true, [url, 'http://c']]);
  assert.not.match(readFileSync(path, 'utf8'), 'planted-token');
});

test('ignores an invalid file or token, and replaces it', () => {
  mkdirSync(dirname(path), { recursive: true });
  const tokens = [{ access_token: 7 }, { ...token, expires_at: 'never' }];
  const broken = tokens.map((each) => JSON.stringify({ tokens: { [url]: each } }));
  for (const text of ['', '{"tokens": ', 'null', '{"tokens": 1}', ...broken]) {
    writeFileSync(path, text);
    const file = new CredentialsFile(path);
    assert.is(file.valid(nowMs).get(url), undefined, text);
    file.store(url, token, nowMs);
    assert.equal(file.valid(nowMs).get(url), token, text);
  }
});

test('fails with one line when the file cannot be read or written', async () => {
  mkdirSync(folder('taken'));
  writeFileSync(folder('file'), '');
  const below = folder('file', 'credentials.json');
  const read = () => new CredentialsFile(folder('taken')).valid(nowMs);
  await rejects(read, CommandFailure, /taken cannot be read \(EISDIR\)$/);
  const keep = () => new CredentialsFile(below).store(url, token, nowMs);
  await rejects(keep, CommandFailure, /cannot be written \((ENOTDIR|EEXIST)\)$/);
});

test('are stored in the configuration folder of the user', () => {
  const HOME = '/home/ada';
  const usual = '/home/ada/.config/stagedoor/credentials.json';
  assert.is(credentialsPath({ HOME }, 'linux'), usual);
  assert.is(credentialsPath({ HOME, XDG_CONFIG_HOME: 'x' }, 'linux'), usual);
  assert.is(credentialsPath({ HOME, XDG_CONFIG_HOME: '/x' }, 'linux'), '/x/stagedoor/credentials.json');
  assert.is(credentialsPath({ HOME, APPDATA: '/data' }, 'win32'), '/data/stagedoor/credentials.json');
});

/** The environment after a login at `url`. */
function loggedIn(kept = { ...token, expires_at: '2999-01-01T00:00:00.000Z' }): Record<string, string> {
  const env = { XDG_CONFIG_HOME: folder() };
  new CredentialsFile(credentialsPath(env, 'linux')).store(url, kept);
  return env;
}

test('sends the stored token only to the gateway that issued it', () => {
  const env = loggedIn();
  const another = { ...token, access_token: 'of-another', expires_at: '2999-01-01T00:00:00.000Z' };
  new CredentialsFile(credentialsPath(env, 'linux')).store('http://127.0.0.1:80', another);
  const headersOf = (at: string) => requestCredentials(at, env).headers;
  assert.equal(headersOf(url), { Authorization: 'Bearer planted-token' });
  assert.equal(headersOf('http://127.0.0.1:80'), { Authorization: 'Bearer of-another' });
  for (const other of ['http://b', url.replace('127.0.0.1', 'localhost')]) assert.equal(headersOf(other), {});
});

test('refuses two kinds of credentials and invalid characters, and does not show the values', async () => {
  const both = { STAGEDOOR_TOKEN: 'planted', STAGEDOOR_API_KEY: 'b' };
  for (const [env, line] of [
    [both, /cannot be combined with STAGEDOOR_API_KEY: unset one of them$/],
    [{ STAGEDOOR_TOKEN: 'planted\nX: y' }, /^STAGEDOOR_TOKEN contains characters/],
  ] as const) {
    const message = await messageOf(() => requestCredentials(url, env), UsageError);
    assert.match(message, line);
    assert.not.match(message, 'planted');
  }
});

test('names the login command, or the rejected variable, when the gateway refuses', () => {
  const env = loggedIn();
  const refused = (to: string, more = {}) =>
    requestCredentials(to, { ...env, ...more }).refused('The key has expired').message;
  const login = (name: string) => `; run "npx stagedoor gateway login ${name}", or set STAGEDOOR_API_KEY`;
  assert.is(refused(url), `not logged in at ${url}${login('ada')}`);
  assert.is(refused('http://b'), `not logged in at http://b${login('<name>')}`);
  const key = refused(url, { STAGEDOOR_API_KEY: 'planted' });
  assert.is(key, `${url} rejects STAGEDOOR_API_KEY: The key has expired`);
  const before = '2020-01-01T00:00:00.000Z';
  loggedIn({ ...token, expires_at: before });
  assert.equal(requestCredentials(url, env).headers, {});
  assert.is(refused(url), `the login of ada at ${url} expired at ${before}${login('ada')}`);
});

test('finds no token below a home that is no folder', () => {
  writeFileSync(folder('home'), '');
  assert.is(new CredentialsFile(credentialsPath({ HOME: folder('home') })).find(url), undefined);
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
