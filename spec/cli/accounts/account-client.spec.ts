// Whether a command uses a gateway or a database. The commands: spec/cli/commands.

import * as assert from 'uvu/assert';
import { withAccountClient } from '../../../src/cli/accounts/account-client.ts';
import { CommandInput, type OptionValue } from '../../../src/cli/command.ts';
import { UsageError } from '../../../src/cli/failures.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { fetchFor } from '../../helpers/network/replaced-fetch.ts';
import { thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('account client');
const folder = folderOfAll(test);
const replaceFetch = fetchFor(test);
const database = 'sqlite:///gateway.db';
test.before(async () => {
  await (await openStore(database, { cwd: folder(), migrations: 'apply' })).close();
});

test('is the gateway that answers at a default address, else the database', async () => {
  let answering = 'http://127.0.0.1:8000/';
  replaceFetch(async (url) =>
    String(url).startsWith(answering) ? Response.json({ status: 'healthy', build: '1' }) : Response.error(),
  );
  assert.equal(await opened({}), ['using the gateway http://127.0.0.1:8000']);
  answering = 'none';
  assert.equal(await opened({}), [`using the database ${folder('gateway.db')}`]);
});

test('is the database when an option chooses it, whatever the environment names', async () => {
  const place = [`using the database ${folder('gateway.db')}`];
  const env = { STAGEDOOR_URL: 'http://127.0.0.1:2', GATEWAY_DATABASE_URL: database };
  for (const options of [{ local: true }, { database }]) {
    assert.equal(await opened(options, env), place);
    const both = opened({ ...options, url: 'http://127.0.0.1:2' });
    assert.instance(await thrownBy(both), UsageError);
  }
});

test.run();

/** The messages to the user when an account client is opened with these options. */
async function opened(
  options: Record<string, OptionValue>,
  env: Record<string, string> = {},
): Promise<readonly string[]> {
  const terminal = recordingTerminal({ folder: folder(), env });
  const input = new CommandInput([], new Map(Object.entries(options)));
  await withAccountClient(input, terminal, async () => undefined);
  return terminal.complaints;
}
