// What an operator reads when a store cannot be opened. Apart from open.ts, whose types embedding programs see: the types of a
// database are MikroORM's.

import type { ParsedDatabaseUrl } from './database-url.ts';
import { DamagedFileError, driverErrorOf, StoreOpenError, UrlError } from './store-errors.ts';

/** A StoreOpenError for any error thrown while a store is opened. */
export function explain(parsed: ParsedDatabaseUrl, thrown: unknown): StoreOpenError {
  if (thrown instanceof StoreOpenError) return thrown;
  const { database, address, description } = parsed;
  if (thrown instanceof UrlError) return new StoreOpenError(`the database URL: ${thrown.message}`, thrown);
  if (isMissingModule(thrown))
    return new StoreOpenError(
      `the driver for ${database.label} is not installed: npm install ${database.driverPackage}@7.2.1`,
      thrown,
    );
  const facts = driverErrorOf(thrown);
  const reason = facts === undefined ? String(thrown) : reasonOf(facts);
  const place = description.file ?? `${address.host}:${address.port}`;
  const say = (message: string) => new StoreOpenError(message, thrown);
  switch (facts === undefined ? undefined : database.trouble(facts)) {
    case 'credentials':
      return say(
        `${database.label} at ${place} refuses the user "${address.user}": check user and password of the database URL`,
      );
    case 'no-database':
      return say(
        `${database.label} at ${place} has no database "${address.name}", or "${address.user}" may not use it: ` +
          'create it, or grant the right to',
      );
    case 'away':
      return say(
        description.file === undefined
          ? `${database.label} at ${place} cannot be reached (${reason}): is it running, and is the address right?`
          : `the database ${place} cannot be used (${reason})`,
      );
    case 'damaged':
      return new DamagedFileError(place, facts?.code ?? '', thrown);
    case 'conflict':
      return say(`the database ${description.printable} is in use by another process (${reason}): try again`);
    default:
      return say(`the database ${description.printable} cannot be opened: ${reason}`);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'unknown host',
  ETIMEDOUT: 'no answer',
  ETIMEOUT: 'no answer',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ECONNRESET: 'connection reset',
  SQLITE_FULL: 'the disk is full',
  SQLITE_READONLY: 'it cannot be written',
};

const STATEMENT_END = ' - ';

/** One line, without the statement that MikroORM puts before some messages. */
function reasonOf({ code, message }: { readonly code: string; readonly message: string }): string {
  const known = REASONS[code];
  if (known !== undefined) return known;
  const line = message.split('\n').at(-1) ?? '';
  const words = line
    .slice(line.lastIndexOf(STATEMENT_END) + 1)
    .replace(/^- /, '')
    .trim();
  return words.slice(0, 200) || code;
}

function isMissingModule(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_MODULE_NOT_FOUND';
}
