// GET /gateway/sessions and DELETE /gateway/sessions/{id}, with real sessions of MCP clients.

import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import { Wire } from '../../helpers/clients/mcp-wire.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the session routes');
const app = appFor(test, () => startWithAccounts(), 'each');
let wire: Wire;
test.before.each(async () => {
  await app.serve('demo', 'one');
  await app.serve('other', 'two');
  wire = new Wire(app.url);
});
test.after.each(() => wire.close());

const open = (path: string, headers: Credentials, capabilities: Json = {}) =>
  LegacyClient.open(wire, path, { headers, capabilities });
/** Opens a session; returns its id in these routes. */
const opened = async (path: string, who: Credentials) =>
  sessionFingerprint((await open(path, who)).sessionId);
async function listFor(viewer: Credentials, query = ''): Promise<Json[]> {
  const { status, body } = await app.as(viewer, 'GET', `/gateway/sessions${query}`);
  assert.is(status, 200);
  return (body.sessions as unknown[]).map(objectOr);
}
const idsFor = async (viewer: Credentials) => (await listFor(viewer)).map(({ id }) => id);
const end = (viewer: Credentials, id: unknown) => app.as(viewer, 'DELETE', `/gateway/sessions/${id}`);

test('show the owner, client, bindings and times of a session', async () => {
  assert.equal(await listFor(app.admin), []);
  const startMs = Date.now();
  const { sessionId } = await open('/mcp/demo', app.user);
  const [session] = await listFor(app.admin);
  const { created_at, last_used_at, principal, ...rest } = session ?? {};
  assert.match(String(principal), /^user:/);
  assert.equal(rest, {
    id: sessionFingerprint(sessionId),
    principal_name: 'ada',
    client: { name: 'raw', version: '1' },
    bindings: [{ template: 'demo', instance_id: 'one', server_id: 'one' }],
    is_streaming: false,
  });
  for (const at of [created_at, last_used_at]) {
    const ms = Date.parse(String(at));
    assert.ok(ms >= startMs - 50 && ms <= Date.now() + 50, String(at));
  }
});

test('show a session at /mcp once, with the templates that it uses', async () => {
  const client = await open('/mcp', app.user);
  assert.equal(
    (await listFor(app.user)).map(({ bindings }) => bindings),
    [[]],
  );
  await client.call('demo__echo', { message: 'hi' });
  const sessions = await listFor(app.user);
  const place = { template: 'demo', instance_id: 'one', server_id: 'one' };
  const found = sessions.map(({ id, bindings }) => [id, bindings]);
  assert.equal(found, [[sessionFingerprint(client.sessionId), [place]]]);
});

test('show whether a client has its stream open', async () => {
  for (const path of ['/mcp/demo', '/mcp']) {
    const client = await open(path, app.user, { roots: {} });
    const id = sessionFingerprint(client.sessionId);
    const isStreaming = async () => (await listFor(app.user)).find((one) => one.id === id)?.is_streaming;
    await client.call(path === '/mcp' ? 'demo__echo' : 'echo');
    assert.is(await isStreaming(), false, path);
    const stream = await client.listen();
    assert.is(await isStreaming(), true, path);
    stream.close();
    await becomes(isStreaming, false, 5_000);
  }
});

test('show a caller its own sessions, and an admin all', async () => {
  const eve = await app.createUser('eve').then(() => app.login('eve'));
  const key = await app.key(['gateway:read', 'tools:call']);
  const ids = new Map<string, string>();
  for (const [name, who] of Object.entries({ ada: app.user, eve, key }))
    ids.set(name, await opened('/mcp/demo', who));
  assert.equal(await idsFor(app.user), [ids.get('ada')]);
  assert.equal(await idsFor(eve), [ids.get('eve')]);
  assert.equal(await idsFor(key), [ids.get('key')]);
  assert.equal(await idsFor(app.admin), [...ids.values()].sort());
  assert.equal((await listFor(app.admin)).map(({ principal_name }) => principal_name).sort(), [
    'ada',
    'eve',
    'gateway:read tools:call',
  ]);
});

test('show an admin key for some templates no session that uses others', async () => {
  const demoOnly = await app.key(['admin'], ['demo']);
  const inDemo = await opened('/mcp/demo', app.user);
  await open('/mcp/other', app.user);
  await open('/mcp', app.user);
  assert.equal(await idsFor(demoOnly), [inDemo]);
});

