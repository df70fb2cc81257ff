import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import {
  CredentialsFile,
  credentialsPath,
  requestCredentials,
} from '../../../src/cli/accounts/credentials.ts';
import { UsageError } from '../../../src/cli/failures.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('request credentials');
const url = 'http://127.0.0.1:8080';
let env: Record<string, string> = {};
test.before.each(() => {
  env = { XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'stagedoor-request-')) };
  const token = { username: 'ada', access_token: 'kept', expires_at: '2999-01-01T00:00:00.000Z' };
  new CredentialsFile(credentialsPath(env, 'linux')).keep(url, token);
});
test.after.each(() => rmSync(String(env.XDG_CONFIG_HOME), { recursive: true, force: true }));

test('are the kept token for the gateway that issued it, and nothing for others', () => {
  assert.equal(requestCredentials(url, env).headers, { Authorization: 'Bearer kept' });
  assert.equal(requestCredentials('http://127.0.0.1:8000', env).headers, {});
});

test('come from the environment first', () => {
  const token = requestCredentials(url, { ...env, STAGEDOOR_TOKEN: 'given' });
  const key = requestCredentials('http://elsewhere', { ...env, STAGEDOOR_API_KEY: 'sd_1' });
  assert.equal([token.headers, key.headers], [{ Authorization: 'Bearer given' }, { 'X-API-Key': 'sd_1' }]);
});

test('are refused when they contradict each other or cannot be sent, without being repeated', () => {
  const both = { ...env, STAGEDOOR_TOKEN: 'a', STAGEDOOR_API_KEY: 'b' };
  assert.throws(
    () => requestCredentials(url, both),
    isUsageError(/cannot be combined with STAGEDOOR_API_KEY: unset one of them$/),
  );
  const broken = { ...env, STAGEDOOR_TOKEN: 'planted\nX: y' };
  assert.throws(() => requestCredentials(url, broken), isUsageError(/^STAGEDOOR_TOKEN contains characters/));
  assert.throws(
    () => requestCredentials(url, broken),
    (error: Error) => !error.message.includes('planted'),
  );
});

test('say how to log in when the gateway refuses, or whose fault it is', () => {
  const kept = requestCredentials(url, env).refused('x').message;
  assert.is(kept, `not logged in at ${url}; run "npx stagedoor gateway login ada", or set STAGEDOOR_API_KEY`);
  const nobody = requestCredentials('http://b', env).refused('x').message;
  assert.is(
    nobody,
    'not logged in at http://b; run "npx stagedoor gateway login <name>", or set STAGEDOOR_API_KEY',
  );
  const token = { username: 'ada', access_token: 'old', expires_at: '2020-01-01T00:00:00.000Z' };
  new CredentialsFile(credentialsPath(env, 'linux')).keep(url, token);
  const expired = requestCredentials(url, env);
  assert.equal(expired.headers, {});
  assert.is(
    expired.refused('x').message,
    `the login of ada at ${url} expired at 2020-01-01T00:00:00.000Z; run "npx stagedoor gateway login ada", or set STAGEDOOR_API_KEY`,
  );
  const given = requestCredentials(url, { ...env, STAGEDOOR_API_KEY: 'planted' }).refused(
    'The key has expired',
  );
  assert.is(given.message, `${url} rejects STAGEDOOR_API_KEY: The key has expired`);
});

test.run();

function isUsageError(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof UsageError && message.test(error.message);
}
