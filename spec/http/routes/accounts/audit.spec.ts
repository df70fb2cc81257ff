// The audit log over HTTP: changes and logins, and tool calls over REST, over the MCP endpoint in both eras, and at /mcp.

import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../../src/domain/limits.ts';
import type { Json } from '../../../fixtures/wire.ts';
import { modern, openSession, toolCall } from '../../../helpers/clients/mcp-messages.ts';
import { until } from '../../../helpers/eventually.ts';
import { PASSWORD, startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor } from '../../../helpers/http/app.ts';
import { endOf } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the audit log over HTTP');

/** An entry, with its call. */
type Line = Json & { readonly call: Json | null };

const auditSettings = { recordsCalls: true, callArguments: 'digest' as const, keptCalls: 1_000, keptDays: 0 };
const app = appFor(test, () => startWithAccounts({ auditSettings }), 'each');
test.before.each(() => app.serve('demo', 'one'));

const page = async (query = ''): Promise<{ entries: Line[]; next_cursor: string | null }> =>
  JSON.parse((await app.as(app.admin, 'GET', `/gateway/audit${query}`)).text);
const entriesOf = async (query = '') => (await page(query)).entries;

test('lists changes, logins and refusals with their actor, newest first, without secrets', async () => {
  const body = { template_name: 'demo', id: 'far', endpoint: 'http://127.0.0.1:1/mcp?key=planted-secret' };
  await app.as(app.admin, 'POST', '/gateway/register', { body, headers: { 'x-request-id': 'r1' } });
  await app.as(app.user, 'DELETE', '/servers/far');
  await app.ask('DELETE', '/servers/far?why=planted-secret');
  await app.ask('POST', '/auth/login', { body: { username: 'ada', password: 'planted-secret' } });
  await app.ask('POST', '/auth/login', { body: { username: 'ada', password: PASSWORD } });
  await app.as(app.admin, 'GET', '/servers');
  await app.as(app.user, 'GET', '/mcp/demo/tools/list');
  await app.as(app.admin, 'DELETE', '/servers/far');
  const eve = { username: 'eve', email: 'e@x', password: 'planted-secret' };
  const user = await app.as(app.admin, 'POST', '/auth/users', { body: eve });
  const ci = { name: 'k', permissions: ['admin'] };
  const key = await app.as(app.admin, 'POST', '/auth/api-keys', { body: ci });
  const { entries, next_cursor } = await page();
  const admin = String((await app.as(app.admin, 'GET', '/auth/me')).body.id);
  const ada = String((await app.as(app.user, 'GET', '/auth/me')).body.id);
  assert.equal(
    entries.map((one) => [one.actor, one.actor_name, one.action, one.subject, one.status]),
    [
      [admin, 'admin', 'POST /auth/api-keys', `/auth/api-keys/${key.body.id}`, 201],
      [admin, 'admin', 'POST /auth/users', `/auth/users/${user.body.id}`, 201],
      [admin, 'admin', 'DELETE /servers/:server_id', '/servers/far', 204],
      [ada, 'ada', 'POST /auth/login', '/auth/login', 200],
      ['unknown', 'unknown', 'POST /auth/login', '/auth/login', 401],
      ['unknown', 'unknown', 'DELETE /servers/:server_id', '/servers/far', 401],
      [ada, 'ada', 'DELETE /servers/:server_id', '/servers/far', 403],
      [admin, 'admin', 'POST /gateway/register', '/servers/far', 201],
    ],
  );
  assert.is(next_cursor, null);
  assert.is(entries.at(-1)?.request_id, 'r1');
  assert.match(String(entries.at(-1)?.address), /127\.0\.0\.1$/);
  assert.not.match(JSON.stringify(entries), new RegExp(`planted-secret|${String(key.body.key).slice(-43)}`));
});

test('wrong logins beyond the recorded ones are counted in the next entry of a login', async () => {
  const login = (username: string, password: string) =>
    app.ask('POST', '/auth/login', { body: { username, password } });
  for (let count = 0; count < LIMITS.recordedRefusalsPerMinute + 7; count += 1) await login('eve', 'wrong');
  await login('ada', PASSWORD);
  await login('ada', PASSWORD);
  const entries = await entriesOf();
  assert.equal(
    entries.slice(0, 3).map((one) => [one.actor_name, one.suppressed]),
    [
      ['ada', undefined],
      ['ada', 7],
      ['unknown', undefined],
    ],
  );
  assert.is(entries.length, LIMITS.recordedRefusalsPerMinute + 2);
});

