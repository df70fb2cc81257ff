import * as assert from 'uvu/assert';
import { checkNewApiKey, checkNewUser, checkUserUpdate } from '../../src/auth/accounts.ts';
import type { NewApiKey, NewUser } from '../../src/auth/auth.ts';
import { suite } from '../helpers/suite.ts';
import { findingsOf, START_MS } from './auth-harness.ts';

const user: NewUser = { username: 'ada', email: 'ada@localhost', password: 'long enough', role: 'user' };
const key: NewApiKey = { name: 'robot', permissions: ['tools:call'] };

const test = suite('what is new about accounts');

test('a user with all fields in order is taken', async () => {
  assert.equal(await findingsOf(() => checkNewUser({ ...user, templates: ['demo', 'other-1'] })), []);
  assert.equal(await findingsOf(() => checkUserUpdate({})), []);
  assert.equal(
    await findingsOf(() => checkUserUpdate({ templates: null, isActive: false, role: 'admin' })),
    [],
  );
});

test('everything that is wrong is said at once', async () => {
  const wrong = { ...user, username: ' ada', email: 'ada', password: 'short', templates: ['Demo'] };
  assert.equal(await findingsOf(() => checkNewUser(wrong)), [
    'body.username string_pattern_mismatch',
    'body.email value_error',
    'body.password string_too_short',
    'body.templates value_error',
  ]);
  const { username, role, ...change } = wrong;
  assert.equal((await findingsOf(() => checkUserUpdate(change))).length, 3);
});

test('names and addresses have the form of the account table', async () => {
  for (const username of ['', '.ada', 'a b', 'a\u0000', 'ü', 'a'.repeat(65)])
    assert.equal(
      (await findingsOf(() => checkNewUser({ ...user, username }))).length,
      1,
      JSON.stringify(username),
    );
  for (const email of [
    '',
    '@',
    'a@',
    '@b',
    'a b@c',
    'a@b@c',
    'a\u0000b@c',
    'a\ud800@b',
    'a\u001bb@c',
    'a\u202eb@c',
    'a@b\u2066',
  ])
    assert.equal((await findingsOf(() => checkNewUser({ ...user, email }))).length, 1, JSON.stringify(email));
});

test('a key needs a name and known permissions', async () => {
  const unknown = ['tools:call', 'root', 'tools:*'] as unknown[] as NewApiKey['permissions'];
  assert.equal(
    await findingsOf(() => checkNewApiKey({ name: '', permissions: [], templates: ['a', 'a'] }, 0)),
    ['body.name string_pattern_mismatch', 'body.permissions too_short', 'body.templates value_error'],
  );
  assert.equal(await findingsOf(() => checkNewApiKey({ ...key, permissions: unknown }, 0)), [
    'body.permissions.1 enum',
    'body.permissions.2 enum',
  ]);
});

test('an expiry is a moment of the future with an offset, kept in UTC', async () => {
  const expiry = (expiresAt: string): string | undefined => checkNewApiKey({ ...key, expiresAt }, START_MS);
  assert.is(checkNewApiKey(key, START_MS), undefined);
  assert.is(expiry('2031-01-01T00:00:00Z'), '2031-01-01T00:00:00.000Z');
  assert.is(expiry('2031-01-01T00:00+02:00'), '2030-12-31T22:00:00.000Z');
  assert.is(expiry('2031-01-01 00:00:00.25-0130'), '2031-01-01T01:30:00.250Z');
  assert.is(expiry('2032-02-29T00:00:00Z'), '2032-02-29T00:00:00.000Z');
  const table: [text: string, type: string][] = [
    ['2030-05-06T07:08:09Z', 'datetime_future'],
    ['2030-05-06T07:08:09.250Z', 'datetime_future'],
    ['1969-01-01T00:00:00Z', 'datetime_future'],
    ['2031-01-01', 'datetime_parsing'],
    ['2031-01-01T00:00:00', 'datetime_parsing'],
    ['2031-02-30T00:00:00Z', 'datetime_parsing'],
    ['2031-13-01T00:00:00Z', 'datetime_parsing'],
    ['2031-01-01T25:00:00Z', 'datetime_parsing'],
    ['2031-01-01T00:00:00+99:00', 'datetime_parsing'],
    ['+010000-01-01T00:00:00Z', 'datetime_parsing'],
    ['tomorrow', 'datetime_parsing'],
    ['', 'datetime_parsing'],
  ];
  for (const [text, type] of table)
    assert.equal(await findingsOf(() => expiry(text)), [`body.expires_at ${type}`], text);
});

test.run();
