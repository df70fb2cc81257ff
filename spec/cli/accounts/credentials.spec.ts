import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as assert from 'uvu/assert';
import {
  CredentialsFile,
  credentialsPath,
  requestCredentials,
} from '../../../src/cli/accounts/credentials.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { writePrivateFile } from '../../../src/cli/private-file.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('credentials file');
const nowMs = Date.parse('2027-01-01T00:00:00Z');
const url = 'http://127.0.0.1:8080';
const token = { username: 'ada', access_token: 'planted-token', expires_at: '2027-01-01T01:00:00.000Z' };
let folder = '';
let path = '';
test.before.each(() => {
  folder = mkdtempSync(join(tmpdir(), 'stagedoor-credentials-'));
  path = join(folder, 'stagedoor', 'credentials.json');
});
test.after.each(() => rmSync(folder, { recursive: true, force: true }));

test('keeps one token per gateway and gives it to that gateway alone', () => {
  const file = new CredentialsFile(path);
  assert.is(file.find(url, nowMs), undefined);
  file.keep(url, token, nowMs);
  file.keep('http://127.0.0.1:80', { ...token, access_token: 'of another' }, nowMs);
  assert.equal(new CredentialsFile(path).find(url, nowMs), token);
  for (const other of [
    'http://127.0.0.1:8080/',
    'https://127.0.0.1:8080',
    'http://localhost:8080',
    '__proto__',
  ]) {
    assert.is(file.find(other, nowMs), undefined, other);
  }
});

test('keeps what another login wrote in the meantime, and ends when that goes on for ever', () => {
  let others = 0;
  // The file of a login that another process does right before this one replaces the file.
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

  disturbed(2).keep(url, token, nowMs);
  assert.equal(kept(), [url, 'http://other-1', 'http://other-2']);
  assert.is(disturbed(4).forget('http://other-1'), true);
  assert.equal(kept(), [url, 'http://other-2', 'http://other-3', 'http://other-4']);

  disturbed(Number.POSITIVE_INFINITY).keep('http://mine', token, nowMs);
  assert.is(others, 4 + 5);
  assert.is(kept().includes('http://mine'), true);
});

test('closes file and folder to others', () => {
  new CredentialsFile(path).keep(url, token, nowMs);
  if (process.platform === 'win32') return;
  assert.equal([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777], [0o600, 0o700]);
});

test('forgets what has expired, on reading and on disk', () => {
  const file = new CredentialsFile(path);
  file.keep(url, token, nowMs);
  const later = nowMs + 3_600_000;
  assert.is(file.find(url, later), undefined);
  file.keep('http://b', { ...token, expires_at: '2028-01-01T00:00:00.000Z' }, later);
  assert.not.match(readFileSync(path, 'utf8'), url);
});

test('forgets one or all, and says what there was', () => {
  const file = new CredentialsFile(path);
  for (const each of [url, 'http://b', 'http://c']) file.keep(each, token, nowMs);
  assert.equal([file.forget('http://b'), file.forget('http://b')], [true, false]);
  assert.equal([file.forgetAll(), file.forgetAll()], [[url, 'http://c'], []]);
  assert.not.match(readFileSync(path, 'utf8'), 'planted-token');
});

test('forgets a token that has expired: it is in the file until then', () => {
  const file = new CredentialsFile(path);
  file.keep(url, token, nowMs);
  assert.is(file.find(url, Date.parse(token.expires_at) + 1), undefined);
  assert.equal([file.forget(url), file.forget(url)], [true, false]);
  assert.not.match(readFileSync(path, 'utf8'), new RegExp(token.access_token));
});

test('writes nothing when there is nothing to forget', () => {
  new CredentialsFile(path).forget(url);
  new CredentialsFile(path).forgetAll();
  assert.is(existsSync(path), false);
});

test('takes what is no such document for nothing, and writes it anew', () => {
  mkdirSync(dirname(path), { recursive: true });
  const broken = [
    '',
    '{"tokens": ',
    'null',
    '[]',
    '{"tokens": 1}',
    `{"tokens": {"${url}": {"access_token": 7}}}`,
  ];
  for (const text of broken) {
    writeFileSync(path, text);
    const file = new CredentialsFile(path);
    assert.is(file.find(url, nowMs), undefined, text);
    file.keep(url, token, nowMs);
    assert.equal(file.find(url, nowMs), token, text);
  }
});

test('does not take a token without a real time of expiry', () => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify({ tokens: { [url]: { ...token, expires_at: 'never' } } }));
  assert.is(new CredentialsFile(path).find(url, nowMs), undefined);
});