test('answers with pages of entries, each once', async () => {
  for (let number = 0; number < 5; number += 1) {
    await app.as(app.admin, 'DELETE', `/servers/number-${number}`);
  }
  const seen: string[] = [];
  let cursor: string | null = '';
  for (let pages = 0; cursor !== null && pages < 9; pages += 1) {
    const found = await page(`?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
    assert.ok(found.entries.length <= 2);
    seen.push(...found.entries.map(({ subject }) => String(subject).slice(-1)));
    cursor = found.next_cursor;
  }
  assert.equal(seen, ['4', '3', '2', '1', '0']);
  assert.equal((await page('?limit=5')).next_cursor, null);
});

// --- calls ----------------------------------------------------------------------------------------------------------

test('has the calls of every kind of client, with a digest of their arguments', async () => {
  const args = { text: 'planted' };
  await app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name: 'echo', arguments: args } });
  const ofServer = { server_id: 'one', tool_name: 'fail', arguments: args };
  await app.as(app.user, 'POST', '/tools/call', { body: ofServer });
  const session = await openSession(app, '/mcp/demo', { credentials: app.user, version: '2025-03-26' });
  await app.as(session, 'POST', '/mcp/demo', { body: toolCall('echo', args) });
  await app.as(session, 'POST', '/mcp/demo', {
    body: [toolCall('error', args, 2), toolCall('echo', args, 3)],
  });
  await app.as(app.user, 'POST', '/mcp/demo', modern('tools/call', { name: 'echo', arguments: args }));
  const together = await openSession(app, '/mcp', { credentials: app.user });
  await app.as(together, 'POST', '/mcp', { body: toolCall('demo__echo', args) });
  await app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name: 'none' } });
  await app.as(app.user, 'POST', '/mcp/demo/resources/read', { body: { uri: 'x://planted' } });

  const found = (await entriesOf()).toReversed();
  const digest = createHash('sha256').update(JSON.stringify(args)).digest('hex');
  assert.equal(
    found.map(({ action, actor_name, subject, status, call }) => {
      const { duration_ms, ...rest } = call ?? {};
      assert.type(duration_ms, 'number');
      return [action, actor_name, subject, status, Object.values(rest)];
    }),
    [
      ['/mcp/demo/tools/call', 200, 'echo', 'one', 'result'],
      ['/tools/call', 200, 'fail', 'one', 'tool_error'],
      ['/mcp/demo', 200, 'echo', 'one', 'result'],
      ['/mcp/demo', 500, 'error', 'one', 'error'],
      ['/mcp/demo', 200, 'echo', 'one', 'result'],
      ['/mcp/demo', 200, 'echo', 'one', 'result'],
      ['/mcp', 200, 'echo', 'one', 'result'],
      ['/mcp/demo/tools/call', 404, 'none', null, 'failed'],
    ].map(([subject, status, tool, instance, outcome]) => [
      ...['tools/call', 'ada', subject, status],
      [
        'demo',
        tool,
        null,
        instance,
        outcome,
        instance === null ? 0 : 1,
        instance === null ? null : digest,
        null,
      ],
    ]),
  );
  assert.match(String(found[0]?.address), /127\.0\.0\.1$/);
  assert.not.match(JSON.stringify(found), 'planted');
});

test('filters entries by action, tool, template, outcome, actor, status and time, also page by page', async () => {
  const call = (name: string) => app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name } });
  await call('name');
  await call('fail');
  const [latest] = await entriesOf();
  await until(() => new Date().toISOString() > String(latest?.at));
  const from = new Date().toISOString();
  await app.as(app.admin, 'PATCH', '/gateway/log-level', { body: { level: 'silent' } });
  await call('none');
  const names = async (query: string) =>
    (await entriesOf(query)).map(({ action, call: of }) => of?.tool ?? action);
  const change = 'PATCH /gateway/log-level';
  assert.equal(await names(''), ['none', change, 'fail', 'name']);
  assert.equal(await names('?action=tools/call'), ['none', 'fail', 'name']);
  assert.equal(await names(`?action=${encodeURIComponent(change)}`), [change]);
  assert.equal(await names('?tool=fail'), ['fail']);
  assert.equal(await names('?template=demo&outcome=failed'), ['none']);
  assert.equal(await names('?template=other'), []);
  assert.equal(await names('?actor=ada&status=200'), ['fail', 'name']);
  assert.equal(await names('?actor=admin'), [change]);
  assert.equal(await names(`?from=${from}`), ['none', change]);
  assert.equal(await names(`?to=${from}`), ['fail', 'name']);
  const page = await app.as(app.admin, 'GET', '/gateway/audit?limit=2&action=tools/call');
  const next = await names(`?limit=2&action=tools/call&cursor=${page.body.next_cursor}`);
  assert.equal(next, ['name']);
  const oldest = `&cursor=${page.body.next_cursor}`;
  for (const [to, found] of [
    [from, ['name']],
    ['2000-01-01T00:00:00Z', []],
  ] as const)
    assert.equal(await names(`?to=${to}${oldest}`), found);
  for (const bad of ['from=yesterday', 'to=2026-02-30T00:00:00Z', 'status=9999', 'outcome=fine', 'tool='])
    assert.is((await app.as(app.admin, 'GET', `/gateway/audit?${bad}`)).status, 422, bad);
});

test('records a call whose client disconnects as cancelled, with status 499', async () => {
  const abort = new AbortController();
  const ask = { body: { name: 'sleep', arguments: { ms: 10_000 } }, signal: abort.signal };
  const left = endOf(app.as(app.user, 'POST', '/mcp/demo/tools/call', ask));
  await until(() => app.gateway.stats().activeConnections !== 0);
  abort.abort();
  await left;
  await until(() => app.gateway.stats().activeConnections === 0);
  const [entry] = await entriesOf();
  assert.equal([entry?.status, entry?.call?.outcome, entry?.call?.instance_id], [499, 'cancelled', 'one']);
});

test.run();
