// The cases in which a database cannot be opened: creates it on a server that lacks it, else makes the message for the
// operator. Separate from open-store.ts, whose types embedding programs see: the types of a database are MikroORM's.

import { existsSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf } from '../domain/errors/errors.ts';
import { PACKAGE_ROOT } from '../domain/package-root.ts';
import { type DatabaseAddress, failureOf } from './database.ts';
import type { ParsedDatabaseUrl } from './database-url.ts';
import type { Orm } from './orm/connection/orm.ts';
import {
  DamagedFileError,
  type DriverError,
  driverErrorOf,
  NO_SPACE,
  StoreOpenError,
} from './store-errors.ts';

export function explain(parsed: ParsedDatabaseUrl, thrown: unknown): StoreOpenError {
  if (thrown instanceof StoreOpenError) return thrown;
  const { database, address, description } = parsed;
  if (codeOf(thrown) === 'ERR_MODULE_NOT_FOUND')
    return new StoreOpenError(
      `the driver for ${database.label} is not installed: run "${addingCommand(database.driverPackage)}"`,
      { cause: thrown },
    );
  const driverError = driverErrorOf(thrown);
  const reason = driverError === undefined ? String(thrown) : openingReason(driverError);
  const location = description.file ?? `${address.host}:${address.port}`;
  const failed = (message: string) => new StoreOpenError(message, { cause: thrown });
  switch (failureOf(database, thrown)) {
    case 'credentials':
      return failed(
        `${database.label} at ${location} refuses the user "${address.user}": check user and password of the database URL`,
      );
    case 'no-database':
      return failed(
        `${database.label} at ${location} has no database "${address.name}", or "${address.user}" may not use it: ` +
          'create it, or grant the right to',
      );
    case 'unavailable':
      return failed(
        description.file === undefined
          ? `${database.label} at ${location} cannot be reached (${reason}): is it running, and is the address right?`
          : `the database ${location} cannot be used (${reason})`,
      );
    case 'full':
      return failed(`${NO_SPACE} (${location}, ${reason}): make room, or raise the quota`);
    case 'damaged':
      return new DamagedFileError(location, thrown);
    case 'conflict':
      return failed(
        `the database ${description.printable} is in use by another process (${reason}): try again`,
      );
    default:
      return failed(`the database ${description.printable} cannot be opened: ${reason}`);
  }
}

/**
 * The command that adds a driver, in the version that this package declares, beside the packages of this program. `module`: URL
 * of a file of this program. A global installation has no project: a package added there with `-g` would bring a second
 * MikroORM, so it is added to this package itself.
 */
export function addingCommand(driver: string, module: string = import.meta.url): string {
  const path = fileURLToPath(module);
  const end = path.lastIndexOf(`${sep}node_modules${sep}`);
  if (end < 0) return 'npm ci --include=dev';
  const project = path.slice(0, end);
  const { dependencies, peerDependencies } = JSON.parse(
    readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8'),
  );
  const added = `${driver}@${{ ...dependencies, ...peerDependencies }[driver]}`;
  if (existsSync(join(project, 'package.json'))) return `npm install --prefix ${quoted(project)} ${added}`;
  const own = join(project, 'node_modules', 'stagedoor');
  return `npm install --prefix ${quoted(own)} --omit=dev --save-prod ${added}`;
}

function quoted(path: string): string {
  return /\s/.test(path) ? `'${path}'` : path;
}

/** The reason in one line, without the statement with which MikroORM begins some messages. */
function openingReason({ code, message }: { readonly code: string; readonly message: string }): string {
  const line = message.split('\n').at(-1) ?? '';
  const words = line.split(' - ').at(-1) ?? '';
  return words.trim().slice(0, 200) || code;
}

/**
 * Creates the database itself when the server lacks it. False where only an administrator can. Throws
 * StoreOpenError when the user may not, and the driver's error when the server did not answer.
 */
export async function createDatabase(
  { database, address }: ParsedDatabaseUrl,
  connect: (address: DatabaseAddress) => Promise<Orm>,
  onNotice?: (line: string) => void,
): Promise<boolean> {
  const { creation } = database;
  if (creation === undefined) return false;
  const orm = await connect({ ...address, name: creation.via });
  try {
    const quoted = orm.orm.em.getPlatform().quoteIdentifier(address.name);
    await orm.connection.execute(creation.sql(quoted));
    onNotice?.(`created the database "${address.name}"`);
    return true;
  } catch (thrown) {
    // Several processes may start at once: one of them creates the database.
    if (isThereAlready(driverErrorOf(thrown))) return true;
    // These failures do not concern the rights of the user.
    if (['unavailable', 'full', 'conflict'].includes(failureOf(database, thrown) ?? '')) throw thrown;
    throw new StoreOpenError(
      `${database.label} at ${address.host}:${address.port} has no database "${address.name}", ` +
        `and "${address.user}" may not create it: create it first, or grant the right to`,
      { cause: thrown },
    );
  } finally {
    // Not closed: closing a pool that lost a connection may never end.
    orm.destroy();
  }
}

/**
 * True for the errors of a database that exists. PostgreSQL: duplicate database, or two creations at the same time;
 * MySQL: 1007; SQL Server: 1801.
 */
function isThereAlready(error: DriverError | undefined): boolean {
  const { code = '', number = 0 } = error ?? {};
  return code === '42P04' || code === '23505' || number === 1007 || number === 1801;
}
