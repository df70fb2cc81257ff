// The errors of opening a store, told to the person who starts the gateway.

/** A database that cannot be used. The message is one line: what is wrong and what to do. It never holds a password. */
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

/** An option of a database URL whose value means nothing. The message is a clause, without the value. */
export class UrlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UrlError';
  }
}
