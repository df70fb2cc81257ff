import * as assert from 'uvu/assert';
import { PASSWORD, startWithAccounts } from '../../helpers/http-accounts.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the route of the audit log');

interface Line {
  readonly id: string;
  readonly actor: string;
  readonly actor_name: string;
  readonly action: string;
  readonly subject: string;
  readonly status: number;
  readonly address: string | null;
  readonly request_id: string | null;
}

async function start() {
  const app = await startWithAccounts();
  const page = async (query = ''): Promise<{ entries: Line[]; next_cursor: string | null }> =>
    JSON.parse((await app.as(app.admin, 'GET', `/gateway/audit${query}`)).text);
  return { ...app, page };
}

test('tells who changed what, the newest first, what was refused included', async () => {
  const app = await start();
  const body = { template_name: 'demo', id: 'one', endpoint: 'http://127.0.0.1:1/mcp?key=planted-secret' };
  await app.as(app.admin, 'POST', '/gateway/register', { body, headers: { 'x-request-id': 'r1' } });
  await app.as(app.user, 'DELETE', '/servers/one');
  await app.ask('DELETE', '/servers/one?why=planted-secret');
  await app.ask('POST', '/auth/login', { body: { username: 'ada', password: 'planted-secret' } });
  await app.ask('POST', '/auth/login', { body: { username: 'ada', password: PASSWORD } });
  await app.as(app.admin, 'GET', '/servers');
  await app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name: 'x' } });
  await app.as(app.admin, 'DELETE', '/servers/one');
  const { entries, next_cursor } = await app.page();
  const admin = String((await app.as(app.admin, 'GET', '/auth/me')).body.id);
  const ada = String((await app.as(app.user, 'GET', '/auth/me')).body.id);
  assert.equal(
    entries.map(({ actor, actor_name, action, subject, status }) => [
      actor,
      actor_name,
      action,
      subject,
      status,
    ]),
    [
      [admin, 'admin', 'DELETE /servers/:server_id', '/servers/one', 204],
      [ada, 'ada', 'POST /auth/login', '/auth/login', 200],
      ['unknown', 'unknown', 'POST /auth/login', '/auth/login', 401],
      ['unknown', 'unknown', 'DELETE /servers/:server_id', '/servers/one', 401],
      [ada, 'ada', 'DELETE /servers/:server_id', '/servers/one', 403],
      [admin, 'admin', 'POST /gateway/register', '/servers/one', 201],
    ],
  );
  assert.is(next_cursor, null);
  assert.is(entries.at(-1)?.request_id, 'r1');
  assert.match(String(entries.at(-1)?.address), /127\.0\.0\.1$/);
  assert.not.match(JSON.stringify(entries), /planted-secret/);
  await app.close();
});

test('names accounts that were made, and never what they were given', async () => {
  const app = await start();
  const user = await app.as(app.admin, 'POST', '/auth/users', {
    body: { username: 'eve', email: 'e@x', password: 'planted-secret' },
  });
  const key = await app.as(app.admin, 'POST', '/auth/api-keys', {
    body: { name: 'k', permissions: ['admin'] },
  });
  const { entries } = await app.page();
  assert.equal(
    entries.map(({ subject }) => subject),
    [`/auth/api-keys/${key.body.id}`, `/auth/users/${user.body.id}`],
  );
  assert.not.match(JSON.stringify(entries), new RegExp(`planted-secret|${String(key.body.key).slice(-43)}`));
  await app.close();
});

test('comes in pages', async () => {
  const app = await start();
  for (let number = 0; number < 5; number += 1) {
    await app.as(app.admin, 'DELETE', `/servers/number-${number}`);
  }
  const seen: string[] = [];
  let cursor: string | null = '';
  for (let pages = 0; cursor !== null && pages < 9; pages += 1) {
    const page = await app.page(`?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
    assert.ok(page.entries.length <= 2);
    seen.push(...page.entries.map(({ subject }) => subject.slice(-1)));
    cursor = page.next_cursor;
  }
  assert.equal(seen, ['4', '3', '2', '1', '0']);
  assert.equal((await app.page('?limit=5')).next_cursor, null);
  await app.close();
});

for (const [query, loc, type] of [
  ['?limit=0', 'limit', 'greater_than_equal'],
  ['?limit=1001', 'limit', 'less_than_equal'],
  ['?limit=x', 'limit', 'int_parsing'],
  ['?cursor=', 'cursor', 'string_pattern_mismatch'],
  ["?cursor=';drop", 'cursor', 'string_pattern_mismatch'],
] as const) {
  test(`refuses ${query}`, async () => {
    const app = await start();
    const { status, body } = await app.as(app.admin, 'GET', `/gateway/audit${query}`);
    const [first] = Array.isArray(body.detail) ? body.detail : [];
    assert.equal([status, first.loc, first.type], [422, ['query', loc], type]);
    await app.close();
  });
}

test('refuses a field of the query that it does not know', async () => {
  const app = await start();
  const { status, body } = await app.as(app.admin, 'GET', '/gateway/audit?limt=2');
  assert.equal(
    [status, body.detail],
    [422, [{ loc: ['query', 'limt'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' }]],
  );
  await app.close();
});

test.run();
