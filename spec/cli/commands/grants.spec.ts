// Listing and ending the grants of MCP clients.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, serverFor } from './against-gateway.ts';

const test = suite('grant list and revoke');
const gateway = gatewayFor(test, { withAccounts: true });
const serve = serverFor(test);

const grant = {
  ...{ id: 'grant-1', client_id: 'client-1', client_name: 'Claude Code', user_id: 'user-1', username: 'ada' },
  ...{ scopes: ['tools:call', 'gateway:read'], resource: 'https://gateway.example/mcp/files' },
  ...{ created_at: '2026-01-01T00:00:00.000Z', last_used_at: null, expires_at: '2026-07-01T00:00:00.000Z' },
};
const env = { STAGEDOOR_API_KEY: '' }; // no gateway that could prove anything

test('list client, user, scopes, resource and last use', async () => {
  const url = await serve((_, response) => void response.end(JSON.stringify([grant])));
  const { out } = await gateway.runAt({ env }, 'grant list --url', url);
  const rows = out.split('\n').map((line) => line.trim().replace(/ {2,}/g, '|'));
  assert.equal(rows, [
    'ID|CLIENT|USER|SCOPES|RESOURCE|LAST USED|EXPIRES',
    'grant-1|Claude Code|ada|tools:call, gateway:read|https://gateway.example/mcp/files|never|2026-07-01 00:00Z',
  ]);
  const json = await gateway.runAt({ env }, 'grant list --json --url', url);
  assert.equal(JSON.parse(json.out), [grant]);
});

test('say that there is none, and end one by its id', async () => {
  assert.is((await gateway.run('grant list')).out, 'no MCP client has a grant');
  const unknown = gateway.run('grant revoke grant-9');
  assert.match(await complaint(unknown), 'There is no grant "grant-9"');
  const asked: string[] = [];
  const url = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(204).end();
  });
  const { code, out } = await gateway.runAt({ env }, 'grant revoke grant-1 --url', url);
  assert.equal([code, out, asked], [0, 'the grant grant-1 is ended', ['DELETE /auth/grants/grant-1']]);
});

test.run();