test('list sessions in pages', async () => {
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) ids.push(await opened('/mcp/demo', app.user));
  const seen: unknown[] = [];
  let cursor: unknown = null;
  do {
    const query = cursor === null ? '?limit=2' : `?limit=2&cursor=${cursor}`;
    const { body } = await app.as(app.admin, 'GET', `/gateway/sessions${query}`);
    seen.push(...(body.sessions as unknown[]).map((one) => objectOr(one).id));
    cursor = body.next_cursor;
  } while (cursor !== null);
  assert.equal(seen, ids.sort());
  for (const query of ['limit=0', 'limit=1001', 'cursor=', 'page=1'])
    assert.is((await app.as(app.admin, 'GET', `/gateway/sessions?${query}`)).status, 422, query);
});

test('filter sessions by template, and by the id or name of the caller', async () => {
  const key = await app.key(['gateway:read', 'tools:call']);
  const demo = await opened('/mcp/demo', app.user);
  const other = await opened('/mcp/other', app.user);
  const ofKey = await opened('/mcp/demo', key);
  await open('/mcp', app.admin);
  const ids = async (query: string) => (await listFor(app.admin, query)).map(({ id }) => id);
  assert.equal(await ids('?template=demo'), [demo, ofKey].sort());
  assert.equal(await ids('?principal=ada'), [demo, other].sort());
  assert.equal(await ids('?principal=ada&template=other'), [other]);
  const [{ principal } = {}] = await listFor(key);
  assert.equal(await ids(`?principal=${principal}`), [ofKey]);
  assert.equal(await ids('?principal=somebody'), []);
  assert.equal(await listFor(app.user, '?principal=admin'), [], 'a filter shows nothing more');
  const [first, second] = [demo, other].sort();
  const page = await app.as(app.admin, 'GET', '/gateway/sessions?principal=ada&limit=1');
  assert.is(objectOr(Object(page.body.sessions)[0]).id, first);
  assert.equal(await ids(`?principal=ada&cursor=${page.body.next_cursor}`), [second]);
  app.store.accounts.findUsers = () => Promise.reject(databaseUnavailable(undefined));
  assert.equal(await ids(`?principal=${principal}`), [ofKey], 'an id needs no accounts');
  const named = await app.as(app.admin, 'GET', '/gateway/sessions?principal=ada');
  assert.is(named.body.error_code, 'DATABASE_UNAVAILABLE');
  for (const query of ['template=A', 'principal=', `principal=${'x'.repeat(257)}`])
    assert.is((await app.as(app.admin, 'GET', `/gateway/sessions?${query}`)).status, 422, query);
});

test('end a session, also at /mcp, whose client gets 404 from then on', async () => {
  const other = await open('/mcp/demo', app.user);
  for (const [path, tool] of [
    ['/mcp/demo', 'echo'],
    ['/mcp', 'demo__echo'],
  ] as const) {
    const client = await open(path, app.user);
    const id = sessionFingerprint(client.sessionId);
    assert.is((await client.call(tool, { message: 'hi' })).status, 200);
    assert.is((await end(app.admin, client.sessionId)).outcome, '404 SESSION_NOT_FOUND', 'not by its own id');
    assert.is((await end(app.user, id)).status, 204);
    assert.is((await client.call(tool, { message: 'hi' })).status, 404);
    assert.is((await other.call('echo', { message: 'hi' })).status, 200);
    assert.is((await end(app.user, id)).outcome, '404 SESSION_NOT_FOUND');
    assert.equal(await idsFor(app.admin), [sessionFingerprint(other.sessionId)]);
  }
});

test('end the session of another caller for an admin only, and record it', async () => {
  const eve = await app.createUser('eve').then(() => app.login('eve'));
  const client = await open('/mcp/demo', app.user);
  const id = sessionFingerprint(client.sessionId);
  const refused = await end(eve, id);
  assert.equal([refused.status, refused.body.error_code], [404, 'SESSION_NOT_FOUND']);
  const found = refused.body.detail;
  assert.equal(found, String((await end(eve, '000000000000')).body.detail).replace('000000000000', id));
  assert.is((await client.call('echo', { message: 'hi' })).status, 200);
  assert.is((await end(app.admin, id)).status, 204);
  const { text } = await app.as(app.admin, 'GET', '/gateway/audit');
  assert.match(text, `/gateway/sessions/${id}`);
});

test.run();
