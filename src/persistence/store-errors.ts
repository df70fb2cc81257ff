// Errors of databases: what an operator reads when a store cannot be opened, and the facts of any driver's error.

import type { DriverError } from './database.ts';
import type { ParsedDatabaseUrl } from './database-url.ts';

/** A database that cannot be used. The message is one line: what is wrong and what to do. It never contains a password. */
export class StoreOpenError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StoreOpenError';
  }
}

/** A SQLite file whose contents cannot be read, or not in full. The message is the only place that says what to do then. */
export class DamagedFileError extends StoreOpenError {
  constructor(file: string, code: string, cause: unknown) {
    const orForeign = code.startsWith('SQLITE_NOTADB') ? ', or not a SQLite database' : '';
    super(
      `the database ${file} is damaged${orForeign}: restore a backup of it and of the files beside it, or move it away`,
      cause,
    );
    this.name = 'DamagedFileError';
  }
}

/** An option of a database URL with an invalid value. The message is a clause, without the value. */
export class UrlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UrlError';
  }
}

/** The facts of an error of any driver, however MikroORM or a pool wrapped it; undefined for other thrown values. */
export function driverErrorOf(thrown: unknown): DriverError | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { message } = thrown;
  const facts = { code: textOf(thrown, 'code'), number: numberOf(thrown), isFatal: isFatal(thrown), message };
  if (facts.code !== '' || facts.number !== 0) return facts;
  const inner = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause;
  const innerFacts = driverErrorOf(inner);
  return innerFacts === undefined
    ? facts
    : { ...innerFacts, message: `${thrown.message}: ${innerFacts.message}` };
}

/**
 * The loggable part of an error: its kind, its codes, and which constraint of which table refused. The driver's own
 * message contains the statement with its values or the failing row, and those contain hashes. Other errors stay as they are.
 */
export function withoutValues(thrown: unknown, facts: DriverError | undefined): unknown {
  if (!(thrown instanceof Error) || facts === undefined || (facts.code === '' && facts.number === 0))
    return thrown;
  const places = ['table', 'constraint'].flatMap((name) => placeIn(thrown, name));
  const codes = [facts.code, facts.number === 0 ? '' : String(facts.number)].filter((code) => code !== '');
  const kind = thrown.constructor.name;
  return new Error([`the database refused (${kind}: ${codes.join(' ')})`, ...places].join(', '));
}

/** A name that drivers give beside their message, on the error or on its cause. */
function placeIn(error: Error, name: string): string[] {
  const text = textOf(error, name);
  if (text !== '') return [`${name} ${text}`];
  return error.cause instanceof Error ? placeIn(error.cause, name) : [];
}

function textOf(error: Error, name: string): string {
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : '';
}

/** `errno` of mysql2, `number` of tedious, `errorNum` of oracledb; Node's own `errno` is negative and says nothing new. */
function numberOf(error: Error): number {
  for (const name of ['number', 'errorNum', 'errno']) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === 'number' && value > 0) return value;
  }
  return 0;
}

/** `severity` of pg, `fatal` of mysql2; an error of mysql2 with an SQL state and without a statement is a refused connection. */
function isFatal(error: Error): boolean {
  // MikroORM gives every error the field; only mysql2 fills it.
  const isRefusal = textOf(error, 'sqlState') !== '' && Reflect.get(error, 'sql') === undefined;
  return (
    isRefusal || /^(?:FATAL|PANIC)$/.test(textOf(error, 'severity')) || Reflect.get(error, 'fatal') === true
  );
}

/** Error codes of Node's own sockets, the same for every driver. */
const SOCKET_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT', // a socket file
  'EACCES',
]);

/** True when the connection failed, not the statement. */
export function isNetworkTrouble(code: string): boolean {
  return SOCKET_CODES.has(code);
}

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
