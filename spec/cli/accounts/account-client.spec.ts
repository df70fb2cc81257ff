// Which account client is opened. What the two do is in their own specs.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import {
  type AccountClient,
  findApiKey,
  findUser,
  remoteClient,
  warnOfUnknownTemplates,
} from '../../../src/cli/accounts/account-client.ts';
import { withAccountClient } from '../../../src/cli/accounts/choose-client.ts';
import { CommandInput, type OptionValue } from '../../../src/cli/command.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { namedGateway } from '../../../src/cli/remote.ts';
import { openStore } from '../../../src/persistence/open.ts';
import { replacedFetch } from '../../helpers/replaced-fetch.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('account client');
let folder = '';
test.before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'stagedoor-which-'));
  await (await openStore('sqlite:///gateway.db', { cwd: folder, migrations: 'apply' })).close();
});
test.after(() => rmSync(folder, { recursive: true, force: true }));

test('is the gateway that is named, whether it answers or not', async () => {
  assert.equal(await opened({ url: 'http://127.0.0.1:2' }), ['using the gateway http://127.0.0.1:2']);
  const env = { STAGEDOOR_URL: 'http://127.0.0.1:3' };
  assert.equal(await opened({}, env), ['using the gateway http://127.0.0.1:3']);
});

test('is the gateway that answers at a default address, else the database', async () => {
  const restore = replacedFetch(async (url) =>
    String(url).startsWith('http://127.0.0.1:8000/') ? Response.json({ build: '1' }) : Response.error(),
  );
  const seen = await opened({}).finally(restore);
  assert.equal(seen, ['using the gateway http://127.0.0.1:8000']);
  const restoreAgain = replacedFetch(async () => Response.error());
  const seenAlone = await opened({}).finally(restoreAgain);
  assert.equal(seenAlone, [`using the database ${join(folder, 'gateway.db')}`]);
});

test('is the database when that is asked for, whatever the environment names', async () => {
  const place = [`using the database ${join(folder, 'gateway.db')}`];
  const env = { STAGEDOOR_URL: 'http://127.0.0.1:2' };
  assert.equal(await opened({ local: true }, env), place);
  assert.equal(await opened({ database: 'sqlite:///gateway.db' }, env), place);
  assert.equal(
    await opened({}, { ...env, GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' }, { prefersDatabase: true }),
    place,
  );
});

test('is the gateway for a command that prefers the database, once one is named', async () => {
  const seen = await opened({ url: 'http://127.0.0.1:2' }, {}, { prefersDatabase: true });
  assert.equal(seen, ['using the gateway http://127.0.0.1:2']);
});

test('is never both', async () => {
  for (const options of [{ local: true }, { database: 'sqlite:///gateway.db' }]) {
    const error = await opened({ url: 'http://127.0.0.1:2', ...options }).catch((reason: unknown) => reason);
    assert.instance(error, UsageError);
  }
});

test('is closed also when the work fails', async () => {
  const input = new CommandInput([], new Map([['local', true]]));
  const work = withAccountClient(input, recordingTerminal({ folder }), () =>
    Promise.reject(new Error('on purpose')),
  );
  assert.match(String(await work.catch((reason: unknown) => reason)), 'on purpose');
});

test('finds users by name in any case, and keys by id before name', async () => {
  const client = stub(
    [{ id: 1, username: 'Ada' }],
    [
      { id: 'b', name: 'a' },
      { id: 'a', name: 'x' },
      { id: 'c', name: 'x' },
    ],
  );
  assert.equal(await findUser(client, 'aDA'), { id: '1', username: 'Ada' });
  assert.equal((await findApiKey(client, 'a')).id, 'a');
  assert.equal((await findApiKey(client, 'c')).id, 'c');
  for (const work of [findUser(client, 'bo'), findApiKey(client, 'x'), findApiKey(client, 'y')]) {
    assert.instance(await work.catch((reason: unknown) => reason), CommandFailure);
  }
});

test.run();

/** What is said when an account client is opened with these options. */
async function opened(
  options: Record<string, OptionValue>,
  env: Record<string, string> = {},
  choice: Parameters<typeof withAccountClient>[3] = {},
): Promise<readonly string[]> {
  const terminal = recordingTerminal({ folder, env });
  const input = new CommandInput([], new Map(Object.entries(options)));
  await withAccountClient(input, terminal, async () => undefined, choice);
  return terminal.complaints;
}

function stub(users: Record<string, unknown>[], keys: Record<string, unknown>[]): AccountClient {
  const refuse = () => Promise.reject(new Error('not asked for'));
  return {
    users: async () => users,
    apiKeys: async () => keys,
    createUser: refuse,
    setPassword: refuse,
    deleteUser: refuse,
    createApiKey: refuse,
    revokeApiKey: refuse,
    templates: refuse,
    close: async () => {},
  };
}

const unknown = suite('unknown templates');
const known = async () => ['files', 'search'];

unknown('are named one by one, with the one that was probably meant', async () => {
  assert.equal(await warnings(['file', 'search', 'weather'], known), [
    'warning: template "file" does not exist yet; did you mean "files"?',
    'warning: template "weather" does not exist yet',
  ]);
});

unknown('are nothing where all are known, or none is named: then nobody is asked', async () => {
  assert.equal(await warnings(['search', 'files'], known), []);
  const refuse = () => Promise.reject(new Error('not to be asked'));
  assert.equal(await warnings(undefined, refuse), []);
  assert.equal(await warnings([], refuse), []);
});

unknown('are not looked for when that is refused, but a defect is shown', async () => {
  assert.equal(await warnings(['x'], () => Promise.reject(new CommandFailure('not allowed'))), []);
  const defect = await warnings(['x'], () => Promise.reject(new Error('a defect'))).catch(String);
  assert.is(defect, 'Error: a defect');
});

unknown.run();

async function warnings(
  wanted: readonly string[] | undefined,
  templates: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const complaints: string[] = [];
  await warnOfUnknownTemplates({ templates }, wanted, { note: (text) => void complaints.push(text) });
  return complaints;
}

// Against a real gateway it is in spec/cli/commands. Here is what is sent, byte for byte.
const remote = suite('account client of a gateway');

remote('asks what the API offers, with ids that cannot leave their place', async () => {
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

remote('sends the fields of the spec, and the others only when they are given', async () => {
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

remote('takes an answer that is no list for an empty one', async () => {
  const { client, close } = await listen('{"users":[]}');
  assert.equal([await client.users(), await client.apiKeys()], [[], []]);
  close();
});

remote.run();

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
  const gateway = namedGateway(url, recordingTerminal({ env: { STAGEDOOR_API_KEY: 'k' } }));
  if (gateway === undefined) throw new Error('it was named');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { seen, client: remoteClient(gateway), close };
}
