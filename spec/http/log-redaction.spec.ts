// No secret is in the log at any level: neither credentials of callers nor arguments of tools.
// The output of a whole program and its children: spec/system/journeys/secrets.spec.ts.

import * as assert from 'uvu/assert';
import { logEvents } from '../../src/cli/foreground/event-log.ts';
import { modern, openSession, rpc, toolCall } from '../helpers/clients/mcp-messages.ts';
import { PASSWORD, startWithAccounts } from '../helpers/http/accounts.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the log');

// Every other level writes a part of these lines.
test('has no token, key, password or argument at the level trace', async () => {
  const app = await startWithAccounts();
  await app.as(app.admin, 'PATCH', '/gateway/log-level', { body: { level: 'trace' } });
  const written: unknown[] = [];
  const write = (fields: object, message: string) => written.push({ fields, message });
  const log = { isLevelEnabled: () => true, debug: write, info: write, warn: write };
  const events = logEvents(app.gateway.events$, log);
  await app.serve('demo', 'one');
  const key = await app.key(['tools:call']);
  const planted = { text: 'planted-argument', ms: 'planted-argument' };

  await app.ask('POST', '/auth/login', { body: { username: 'ada', password: 'planted-password' } });
  await app.ask('GET', '/servers?token=planted-query', { headers: { 'x-api-key': 'sd_planted-key' } });
  const endpoint = 'http://127.0.0.1:1/mcp?key=planted-endpoint';
  const far = { template_name: 'demo', id: 'far', endpoint, headers: { 'x-key': 'planted-header' } };
  await app.as(app.admin, 'POST', '/gateway/register', { body: far });
  for (const name of ['echo', 'sleep', 'none']) {
    await app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name, arguments: planted } });
    const body = { server_id: 'one', tool_name: name, arguments: planted };
    await app.as(key, 'POST', '/tools/call', { body });
    const { body: message, headers } = modern('tools/call', { name, arguments: planted });
    await app.as({ ...key, ...headers }, 'POST', '/mcp/demo', { body: message });
  }
  const inSession = await openSession(app, '/mcp/demo', { credentials: key });
  const session = String(inSession['mcp-session-id']);
  await app.as(inSession, 'POST', '/mcp/demo', { body: toolCall('echo', planted) });
  const reading = rpc('resources/read', { uri: 'planted://argument' });
  await app.as(inSession, 'POST', '/mcp/demo', { body: reading });
  const login = { body: { username: 'ada', password: PASSWORD }, headers: { 'x-stagedoor-console': '1' } };
  const { body: issued, headers: set } = await app.ask('POST', '/auth/login', login);
  const cookie = String(set.get('set-cookie')).split(';')[0] ?? '';
  for (const request of ['GET /auth/me', 'GET /nowhere', 'POST /auth/logout', 'GET /auth/me']) {
    const [method = '', path = ''] = request.split(' ');
    await app.ask(method, path, { headers: { cookie, 'x-stagedoor-console': '1' } });
  }
  const { text: audit } = await app.as(app.admin, 'GET', '/gateway/audit');
  assert.match(audit, 'POST /auth/logout');

  const lines = [...app.log, ...written, audit].map((line) => JSON.stringify(line));
  assert.ok(
    app.log.some(({ tool }) => tool === 'echo'),
    'calls were logged',
  );
  const [token, secret] = [app.user.authorization, key['x-api-key']].map((each) => String(each).slice(-40));
  const ofCookie = String(issued.access_token).slice(-40);
  for (const each of ['planted', session.slice(0, 12), token, secret, 'stagedoor_session', ofCookie])
    assert.equal(
      lines.filter((line) => line.includes(String(each))),
      [],
    );
  events.unsubscribe();
  await app.close();
});

test('and the audit log have no key and no token that a caller wrote into a path or as a name', async () => {
  const app = await startWithAccounts({
    logLevel: 'trace',
    auditSettings: { recordsCalls: true, callArguments: 'none', keptCalls: 100, keptDays: 0 },
  });
  const key = String((await app.key(['tools:call']))['x-api-key']);
  const token = String(app.admin.authorization).slice('Bearer '.length);
  const events: unknown[] = [];
  app.gateway.events$.subscribe((event) => events.push(event));
  await app.serve('demo', 'one');
  for (const written of [
    key,
    key.slice(0, -9),
    token,
    token.slice(0, -20),
    `Bearer%20${token}`,
    `x=${key}`,
  ]) {
    const paths = [`/${written}`, `/mcp/${written}`, `/mcp/demo/${written}`, `/auth/api-keys/${written}`];
    paths.push(`/gateway/instances/${written}/${written}/drain`, `/mcp/${written}/tools/call?key=${written}`);
    const body = { name: written, tool_name: written, server_id: written, arguments: {} };
    for (const path of [...paths, '/tools/call', '/mcp/demo/tools/call'])
      for (const method of ['GET', 'POST', 'DELETE'])
        await app.as(app.admin, method, path, method === 'GET' ? {} : { body });
    await app.ask('POST', '/auth/login', { body: { username: written, password: 'wrong' } });
    await app.gateway.call('demo', written).catch(() => undefined);
  }
  const { text: audit } = await app.as(app.admin, 'GET', '/gateway/audit?limit=1000');
  const lines = [...[...app.log, ...events].map((line) => JSON.stringify(line)), audit];
  for (const secret of [key.slice(25, 50), token.slice(token.indexOf('.') + 1).slice(0, 30)])
    assert.equal(
      lines.filter((line) => line.includes(secret)),
      [],
    );
  const keyId = key.split('_')[1];
  assert.match(audit, `/auth/api-keys/sd_${keyId}_...`);
  assert.ok(lines.some((line) => line.includes('call.started') && line.includes(`"tool":"sd_${keyId}_..."`)));
  const masked = app.log.filter(({ template }) => template === `sd_${keyId}_...`);
  assert.equal(new Set(masked.map(({ path }) => path)).has(`/mcp/sd_${keyId}_.../tools/call`), true);
  await app.close();
});

test('and the audit log take a few ms for long names that look like beginnings of tokens', async () => {
  const app = await startWithAccounts({
    auditSettings: { recordsCalls: true, callArguments: 'none', keptCalls: 100, keptDays: 0 },
  });
  await app.serve('demo', 'one');
  const key = await app.key(['tools:call']);
  const name = 'eyJ'.repeat(40_000);
  const startMs = performance.now();
  await app.as(key, 'POST', '/mcp/demo/tools/call', { body: { name, arguments: {} } });
  const { text } = await app.as(app.admin, 'GET', '/gateway/audit?limit=10');
  assert.ok(performance.now() - startMs < 1_000, 'it took more than a second');
  assert.match(text, `"tool":"${name.slice(0, 500)}`);
  await app.close();
});

test.run();
