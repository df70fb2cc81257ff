// A gateway with its own authorization server: from its URL to calls with an access token, until the grant ends.

import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/config/config.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { serving } from '../helpers/backends/function-backend.ts';
import { folderOfAll } from '../helpers/folder.ts';
import { PASSWORD } from '../helpers/http/accounts.ts';
import { send } from '../helpers/http/app.ts';
import { register, tokensOf } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a gateway where clients sign in');
const folder = folderOfAll(test);

async function start(cwd: string, flags: Record<string, string> = {}): Promise<RunningServer> {
  const env = { GATEWAY_ADMIN_PASSWORD: PASSWORD, GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' };
  const config = loadConfig({ cwd, env, flags: { port: '0', host: '127.0.0.1', ...flags } });
  return startServer(config, { log: pino({ level: 'silent' }) });
}

const initialize = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'spec', version: '1' } },
};

test('accepts the token that it issued where its resource says, and not once its grant has ended', async () => {
  const cwd = folder();
  const server = await start(cwd);
  const [url = ''] = server.urls;
  await server.gateway.register('files', { id: 'one', handler: serving({}) }, { waitMs: 5_000 });
  const client = await register(url);
  const user = { username: 'admin' };
  const tokens = await tokensOf(url, client, { resource: `${url}/mcp/files`, ...user });
  const headers = {
    authorization: `Bearer ${tokens.access_token}`,
    accept: 'application/json, text/event-stream',
  };
  const ask = async (path: string) =>
    (await send('POST', `${url}${path}`, { body: initialize, headers })).status;
  assert.equal([await ask('/mcp/files'), await ask('/mcp'), await ask('/mcp/other')], [200, 401, 401]);
  const [view] = (await server.auth.grants?.list()) ?? [];
  assert.equal([view?.username, view?.grant.clientName], ['admin', 'Probe']);
  assert.equal(view?.grant.scopes.toSorted(), ['gateway:read', 'tools:call']);
  await server.auth.grants?.revoke(view?.grant.id ?? '');
  assert.is(await ask('/mcp/files'), 401);
  await tokensOf(url, client, { resource: url, ...user });
  await server.close();

  const moved = await start(cwd, { 'public-url': 'https://gateway.example' });
  const line = `the address of the gateway is https://gateway.example: 1 of 1 grants of MCP clients end, which were made at ${url}; their users have to sign in again, or set public_url: ${url}`;
  assert.ok(moved.warnings.includes(line), moved.warnings.join('\n'));
  await moved.close();
});

test.run();
