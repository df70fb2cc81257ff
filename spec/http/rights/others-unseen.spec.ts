// Callers without the scope `admin` see nothing of the calls and sessions of others on any route. A caller leaves traces of
// every kind, and the specs search every readable route for them. Source: ADR 55; events and statistics are for operators,
// but a call belongs to its caller.

import * as assert from 'uvu/assert';
import type { Scope } from '../../../src/domain/accounts/account.ts';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import { Wire } from '../../helpers/clients/mcp-wire.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the calls and sessions of others');
const app = appFor(test, () =>
  startWithAccounts({
    auditSettings: { recordsCalls: true, callArguments: 'full', keptCalls: 1_000, keptDays: 1 },
    consoleFolder: new URL('none/', import.meta.url),
  }),
);
const ARGUMENTS = '{ "text":"argument-of-hers" }';
let wire: Wire;
/** Texts that must not be seen, by their kind. */
let traces: Readonly<Record<string, string>>;
test.before(async () => {
  wire = new Wire(app.url);
  await app.serve('demo', 'one');
  const { id } = await app.createUser('wilhelmina');
  const wilhelmina = await app.login('wilhelmina');
  const { sessionId } = await LegacyClient.open(wire, '/mcp/demo', { headers: wilhelmina });
  const own = { ...wilhelmina, 'x-request-id': 'request-of-hers' };
  const call = (name: string) =>
    app.as(own, 'POST', '/mcp/demo/tools/call', { body: `{"name":"${name}","arguments":${ARGUMENTS}}` });
  await call('echo');
  await call('tool-of-hers');
  traces = {
    'her id': id,
    'her name': 'wilhelmina',
    'her session': sessionId,
    'its fingerprint': sessionFingerprint(sessionId),
    'her request': 'request-of-hers',
    'her tool': 'tool-of-hers',
    'her argument': 'argument-of-hers',
  };
});
test.after(async () => {
  wire.close();
});

/** The readable routes, without MCP streams: these belong to the session that opens them, and do not end. */
const READ = ROUTES.filter(({ method, path, speaks, answers, scope }) => {
  const isStream = path !== '/events' && answers[200]?.types?.includes('text/event-stream') === true;
  return method === 'GET' && speaks === undefined && !isStream && scope !== 'admin';
});
const PARAMS = { template: 'demo', instance_id: 'one', server_id: 'one', file: 'none', path: 'none' };

async function seenBy(who: Credentials): Promise<ReadonlyMap<string, string>> {
  const seen = new Map<string, string>();
  for (const { path } of READ) {
    const filled = path.replaceAll(/[:*](\w+)/g, (_name, field) => String(Reflect.get(PARAMS, field)));
    const { status, text } = await app.as(who, 'GET', path === '/events' ? '/events?follow=false' : filled);
    assert.ok(status < 500, `${path}: ${status}`);
    seen.set(path, text);
  }
  return seen;
}

function tracesIn(text: string): readonly string[] {
  return Object.keys(traces).filter((what) => text.includes(traces[what] ?? ''));
}

test('are visible to an admin, except session ids', async () => {
  const seen = await seenBy(app.admin);
  const { text: audit } = await app.as(app.admin, 'GET', '/gateway/audit');
  assert.equal(tracesIn(seen.get('/events') ?? ''), ['her id', 'its fingerprint', 'her request', 'her tool']);
  assert.equal(tracesIn(seen.get('/gateway/sessions') ?? ''), ['her id', 'her name', 'its fingerprint']);
  assert.match(audit, `"arguments":${JSON.stringify(ARGUMENTS)}`);
  assert.not.ok([...seen.values(), audit].some((text) => tracesIn(text).includes('her session')));
});

test('are searched for on all of the more than 20 readable routes', () => {
  const paths = READ.map(({ path }) => path);
  const some = ['/metrics', '/gateway/stats', '/stats', '/events', '/gateway/sessions', '/gateway/registry'];
  for (const path of some) assert.ok(paths.includes(path), path);
  assert.ok(paths.length > 20);
});

const OTHERS: Readonly<Record<string, readonly Scope[] | undefined>> = {
  'a user': undefined,
  'a key that reads': ['gateway:read', 'tools:call'],
  'a key that changes instances': ['gateway:read', 'gateway:write', 'tools:call'],
};

for (const [who, scopes] of Object.entries(OTHERS)) {
  test(`are not seen by ${who}`, async () => {
    const seen = await seenBy(scopes === undefined ? app.user : await app.key(scopes));
    const found = [...seen].map(([path, text]) => [path, tracesIn(text)] as const);
    assert.equal(
      found.filter(([, traces]) => traces.length > 0),
      [],
    );
    // It still reads the statistics of the template.
    assert.match(seen.get('/gateway/stats') ?? '', '"demo"');
    assert.match(seen.get('/metrics') ?? '', 'template="demo"');
  });
}

test('cannot be filtered for, ended, or read from the audit log, the settings and the accounts', async () => {
  for (const query of ['?principal=wilhelmina', `?principal=user:${traces['her id']}`]) {
    const { body } = await app.as(app.user, 'GET', `/gateway/sessions${query}`);
    assert.equal(body.sessions, []);
  }
  for (const path of ['/gateway/audit', '/gateway/settings', '/auth/users', '/auth/api-keys'])
    assert.is((await app.as(app.user, 'GET', path)).status, 403, path);
  const { status } = await app.as(app.user, 'DELETE', `/gateway/sessions/${traces['its fingerprint']}`);
  assert.is(status, 404);
});

test.run();
