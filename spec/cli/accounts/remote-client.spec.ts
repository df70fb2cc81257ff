import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { type AccountClient, remoteClient } from '../../../src/cli/accounts/account-client.ts';
import { namedGateway } from '../../../src/cli/remote.ts';
import { suite } from '../../helpers/suite.ts';

// Against a real gateway it is in spec/cli/commands. Here is what is sent, byte for byte.
const test = suite('account client of a gateway');

test('asks what the API offers, with ids that cannot leave their place', async () => {
  const { seen, client, close } = await listen('[{"id":"1"}]');
  assert.equal(await client.users(), [{ id: '1' }]);
  assert.equal(await client.apiKeys(), [{ id: '1' }]);
  await client.deleteUser('a/../b?c');
  await client.revokeApiKey('a/b');
  await client.setPassword('1', 'battery staple');
  await client.close();
  close();
  assert.equal(seen, [
    ['GET', '/auth/users', '', 'k'],
    ['GET', '/auth/api-keys', '', 'k'],
    ['DELETE', '/auth/users/a%2F..%2Fb%3Fc', '', 'k'],
    ['DELETE', '/auth/api-keys/a%2Fb', '', 'k'],
    ['PATCH', '/auth/users/1', '{"password":"battery staple"}', 'k'],
  ]);
});

test('sends the fields of the spec, and the others only when they are given', async () => {
  const { seen, client, close } = await listen('{}');
  const user = { username: 'ada', email: 'a@b', password: 'correct horse' };
  await client.createUser({ ...user, role: 'user', templates: undefined });
  await client.createUser({ ...user, role: 'admin', templates: [] });
  await client.createApiKey({
    name: 'ci',
    permissions: ['admin'],
    templates: undefined,
    expiresAt: undefined,
  });
  const expiresAt = '2027-01-01T00:00:00.000Z';
  await client.createApiKey({ name: 'ci', permissions: ['tools:call'], templates: ['a'], expiresAt });
  close();
  assert.equal(
    seen.map(([method, path, body]) => [method, path, JSON.parse(body ?? '')]),
    [
      ['POST', '/auth/users', { ...user, is_superuser: false }],
      ['POST', '/auth/users', { ...user, is_superuser: true, templates: [] }],
      ['POST', '/auth/api-keys', { name: 'ci', permissions: ['admin'] }],
      [
        'POST',
        '/auth/api-keys',
        { name: 'ci', permissions: ['tools:call'], templates: ['a'], expires_at: expiresAt },
      ],
    ],
  );
});

test('takes an answer that is no list for an empty one', async () => {
  const { client, close } = await listen('{"users":[]}');
  assert.equal([await client.users(), await client.apiKeys()], [[], []]);
  close();
});

test.run();

interface Listening {
  /** Method, path, body and key of each request. */
  readonly seen: string[][];
  readonly client: AccountClient;
  close(): void;
}

async function listen(answer: string): Promise<Listening> {
  const seen: string[][] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = await text(request);
    seen.push([String(request.method), String(request.url), body, String(request.headers['x-api-key'])]);
    response.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = namedGateway(url, { STAGEDOOR_API_KEY: 'k' });
  if (gateway === undefined) throw new Error('it was named');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { seen, client: remoteClient(gateway), close };
}
