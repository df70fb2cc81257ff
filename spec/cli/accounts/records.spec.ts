import * as assert from 'uvu/assert';
import {
  API_KEY_HEADINGS,
  apiKeyRow,
  hasExpired,
  keyState,
  minute,
  USER_HEADINGS,
  userRow,
} from '../../../src/cli/accounts/records.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('account records');
const circumstances = { nowMs: Date.parse('2027-02-01T00:00:00Z'), disabled: new Set(['ada']) };

test('show a user in a row', () => {
  const user = {
    id: '1',
    username: 'ada',
    email: 'ada@localhost',
    role: 'admin',
    is_superuser: true,
    templates: null,
    is_active: true,
    created_at: '2027-01-31T12:34:56.789Z',
    updated_at: '2027-01-31T12:34:56.789Z',
  };
  const row = ['ada', 'admin', 'ada@localhost', 'all', 'active', '2027-01-31 12:34Z', '1'];
  assert.equal([userRow(user).length, userRow(user)], [USER_HEADINGS.length, row]);
  const limited = userRow({ ...user, templates: ['a', 'b'], is_active: false });
  assert.equal(limited.slice(3, 5), ['a, b', 'disabled']);
});

test('show a key in a row, and nothing of its secret', () => {
  const key = {
    id: '0123456789abcdef',
    name: 'ci',
    permissions: ['tools:call', 'admin'],
    templates: [],
    expires_at: null,
    last_used_at: '2027-01-31T12:34:56.789Z',
    created_at: '2027-01-31T12:34:56.789Z',
    is_active: false,
    created_by: null,
    key: 'planted',
  };
  const row = [
    '0123456789abcdef',
    'ci',
    'tools:call, admin',
    'none',
    'not valid',
    'never',
    '2027-01-31 12:34Z',
  ];
  assert.equal(
    [apiKeyRow(key, circumstances).length, apiKeyRow(key, circumstances)],
    [API_KEY_HEADINGS.length, [...row, 'the operator']],
  );
});

test('say why a key is not valid, as far as that is known', () => {
  const past = '2027-02-01T00:00:00.000Z';
  const future = '2027-02-01T00:00:00.001Z';
  const states: readonly (readonly [Record<string, unknown>, string])[] = [
    [{ is_active: true, expires_at: future, created_by: 'bo' }, 'active'],
    [{ is_active: false, expires_at: past, created_by: 'bo' }, 'expired'],
    [{ is_active: false, expires_at: past, created_by: 'ada' }, 'expired'],
    [{ is_active: false, expires_at: future, created_by: 'ada' }, 'owner disabled'],
    [{ is_active: false, expires_at: null, created_by: 'ada' }, 'owner disabled'],
    [{ is_active: false, expires_at: null, created_by: 'bo' }, 'not valid'],
    [{ is_active: false, expires_at: 'soon', created_by: null }, 'not valid'],
  ];
  for (const [key, state] of states) assert.is(keyState(key, circumstances), state, JSON.stringify(key));
  assert.equal(
    [past, future, null].map((each) => hasExpired({ expires_at: each }, circumstances.nowMs)),
    [true, false, false],
  );
});

test('show nothing for what a gateway of another version does not send', () => {
  assert.equal(userRow({}), ['', '', '', 'all', 'active', '', '']);
  assert.equal(apiKeyRow({}, circumstances), ['', '', '', 'all', 'active', 'never', 'never', 'the operator']);
});

test('show times to the minute, and others as they are', () => {
  assert.equal(['2027-01-31T12:34:56Z', 'soon', 7].map(minute), ['2027-01-31 12:34Z', 'soon', '7']);
});

test.run();
