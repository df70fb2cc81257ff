// Rows of the table `oauth`: their keys and values, and a warning about rows that cannot be read.

import { hash } from 'node:crypto';
import type { StaticEncode, TSchema } from 'typebox';
import { compileShape } from '../domain/errors/validation.ts';
import type { OAuthKind, OAuthRow, OAuthStore } from './oauth-store.ts';
import { readRow, StoreOpenError } from './store-errors.ts';

/** The key of a row: a hash of kind and id, so that equal ids of two kinds are two rows. */
export function oauthKey(kind: OAuthKind, id: string): string {
  return hash('sha256', `${kind}:${id}`, 'hex');
}

/** The hash of a client id: see OAuthRow.clientKey. */
export function clientKeyOf(clientId: string): string {
  return oauthKey('client', clientId);
}

/** The end of a row that is used now, and kept until then: a clock that is behind for a while shortens no life. */
export function prolonged(expiresAt: string | undefined, untilMs: number): string {
  return new Date(Math.max(untilMs, Date.parse(expiresAt ?? '1970-01-01'))).toISOString();
}

/**
 * Makes a function that reads the JSON values of rows of one kind. It throws StoreOpenError for a damaged row: one whose value
 * has not the fields with which it was written. Further fields, of other releases, are kept. Users give the function the type
 * that they write, which the compiler compares with the schema.
 */
export function rowReader<S extends TSchema>(
  schema: S,
): (row: Pick<OAuthRow, 'kind' | 'key' | 'value' | 'grantId'>) => StaticEncode<S> {
  const shape = compileShape(schema, 'body');
  return (row) =>
    readRow(
      'oauth',
      () => nameOf(row),
      () => {
        const read: unknown = JSON.parse(row.value);
        if (shape.accepts(read)) return read;
        const fields = shape.issues(read).map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`);
        throw new TypeError(fields.join('; '));
      },
    );
}

/**
 * The name of a row: its kind and key; of a grant or a client also its id, by which an admin removes it. The ids of
 * all others are secrets, or hashes.
 */
function nameOf({ kind, key, value, grantId }: Pick<OAuthRow, 'kind' | 'key' | 'value' | 'grantId'>): string {
  const id = kind === 'client' ? idIn(value) : grantId;
  const isOwn = id !== undefined && (kind === 'client' || kind === 'grant') && oauthKey(kind, id) === key;
  return isOwn ? `${kind} ${key}, id ${id}` : `${kind} ${key}`;
}

function idIn(value: string): string | undefined {
  try {
    const { id } = Object(JSON.parse(value));
    return typeof id === 'string' ? id : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The values of the rows, read by `read`, which a rowReader made. A damaged row is left out, with a warning: the
 * others can be used.
 */
export function readUndamaged<T>(
  rows: readonly OAuthRow[],
  read: (row: OAuthRow) => T,
  warn: (line: string) => void,
): T[] {
  return rows.flatMap((row) => {
    try {
      return [read(row)];
    } catch (thrown) {
      if (!(thrown instanceof StoreOpenError)) throw thrown;
      warn(thrown.message);
      return [];
    }
  });
}

/** The number of newest rows of which a start says whether they can be read. */
const MAX_READ = 1_000;

/** A warning about rows that no key decrypts; undefined when all of the newest can be read. */
export async function unreadableRows(store: Pick<OAuthStore, 'count' | 'list'>): Promise<string | undefined> {
  const count = Math.min(await store.count({}), MAX_READ);
  const unread = count === 0 ? 0 : count - (await store.list({}, count)).length;
  if (unread === 0) return undefined;
  return (
    `${unread} of the newest ${count} rows of sign-ins, clients and connections cannot be read, because their key is lost: ` +
    'users sign in and connect again, or add the earlier key last to GATEWAY_ENCRYPTION_KEY'
  );
}
