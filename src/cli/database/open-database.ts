// Opens the database of the settings for a command. Unlike a gateway a command never makes one: a misspelt path must not
// become an empty database in which nobody is.

import { ConfigError } from '../../config/config-error.ts';
import type { Config } from '../../config.ts';
import { asGatewayError } from '../../domain/errors.ts';
import { reasonOf } from '../../domain/failures.ts';
import { CipherError } from '../../persistence/cipher.ts';
import type { DatabaseDescription } from '../../persistence/database-url.ts';
import { describeDatabase, StoreOpenError } from '../../persistence/open.ts';
import type { Store } from '../../persistence/store.ts';
import { openStorage, type Storage } from '../../storage.ts';
import { CommandFailure } from '../failures.ts';
import type { Terminal } from '../terminal.ts';

export interface OpenedDatabase {
  readonly store: Store;
  /** For people: without a password, with an absolute path. */
  readonly name: string;
  /** Where a gateway on it keeps the password of the first admin. */
  readonly initialPasswordFile: string;
  /** As in Storage. */
  readonly protectedPaths: Storage['protectedPaths'];
}

/** Throws CommandFailure with one line that says what to do. The store is to be closed. */
export async function openDatabase(config: Config, { folder, env, busy }: Terminal): Promise<OpenedDatabase> {
  const { printable } = describeStored(config, folder);
  try {
    const opened = await busy(`opening ${printable}`, () =>
      openStorage(config, { folder, env, migrations: 'require' }),
    );
    const { store, initialPasswordFile, protectedPaths } = opened;
    return { store, initialPasswordFile, protectedPaths, name: printable };
  } catch (error) {
    throw databaseFailure(error);
  }
}

/** Opens, lets `work` use it, and closes. */
export async function withDatabase<T>(
  config: Config,
  terminal: Terminal,
  work: (database: OpenedDatabase) => Promise<T>,
): Promise<T> {
  const database = await openDatabase(config, terminal);
  try {
    return await work(database);
  } catch (error) {
    throw databaseFailure(error);
  } finally {
    await database.store.close();
  }
}

/** The database that is named. Throws CommandFailure for one in memory: that is in the memory of one gateway. */
export function describeStored({ databaseUrl }: Config, folder: string): DatabaseDescription {
  let described: DatabaseDescription;
  try {
    described = describeDatabase(databaseUrl, folder);
  } catch (error) {
    throw databaseFailure(error);
  }
  if (described.kind !== 'memory' && (described.kind !== 'sqlite' || described.file !== undefined))
    return described;
  throw new CommandFailure(
    `the database is ${databaseUrl}, which is inside a running gateway: ask that one, or name another with --database`,
  );
}

/** What a database or its secrets refuse, as the failure of a command; a defect of ours as it is. */
export function databaseFailure(error: unknown): unknown {
  if (error instanceof StoreOpenError || error instanceof ConfigError || error instanceof CipherError) {
    return new CommandFailure(error.message, { cause: error });
  }
  const { code, message, facts } = asGatewayError(error);
  if (code === 'INTERNAL_ERROR') return error;
  if (facts.cause instanceof StoreOpenError) return databaseFailure(facts.cause);
  if (code === 'DATABASE_UNAVAILABLE') {
    // A command may have changed something before: what the error says of its own change is not all there is.
    const why = facts.cause === undefined ? '' : `: ${reasonOf(facts.cause)}`;
    const fate = facts.delivered === 'no' ? '' : '; whether the last change was made is not known';
    return new CommandFailure(`The database does not answer${why}${fate} (${code})`, { cause: error });
  }
  return new CommandFailure(`${message.replace(/\.$/, '')} (${code})`, { cause: error });
}
