// The rows of connections: one for each owner, issuer and resource.

import Type from 'typebox';
import { type AccountConnection, SHARED } from '../domain/instances/account-connection.ts';
import { type Clock, DAY_MS } from '../domain/time/clock.ts';
import { oauthKey, prolonged, readUndamaged, rowReader } from '../persistence/oauth-rows.ts';
import type { OAuthFilter, OAuthRow, OAuthStore } from '../persistence/oauth-store.ts';
import { untilTaken } from '../persistence/until-taken.ts';
import type { OAuthBackend } from './oauth-backends.ts';

export interface StoredAccountConnection {
  readonly owner: string;
  readonly issuer: string;
  readonly resource: string;
  /** The endpoint by which it was made, for requests to its authorization server. */
  readonly endpoint: string;
  readonly clientId: string;
  /** The secret of a client that the gateway has registered. */
  readonly clientSecret?: string;
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  /** The end of the access token, in ms since 1970; undefined when it is used until a 401. */
  readonly expiresAtMs?: number | undefined;
  /** The time from which on the token is renewed before it is sent, in ms since 1970. */
  readonly dueAtMs?: number | undefined;
  readonly scopes: readonly string[];
  /** The scopes to ask for when the account is connected again. */
  readonly wanted?: readonly string[] | undefined;
  /** The reason why it has to be connected again, as a clause. It has no tokens then. */
  readonly ended?: string | undefined;
  /**
   * The lease of the node that refreshes it, which ends at `untilMs` by the wall clock. `tries`: leases in a row that
   * have ended without a new token. `life`: that of the node, if it has one.
   */
  readonly lease?:
    | { readonly untilMs: number; readonly tries: number; readonly life?: string | undefined }
    | undefined;
}

const text = Type.String();
const optionalText = Type.Optional(text);

const readValue: (row: OAuthRow) => StoredAccountConnection = rowReader(
  Type.Object({
    owner: text,
    issuer: text,
    resource: text,
    endpoint: text,
    clientId: text,
    clientSecret: optionalText,
    accessToken: text,
    refreshToken: optionalText,
    expiresAtMs: Type.Optional(Type.Number()),
    dueAtMs: Type.Optional(Type.Number()),
    scopes: Type.Array(text),
    wanted: Type.Optional(Type.Array(text)),
    ended: optionalText,
    lease: Type.Optional(Type.Object({ untilMs: Type.Number(), tries: Type.Number(), life: optionalText })),
  }),
);

/** The nodes of the deployment, each in one of its lives. */
export interface Lives {
  /** The present life of this node. */
  readonly life: () => string | undefined;
  /** True once it is certain that the process of the life has ended. */
  readonly hasEnded: (life: string) => boolean;
}

/** A connection as it was read. */
export interface ReadAccountConnection {
  readonly key: string;
  readonly version: number;
  readonly connectedAt: string;
  /** The time from which on the sweep deletes it. */
  readonly expiresAt?: string | undefined;
  readonly value: StoredAccountConnection;
}

/** The most connections of one list, the newest. */
const MAX_LISTED = 1_000;
/** The time after which the sweep deletes a connection that was ended, or not used, in ms. A use is written once a day. */
const KEPT_MS = 180 * DAY_MS;

/** The key of the row of a connection. `owner`: the id of a user, or SHARED. */
export function accountConnectionKey(
  owner: string,
  { resource, server }: Pick<OAuthBackend, 'resource' | 'server'>,
): string {
  return oauthKey('connection', JSON.stringify([owner, server.issuer, resource]));
}

/** Reads and writes the rows of connections. A row has the tokens; the store encrypts it. Source: ADR 201, ADR 218. */
export class AccountConnections {
  readonly #clock: Clock;
  readonly #store: OAuthStore;
  /** Called for each damaged row of a list. */
  readonly #warn: (line: string) => void;

  constructor(clock: Clock, store: OAuthStore, warn: (line: string) => void) {
    this.#clock = clock;
    this.#store = store;
    this.#warn = warn;
  }

  async find(key: string): Promise<ReadAccountConnection | undefined> {
    const [row] = await this.#store.find('connection', [key]);
    return row === undefined ? undefined : readAccountConnection(row);
  }