test('says in one line that it cannot be read or written', () => {
  const taken = join(folder, 'taken');
  mkdirSync(taken);
  assert.throws(
    () => new CredentialsFile(taken).find(url, nowMs),
    (error: Error) => error instanceof CommandFailure && error.message === `${taken} cannot be read (EISDIR)`,
  );
  const below = join(folder, 'file', 'credentials.json');
  writeFileSync(join(folder, 'file'), '');
  assert.throws(
    () => new CredentialsFile(below).keep(url, token, nowMs),
    (error: Error) =>
      error instanceof CommandFailure && /cannot be (read|written) \(ENOTDIR\)$/.test(error.message),
  );
});

test('lies in the folder of settings of this person', () => {
  const place = (env: Record<string, string>, platform: NodeJS.Platform = 'linux') =>
    credentialsPath(env, platform);
  assert.is(place({ HOME: '/home/ada' }), '/home/ada/.config/stagedoor/credentials.json');
  assert.is(place({ HOME: '/home/ada', XDG_CONFIG_HOME: '/x' }), '/x/stagedoor/credentials.json');
  assert.is(
    place({ HOME: '/home/ada', XDG_CONFIG_HOME: 'x' }),
    '/home/ada/.config/stagedoor/credentials.json',
  );
  assert.is(place({ HOME: '/home/ada', APPDATA: '/data' }, 'win32'), '/data/stagedoor/credentials.json');
});

test.run();

const request = suite('request credentials');
const urlRequest = 'http://127.0.0.1:8080';
let env: Record<string, string> = {};
request.before.each(() => {
  env = { XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'stagedoor-request-')) };
  const token = { username: 'ada', access_token: 'kept', expires_at: '2999-01-01T00:00:00.000Z' };
  new CredentialsFile(credentialsPath(env, 'linux')).keep(urlRequest, token);
});
request.after.each(() => rmSync(String(env.XDG_CONFIG_HOME), { recursive: true, force: true }));

request('are the kept token for the gateway that issued it, and nothing for others', () => {
  assert.equal(requestCredentials(urlRequest, env).headers, { Authorization: 'Bearer kept' });
  assert.equal(requestCredentials('http://127.0.0.1:8000', env).headers, {});
});

request('come from the environment first', () => {
  const token = requestCredentials(urlRequest, { ...env, STAGEDOOR_TOKEN: 'given' });
  const key = requestCredentials('http://elsewhere', { ...env, STAGEDOOR_API_KEY: 'sd_1' });
  assert.equal([token.headers, key.headers], [{ Authorization: 'Bearer given' }, { 'X-API-Key': 'sd_1' }]);
});

request('are refused when they contradict each other or cannot be sent, without being repeated', () => {
  const both = { ...env, STAGEDOOR_TOKEN: 'a', STAGEDOOR_API_KEY: 'b' };
  assert.throws(
    () => requestCredentials(urlRequest, both),
    isUsageError(/cannot be combined with STAGEDOOR_API_KEY: unset one of them$/),
  );
  const broken = { ...env, STAGEDOOR_TOKEN: 'planted\nX: y' };
  assert.throws(
    () => requestCredentials(urlRequest, broken),
    isUsageError(/^STAGEDOOR_TOKEN contains characters/),
  );
  assert.throws(
    () => requestCredentials(urlRequest, broken),
    (error: Error) => !error.message.includes('planted'),
  );
});

request('say how to log in when the gateway refuses, or whose fault it is', () => {
  const kept = requestCredentials(urlRequest, env).refused('x').message;
  assert.is(
    kept,
    `not logged in at ${urlRequest}; run "npx stagedoor gateway login ada", or set STAGEDOOR_API_KEY`,
  );
  const nobody = requestCredentials('http://b', env).refused('x').message;
  assert.is(
    nobody,
    'not logged in at http://b; run "npx stagedoor gateway login <name>", or set STAGEDOOR_API_KEY',
  );
  const token = { username: 'ada', access_token: 'old', expires_at: '2020-01-01T00:00:00.000Z' };
  new CredentialsFile(credentialsPath(env, 'linux')).keep(urlRequest, token);
  const expired = requestCredentials(urlRequest, env);
  assert.equal(expired.headers, {});
  assert.is(
    expired.refused('x').message,
    `the login of ada at ${urlRequest} expired at 2020-01-01T00:00:00.000Z; run "npx stagedoor gateway login ada", or set STAGEDOOR_API_KEY`,
  );
  const given = requestCredentials(urlRequest, { ...env, STAGEDOOR_API_KEY: 'planted' }).refused(
    'The key has expired',
  );
  assert.is(given.message, `${urlRequest} rejects STAGEDOOR_API_KEY: The key has expired`);
});

request.run();

function isUsageError(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof UsageError && message.test(error.message);
}
