// Which account client is opened. What the two do is in their own specs.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { type AccountClient, findApiKey, findUser } from '../../../src/cli/accounts/account-client.ts';
import { type ClientChoice, withAccountClient } from '../../../src/cli/accounts/choose-client.ts';
import { CommandInput, type OptionValue } from '../../../src/cli/command.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { namedGateway } from '../../../src/cli/remote.ts';
import { openStore } from '../../../src/persistence/open.ts';
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
  const there = async () => namedGateway('http://127.0.0.1:4', { STAGEDOOR_TOKEN: 'x' });
  assert.equal(await opened({}, {}, { seek: there }), ['using the gateway http://127.0.0.1:4']);
  const noGateway = async () => undefined;
  assert.equal(await opened({}, {}, { seek: noGateway }), [
    `using the database ${join(folder, 'gateway.db')}`,
  ]);
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
  choice: ClientChoice = {},
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
