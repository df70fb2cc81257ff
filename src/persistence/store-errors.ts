// The errors of databases: those for the operator when a store cannot be opened, and the properties of a driver's error.

import { OperatorError } from '../domain/errors/errors.ts';

/** The error of an unusable database. The message is one line, with the problem and its remedy, and without a password. */
export class StoreOpenError extends OperatorError {
  override readonly name: string = 'StoreOpenError';
}

/** The error of a file that is not a database, or whose content cannot be read. */
export class DamagedFileError extends StoreOpenError {
  override readonly name = 'DamagedFileError';

  constructor(file: string, cause: unknown) {
    super(
      `the database ${file} is damaged, or not a SQLite database: ` +
        'restore a backup of it and of the files beside it, or move it away',
      { cause },
    );
  }
}

/**
 * The record of a row. Throws StoreOpenError with table and id when the row cannot be read; without its values, which
 * may be secret.
 */
export function readRow<T>(table: string, id: string | (() => string), read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new StoreOpenError(
      `the row ${JSON.stringify(typeof id === 'string' ? id : id())} of the table ${table} is damaged: correct it, or delete it`,
      // That of JSON.parse has a part of the text.
      { cause: cause instanceof SyntaxError ? new TypeError('it is not JSON') : cause },
    );
  }
}

export const NO_SPACE = 'the database has no space left: its disk or its quota is full';

/** The error of a change that was refused for lack of space. `code`: that of the driver's error. */
export class FullError extends Error {
  override readonly name = 'FullError';
  readonly code: string;

  constructor(code: string, cause: unknown) {
    super(`${NO_SPACE} (${code})`, { cause });
    this.code = code;
  }
}

/** An option of a database URL has an invalid value. `rule` is a clause, without the value. */
export function urlRefused(rule: string): StoreOpenError {
  return new StoreOpenError(`the database URL: ${rule}`);
}

export interface DriverError {
  /** The code: `ECONNREFUSED`, an SQLSTATE, `SQLITE_BUSY`; '' without one. */
  readonly code: string;
  /** The number of the error; 0 without one. */
  readonly number: number;
  /** True when the driver reports that the connection was closed, or not opened. */
  readonly isFatal: boolean;
  readonly message: string;
}

/** The properties of a driver's error, even if MikroORM or a pool wrapped it; undefined for any other thrown value. */
export function driverErrorOf(thrown: unknown): DriverError | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { message } = thrown;
  const driverError = {
    code: textOf(thrown, 'code'),
    number: numberOf(thrown),
    isFatal: isFatal(thrown),
    message,
  };
  if (driverError.code !== '' || driverError.number !== 0) return driverError;
  const inner = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause;
  const innerError = driverErrorOf(inner);
  return innerError === undefined
    ? driverError
    : { ...innerError, message: `${thrown.message}: ${innerError.message}` };
}

/**
 * The part of a driver's error that may be logged: its class and its codes. The driver's message contains the
 * statement or the failing row, with hashes. Returns other errors unchanged.
 */
export function withoutValues(thrown: unknown, driverError: DriverError | undefined): unknown {
  if (!(thrown instanceof Error) || driverError === undefined) return thrown;
  const code = [driverError.code, driverError.number].filter(Boolean).join(' ');
  if (code === '') return thrown;
  return Object.assign(new Error(`the database refused (${thrown.constructor.name}: ${code})`), { code });
}

function textOf(error: Error, name: string): string {
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : '';
}

/**
 * The number of an error: `errno` of mysql2, `number` of tedious, `errorNum` of oracledb; Node's own `errno` is
 * negative and adds nothing to `code`.
 */
function numberOf(error: Error): number {
  for (const name of ['number', 'errorNum', 'errno']) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === 'number' && value > 0) return value;
  }
  return 0;
}

/**
 * True when `severity` of pg or `fatal` of mysql2 says so; an error of mysql2 with an SQL state and without a
 * statement is a refused connection.
 */
function isFatal(error: Error): boolean {
  // MikroORM gives every error the field; only mysql2 fills it.
  const isRefusal = textOf(error, 'sqlState') !== '' && Reflect.get(error, 'sql') === undefined;
  return (
    isRefusal || /^(?:FATAL|PANIC)$/.test(textOf(error, 'severity')) || Reflect.get(error, 'fatal') === true
  );
}

/** The error codes of Node's own sockets, the same for every driver. */
const SOCKET_CODES: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN'],
  ...['ENETUNREACH', 'ENETDOWN', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EACCES'],
  'ENOENT', // a socket file
]);

/** True when the connection failed, not the statement. */
export function isNetworkError(code: string): boolean {
  return SOCKET_CODES.has(code);
}
