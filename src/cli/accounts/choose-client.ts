// Which accounts a command is about: those of a gateway, or those of a database. The account commands share these options.

import type { CommandInput, OptionTable } from '../command.ts';
import { UsageError } from '../failures.ts';
import { namedGateway, seekGateway } from '../remote.ts';
import { DATABASE_OPTIONS } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';
import { type AccountClient, remoteClient } from './account-client.ts';

const COMMON_OPTIONS: OptionTable = {
  ...DATABASE_OPTIONS,
  '--json': 'Print records as JSON',
};

/** The options of the account commands. */
export const ACCOUNT_CLIENT_OPTIONS: OptionTable = {
  '--url <url>':
    'URL of the gateway; default STAGEDOOR_URL, else http://127.0.0.1:8080 or :8000 if a gateway answers there',
  '--local': 'Use the database, even when a gateway runs',
  ...COMMON_OPTIONS,
};

/** The same for a command that prefers the database. */
export const DATABASE_CLIENT_OPTIONS: OptionTable = {
  '--url <url>':
    'Use this gateway instead of the database, as the admin who is logged in there; STAGEDOOR_URL is ignored',
  '--local': 'Use the database; the default',
  ...COMMON_OPTIONS,
};

/**
 * Opens the account client, lets `work` use it and closes it. The gateway that `--url` or STAGEDOOR_URL names, else the one that
 * answers at a default address, else the database; `--local` and `--database` choose the database at once, and so does
 * `prefersDatabase` without `--url`. The choice is written to standard error.
 */
export async function withAccountClient<T>(
  input: CommandInput,
  terminal: Terminal,
  work: (client: AccountClient) => Promise<T>,
  { prefersDatabase = false } = {},
): Promise<T> {
  const client = await openClient(input, terminal, prefersDatabase);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function openClient(
  input: CommandInput,
  terminal: Terminal,
  prefersDatabase: boolean,
): Promise<AccountClient> {
  const url = input.text('url');
  const isLocal = input.has('local') || input.has('database');
  if (isLocal && url !== undefined) {
    throw new UsageError('--url cannot be combined with --local or --database');
  }
  if (!isLocal && !(prefersDatabase && url === undefined)) {
    const remote = namedGateway(url, terminal) ?? (await seekGateway(terminal));
    if (remote !== undefined) {
      terminal.note(`using the gateway ${remote.url}`);
      return remoteClient(remote);
    }
  }
  // Heavy: it loads a database driver.
  const { openLocalClient } = await import('./local-client.ts');
  return openLocalClient(input, terminal);
}