  /** The connections, newest first, without damaged ones. `owner`: only those of this one. */
  async list(owner?: string): Promise<readonly ReadAccountConnection[]> {
    return readUndamaged(
      await this.#store.list(filterOf(owner), MAX_LISTED),
      readAccountConnection,
      this.#warn,
    );
  }

  /** Stores a new connection in place of any other one. The function deletes it again, unless another one was stored since. */
  async save(key: string, value: StoredAccountConnection): Promise<() => Promise<void>> {
    const createdAt = this.#now;
    await this.#store.save({ ...this.#rowOf(key, value), createdAt });
    return async () => {
      await untilTaken(async () => {
        const read = await this.find(key);
        if (read?.connectedAt !== createdAt) return null;
        return (await this.#store.delete('connection', [key], read.version)) || undefined;
      });
    };
  }

  /** The connection as it is stored; undefined when another node has changed it since the read. */
  async replace(
    before: ReadAccountConnection,
    value: StoredAccountConnection,
  ): Promise<ReadAccountConnection | undefined> {
    const { key, version, connectedAt, expiresAt } = before;
    const row = { ...this.#rowOf(key, value, expiresAt), createdAt: connectedAt };
    const isMine = await this.#store.replace(row, version);
    return isMine ? { ...before, version: version + 1, expiresAt: row.expiresAt, value } : undefined;
  }

  /** Keeps a connection longer, because its token is used. Never rejects. */
  async used(read: ReadAccountConnection): Promise<void> {
    const endsAtMs = Date.parse(read.expiresAt ?? '1970-01-01');
    if (endsAtMs >= this.#clock.wall() + KEPT_MS - DAY_MS) return;
    await this.replace(read, read.value).catch(() => undefined); // the next use tries again
  }

  /**
   * Deletes a connection by the id that the API shows. `owner`: only one of this owner. Undefined when there is none; `read` is
   * undefined when the row is damaged.
   */
  async end(
    id: string,
    owner?: string,
  ): Promise<{ readonly key: string; readonly read?: ReadAccountConnection | undefined } | undefined> {
    if (!SHOWN_ID.test(id)) return undefined;
    const filter = { ...filterOf(owner), keyPrefix: id };
    const ended = await untilTaken(async () => {
      const [row] = await this.#store.list(filter, 1);
      if (row === undefined) return null;
      const { kind, key, version } = row;
      // Tokens that were renewed since it was read would be lost, and not be revoked.
      if ((await this.#store.delete(kind, [key], version)) === 0) return undefined;
      const [read] = readUndamaged([row], readAccountConnection, this.#warn);
      return { key, read };
    });
    return ended ?? undefined;
  }

  get #now(): string {
    return new Date(this.#clock.wall()).toISOString();
  }

  #rowOf(
    key: string,
    value: StoredAccountConnection,
    before?: string,
  ): Omit<OAuthRow, 'version' | 'createdAt'> {
    return {
      kind: 'connection',
      key,
      value: JSON.stringify(value),
      // The rows of a user end with the user.
      ...(value.owner === SHARED ? {} : { userId: value.owner }),
      expiresAt: prolonged(before, this.#clock.wall() + KEPT_MS),
    };
  }
}

/** The connections of an owner, or all of them. */
function filterOf(owner: string | undefined): OAuthFilter {
  return { kind: 'connection', userId: owner === SHARED ? null : owner };
}

function readAccountConnection(row: OAuthRow): ReadAccountConnection {
  const { key, version, createdAt, expiresAt } = row;
  return { key, version, connectedAt: createdAt, expiresAt, value: readValue(row) };
}

/** The connection as the API shows it, without tokens. */
export function shownAccountConnection({
  key,
  connectedAt,
  value,
}: ReadAccountConnection): AccountConnection {
  const { owner, issuer, resource, scopes, ended, expiresAtMs } = value;
  return {
    id: key.slice(0, SHOWN_DIGITS),
    owner,
    issuer,
    resource,
    scopes,
    connectedAt,
    state: ended === undefined ? 'connected' : 'ended',
    reason: ended ?? null,
    expiresAt: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
  };
}

/** The number of characters of the key that the API shows as the id: enough to tell connections apart. */
const SHOWN_DIGITS = 32;
const SHOWN_ID = new RegExp(`^[0-9a-f]{${SHOWN_DIGITS}}$`);
