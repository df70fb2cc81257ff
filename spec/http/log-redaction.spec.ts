// Nothing secret is in the log at any level: neither what callers prove themselves with, nor what they ask of tools.
// What a whole program writes, its children included: spec/system/journeys/secrets.spec.ts.

import * as assert from 'uvu/assert';
import { logEvents } from '../../src/cli/event-log.ts';
import { startWithAccounts } from '../helpers/http-accounts.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the log');

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'a', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const HELLO = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'a', version: '1' },
};
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });

for (const level of ['trace', 'debug', 'info', 'warn']) {
  test(`has no token, key, password or argument at the level ${level}`, async () => {
    const app = await startWithAccounts();
    await app.as(app.admin, 'PATCH', '/gateway/log-level', { body: { level } });
    const events = logEvents(app.gateway.events$, {
      isLevelEnabled: () => true,
      debug: (fields, message) => written.push({ fields, message }),
      info: (fields, message) => written.push({ fields, message }),
      warn: (fields, message) => written.push({ fields, message }),
    });
    const written: unknown[] = [];
    await app.serve('demo', 'one');
    const key = await app.key(['tools:call']);
    const planted = { text: 'planted-argument', ms: 'planted-argument' };
    const accept = 'application/json, text/event-stream';

    await app.ask('POST', '/auth/login', { body: { username: 'ada', password: 'planted-password' } });
    await app.ask('GET', '/servers?token=planted-query', { headers: { 'x-api-key': 'sd_planted-key' } });
    await app.as(app.admin, 'POST', '/gateway/register', {
      body: {
        template_name: 'demo',
        id: 'far',
        endpoint: 'http://127.0.0.1:1/mcp?key=planted-endpoint',
        headers: { 'x-key': 'planted-header' },
      },
    });
    for (const name of ['echo', 'sleep', 'none']) {
      await app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name, arguments: planted } });
      const body = { server_id: 'one', tool_name: name, arguments: planted };
      await app.as(key, 'POST', '/tools/call', { body });
      const modern = {
        accept,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': name,
      };
      const params = { name, arguments: planted, _meta: META };
      await app.as({ ...key, ...modern }, 'POST', '/mcp/demo', { body: rpc('tools/call', params) });
    }
    const opened = await app.as({ ...key, accept }, 'POST', '/mcp/demo', { body: rpc('initialize', HELLO) });
    const session = String(opened.headers.get('mcp-session-id'));
    const inSession = { ...key, accept, 'mcp-session-id': session };
    const call = rpc('tools/call', { name: 'echo', arguments: planted });
    await app.as(inSession, 'POST', '/mcp/demo', { body: call });
    await app.as(inSession, 'POST', '/mcp/demo', {
      body: rpc('resources/read', { uri: 'planted://argument' }),
    });

    const lines = [
      ...app.log.map((line) => JSON.stringify(line)),
      ...written.map((line) => JSON.stringify(line)),
    ];
    assert.ok(level === 'warn' || app.log.some(({ tool }) => tool === 'echo'), 'calls were logged');
    const [token, secret] = [app.user.authorization, key['x-api-key']].map((each) => String(each).slice(-40));
    for (const each of ['planted', session.slice(0, 12), token, secret])
      assert.equal(
        lines.filter((line) => line.includes(String(each))),
        [],
      );
    events.unsubscribe();
    await app.close();
  });
}

test.run();
