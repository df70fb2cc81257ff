// The errors of the gateway itself: its start, its stop, its database.

import { type Delivered, GatewayError, hasCode, messageOf, retryAfter } from './errors.ts';

/** No instance is known to be healthy yet. */
export function gatewayStarting(): GatewayError {
  return new GatewayError('NO_HEALTHY_INSTANCE', 'The gateway is starting.', retryAfter(1));
}

export function shuttingDown(): GatewayError {
  return new GatewayError('SHUTTING_DOWN', 'The gateway is shutting down.', retryAfter(5));
}

/**
 * The database did not answer. `unknown`: a change was sent, and may have been made. `fate` is a sentence about
 * the outcome of the change.
 */
export function databaseUnavailable(
  cause: unknown,
  delivered: Delivered = 'no',
  fate = delivered === 'no' ? NOTHING_CHANGED : PERHAPS_CHANGED,
  problem = 'The database does not answer.',
): GatewayError {
  const details = delivered === 'no' ? retryAfter(5) : { delivered };
  return new GatewayError('DATABASE_UNAVAILABLE', `${problem} ${fate}`, {
    cause,
    ...details,
  });
}

/** The disk or the quota of the database is full: it answers queries, and refuses changes. */
export function databaseFull(cause: unknown, delivered: Delivered): GatewayError {
  return databaseUnavailable(cause, delivered, undefined, NO_SPACE_LEFT);
}

/**
 * The rest of a change of which a part is stored, or the reading of what is answered about it: DATABASE_UNAVAILABLE says
 * then that it may have been made.
 */
export async function restOfChange<T>(rest: T): Promise<Awaited<T>> {
  try {
    return await rest;
  } catch (thrown) {
    if (!hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
    const isFull = messageOf(thrown).startsWith(NO_SPACE_LEFT);
    throw isFull ? databaseFull(thrown, 'unknown') : databaseUnavailable(thrown, 'unknown');
  }
}

const NO_SPACE_LEFT = 'The database has no space left.';

const NOTHING_CHANGED = 'Nothing was changed.';

const PERHAPS_CHANGED = 'It is unknown whether the change was made: check before repeating it.';
