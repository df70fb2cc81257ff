// The accounts for the account commands: the /auth routes of a running gateway, or the same routes on its database
// (local-client.ts).

import { templatesIn } from '../../domain/accounts/rights.ts';
import { didYouMean } from '../../domain/nearest.ts';
import { daemonHere } from '../background/daemon-files.ts';
import { type CommandInput, JSON_OPTION, type OptionTable } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import type { TableColumns } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';
import { findGateway } from '../remote/find-gateway.ts';
import { Remote } from '../remote/remote.ts';
import { DATABASE_OPTIONS } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';
import type { WrittenRights } from './account-options.ts';
import type { AccountClient } from './local-client.ts';

export async function findUser(client: AccountClient, username: string): Promise<Fields> {
  const wanted = username.toLowerCase();
  const users = objectsOf(await client.request('/auth/users'));
  const user = users.find((each) => String(each.username).toLowerCase() === wanted);
  if (user === undefined)
    throw notFound(
      'user',
      username,
      users.map((each) => String(each.username)),
    );
  return user;
}

/** The key with that id, or with that name when only one key has it. */
export async function findApiKey(client: AccountClient, idOrName: string): Promise<Fields> {
  const keys = objectsOf(await client.request('/auth/api-keys'));
  const named = keys.filter(({ name }) => name === idOrName);
  const key = keys.find(({ id }) => id === idOrName) ?? named[0];
  if (key === undefined)
    throw notFound(
      'API key',
      idOrName,
      keys.map(({ name }) => String(name)),
    );
  if (key.id === idOrName || named.length === 1) return key;
  const ids = named.map(({ id }) => id).join(', ');
  throw new CommandFailure(`${named.length} API keys are called "${idOrName}"; name one by its id: ${ids}`);
}

function notFound(what: string, name: string, known: readonly string[]): CommandFailure {
  const guess = didYouMean(name, known);
  return new CommandFailure(`${what} "${name}" not found${guess === undefined ? '' : `; ${guess}`}`);
}

/** The columns of the lists of rights: those of views and tools only where an account has some. */
export function rightsColumns(accounts: readonly Fields[]): TableColumns<Fields> {
  const has = (list: string) => accounts.some((account) => Array.isArray(account[list]));
  return {
    TEMPLATES: ({ templates }) => shownList(templates),
    ...(has('views') && {
      VIEWS: ({ templates, views }: Fields) => shownList(Array.isArray(templates) ? (views ?? []) : views),
    }),
    ...(has('tools') && { TOOLS: ({ tools }: Fields) => shownList(tools) }),
  };
}

function shownList(list: unknown): unknown {
  if (!Array.isArray(list)) return 'all';
  return list.length === 0 ? 'none' : list;
}

/**
 * Warns about lists of an account that probably are not what was meant: views without a list of templates, which
 * leaves all templates, and templates and views that the gateway does not have. Without a gateway, and for a caller that may
 * not read the registry, these are not known.
 */
export async function warnOfRights(
  client: AccountClient,
  { templates, views, tools }: WrittenRights,
  { note }: Pick<Terminal, 'note'>,
): Promise<void> {
  if (Array.isArray(views) && templates === undefined)
    note('all templates may be used beside these views; "--templates none" leaves the views only');
  if (!(client instanceof Remote)) return;
  const warn = async (what: string, names: ReadonlySet<string>, known: () => Promise<readonly string[]>) => {
    const found = names.size === 0 ? undefined : await known().catch(() => undefined);
    for (const name of found === undefined ? [] : [...names].filter((each) => !found.includes(each))) {
      const guess = didYouMean(name, found ?? []);
      note(`warning: the gateway has no ${what} "${name}"${guess === undefined ? '' : `; ${guess}`}`);
    }
  };
  await warn('template', new Set([...(templates ?? []), ...templatesIn(tools ?? [])]), async () =>
    Object.keys(fields(fields(await client.request('/gateway/registry')).templates)),
  );
  await warn('view', new Set(views), async () =>
    objectsOf(fields(await client.request('/gateway/views')).views).map(({ id }) => String(id)),
  );
}

export const PASSWORD_OPTION: OptionTable = {
  '--password <value>':
    'Password; "-" reads standard input, default a hidden prompt. Other users can read a value given here',
};

export const ACCOUNT_CLIENT_OPTIONS: OptionTable = {
  '--url <url>':
    'URL of the gateway; default STAGEDOOR_URL, else the gateway in the background here, else 127.0.0.1:8080 or :8000, by http or https, else the database',
  '--local': 'Use the database, even when a gateway runs',
  ...DATABASE_OPTIONS,
  ...JSON_OPTION,
};

/**
 * Lets `work` use the accounts of the gateway that `--url` or STAGEDOOR_URL names, else of the first that answers, else of the
 * database, which `--local` and `--database` choose directly. The choice is written to standard error.
 */
export async function withAccountClient<T>(
  input: CommandInput,
  terminal: Terminal,
  work: (client: AccountClient) => Promise<T>,
): Promise<T> {
  const url = input.text('url');
  const isLocal = input.has('local') || input.has('database');
  if (isLocal && url !== undefined) {
    throw new UsageError('--url cannot be combined with --local or --database');
  }
  if (!isLocal) {
    const remote = await findGateway(url, terminal, input.has('trust'));
    if (remote !== undefined) {
      terminal.note(`using the gateway ${remote.url}`);
      return work(remote);
    }
  }
  if (!isLocal && url === undefined) {
    const { lost } = (await daemonHere(terminal)) ?? {};
    if (lost !== undefined) terminal.note(`warning: ${lost}`);
  }
  // Loaded on demand: it loads a database driver.
  const { withLocalClient } = await import('./local-client.ts');
  return withLocalClient(input, terminal, work);
}
