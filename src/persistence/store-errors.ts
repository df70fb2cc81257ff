// The errors of opening a store, told to the person who starts the gateway.

/** A database that cannot be used. The message is one line: what is wrong and what to do. It never holds a password. */
export class StoreOpenError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StoreOpenError';
  }
}

/** An option of a database URL whose value means nothing. The message is a clause, without the value. */
export class UrlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UrlError';
  }
}
