// Opens the database of the settings for a command. Unlike a gateway, only `db migrate` creates a database: a misspelt path must
// not become an empty database without accounts.

import type { Config } from '../../config/config.ts';
import { asGatewayError, OperatorError, reasonOf } from '../../domain/errors/errors.ts';
import { ownCommand } from '../../domain/version.ts';
import { type DatabaseDescription, describeDatabase } from '../../persistence/database-url.ts';
import {
  DamagedFileError,
  fileExposureOf,
  isOfOlderBuild,
  migrationStatus,
  StoreOpenError,
} from '../../persistence/open-store.ts';
import type { MigrationStatus } from '../../persistence/store.ts';
import { openStorage, type Storage } from '../../server/storage.ts';
import { CommandFailure } from '../failures.ts';
import { issueText } from '../remote/answers.ts';
import type { Terminal } from '../terminal.ts';

/** Opens the database for the work; `name` is for display. Throws CommandFailure with one line that says what to do. */
export async function withDatabase<T>(
  config: Config,
  { env, busy }: Terminal,
  work: (database: Storage & { readonly name: string }) => Promise<T>,
): Promise<T> {
  const { printable: name } = describeStored(config);
  try {
    const open = () => openStorage(config, { env, migrations: 'require' });
    const storage = await busy(`opening ${name}`, open);
    try {
      return await work({ ...storage, name });
    } finally {
      await storage.store.close();
    }
  } catch (error) {
    throw databaseFailure(error);
  }
}

/** The database of the settings. Throws CommandFailure for one in memory, which only its gateway can use. */
function describeStored({ databaseUrl, folder }: Config): DatabaseDescription {
  let described: DatabaseDescription;
  try {
    described = describeDatabase(databaseUrl, folder);
  } catch (error) {
    throw databaseFailure(error);
  }
  if (described.place !== 'memory') return described;
  throw new CommandFailure(
    `the database ${databaseUrl} exists only inside a running gateway; name another with --database`,
  );
}

/** Turns an error of a database or of its secrets into the failure of a command; returns any other error unchanged. */
export function databaseFailure(error: unknown): unknown {
  if (error instanceof OperatorError) return new CommandFailure(error.message, { cause: error });
  const { code, message, facts } = asGatewayError(error);
  if (code === 'INTERNAL_ERROR') return error;
  if (facts.cause instanceof StoreOpenError) return databaseFailure(facts.cause);
  if (code === 'DATABASE_UNAVAILABLE') {
    // The error describes only the last change: a command may have made others before.
    const cause = facts.cause === undefined ? '' : `: ${reasonOf(facts.cause)}`;
    const outcomeText = facts.delivered === 'no' ? '' : '; the outcome of the last change is unknown';
    return new CommandFailure(`the database does not answer${cause}${outcomeText} (${code})`, {
      cause: error,
    });
  }
  const reason = facts.items?.map(issueText).join('; ') ?? message;
  return new CommandFailure(`${reason.replace(/\.$/, '')} (${code})`, { cause: error });
}

export interface DatabaseReport {
  /** The URL of the database, without a password and with an absolute path. */
  readonly database: string;
  readonly kind: string;
  readonly is_reachable: boolean;
  /** True when a gateway of this version starts on it without a migration. */
  readonly is_usable: boolean;
  readonly reason: string | null;
  /** The names of the migrations, in the order in which they are applied; null when the database does not answer. */
  readonly migrations: MigrationStatus | null;
  /** The problems that do not prevent a start, one line each. */
  readonly warnings: readonly string[];
}

/**
 * The state of the database, which is only read. Throws for `memory://` and for any other text that is not a URL of a
 * database.
 */
export async function databaseReport(config: Config, terminal: Terminal): Promise<DatabaseReport> {
  const { kind, printable, file } = describeStored(config);
  const exposure = file === undefined ? undefined : await fileExposureOf(file);
  const unreachable = {
    database: printable,
    kind,
    is_reachable: false,
    is_usable: false,
    reason: null,
    migrations: null,
    warnings: exposure === undefined ? [] : [exposure],
  };
  const found = await migrationStatus(config.databaseUrl, { cwd: config.folder }).catch(reasonOfFailure);
  if (typeof found === 'string') return { ...unreachable, reason: found };
  const state = { ...unreachable, is_reachable: true, migrations: found };
  const reason =
    reasonAgainst(found) ??
    // With its secrets, as a gateway opens it.
    (await withDatabase(config, terminal, async () => null).catch(reasonOfFailure));
  return { ...state, reason, is_usable: reason === null };
}

/** Applies pending migrations and names them; creates the database if need be. Throws CommandFailure for a known fault. */
export async function migrateDatabase(
  config: Config,
  terminal: Terminal,
): Promise<{ readonly name: string; readonly applied: readonly string[] }> {
  const { printable: name } = describeStored(config);
  const appliedNow = async () => (await migrationStatus(config.databaseUrl, { cwd: config.folder })).applied;
  try {
    const before: readonly string[] = await appliedNow().catch((error: unknown) => {
      // The database does not exist yet; a damaged file must not be changed.
      if (error instanceof StoreOpenError && !(error instanceof DamagedFileError)) return [];
      throw error;
    });
    terminal.note(`migrating ${name}`);
    const { store } = await openStorage(config, { env: terminal.env, migrations: 'apply' });
    await store.close();
    return { name, applied: (await appliedNow()).filter((each) => !before.includes(each)) };
  } catch (error) {
    throw databaseFailure(error);
  }
}

/** The reason of a known failure in one line; throws any other error. */
function reasonOfFailure(thrown: unknown): string {
  const error = databaseFailure(thrown);
  if (error instanceof CommandFailure) return error.message;
  throw error;
}

/** The reason why a gateway of this version cannot start on the database as it is; undefined when it can. */
function reasonAgainst(status: MigrationStatus): string | undefined {
  const { pending, unknown } = status;
  if (isOfOlderBuild(status)) return 'it was made by an older build before the first release';
  if (unknown.length > 0) return 'it was changed by a newer version';
  if (pending.length === 0) return undefined;
  return `migrations are pending: run "${ownCommand('db migrate')}", or start the gateway once`;
}
