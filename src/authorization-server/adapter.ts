// The records of the library as rows of the store. Ids are stored as SHA-256, and no value contains its id. An action that may
// happen once over all nodes is one conditional update; the second try ends the grant. Source: ADR 201.

import { type Adapter, type AdapterPayload, errors } from 'oidc-provider';
import type { SignedClaims } from '../auth/grants/access-tokens.ts';
import { grantOf, rowOfGrant } from '../auth/grants/grant-rows.ts';
import type { Grant } from '../domain/accounts/grant.ts';
import { type Clock, DAY_MS, HOUR_MS } from '../domain/time/clock.ts';
import { clientKeyOf, oauthKey } from '../persistence/oauth-rows.ts';
import type { OAuthKind, OAuthStore } from '../persistence/oauth-store.ts';
import { untilDatabaseAnswers } from '../persistence/until-database-answers.ts';
import { DocumentFault } from './clients/client-documents.ts';
import { metadataOf } from './clients/client-record.ts';
import type { Clients } from './clients/clients.ts';
import { rowOfUserCode } from './pages/device-pages.ts';
import { readPayload } from './payload.ts';

export interface AdapterOptions {
  readonly clock: Clock;
  readonly store: OAuthStore;
  readonly clients: Clients;
  /** Life of an access token. */
  readonly tokenSeconds: number;
  /** The network of the request that is being served. */
  readonly causedBy: () => string;
  /** The access token that the request being served revokes: it is signed, and not kept anywhere. */
  readonly revoked: () => SignedClaims | undefined;
  /** Called when something was used twice that may be used once. */
  readonly onReplay: (grantId: string, what: string) => void;
}

/** Rows by the name of a model of the library. Others are not kept: our own sign-in is its session. */
const KINDS: Readonly<Record<string, OAuthKind>> = {
  Interaction: 'interaction',
  AuthorizationCode: 'code',
  RefreshToken: 'refresh',
  DeviceCode: 'device',
};

/** A code is remembered longer than it is valid, so that its replay is noticed. */
const REMEMBERED_MS: Readonly<Partial<Record<OAuthKind, number>>> = {
  code: HOUR_MS,
  refresh: DAY_MS,
};
/** A day more than its first refresh token; each refresh prolongs it: refresh-grant.ts. */
const GRANT_MS = 31 * DAY_MS;

export function adapterFor(options: AdapterOptions): (model: string) => Adapter {
  return (model) => {
    if (model === 'Client') return { ...NOTHING, find: (id) => findClient(id, options) };
    if (model === 'AccessToken') return { ...NOTHING, find: async (id) => revokedPayload(id, options) };
    if (model === 'Grant') return { ...NOTHING, ...grantAdapter(options) };
    if (model === 'ReplayDetection')
      return { ...NOTHING, upsert: (id, _, seconds = 0) => use(id, seconds, options) };
    const kind = KINDS[model];
    return kind === undefined ? NOTHING : { ...NOTHING, ...rowAdapter(kind, options) };
  };
}

const NOTHING: Adapter = {
  upsert: async () => {},
  find: async () => undefined,
  findByUserCode: async () => undefined,
  findByUid: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
  revokeByGrantId: async () => {},
};

function rowAdapter(kind: OAuthKind, options: AdapterOptions): Partial<Adapter> {
  const { store, clock } = options;
  return {
    upsert: async (id, { jti: _, userCode, ...payload }, seconds = 0) => {
      const nowMs = clock.wall();
      if (userCode !== undefined)
        await store.save(rowOfUserCode(userCode, oauthKey(kind, id), nowMs, seconds));
      const row = {
        kind,
        key: oauthKey(kind, id),
        grantId: payload.grantId,
        userId: payload.accountId,
        clientKey: payload.clientId === undefined ? undefined : clientKeyOf(payload.clientId),
        createdAt: new Date(nowMs).toISOString(),
        expiresAt: new Date(nowMs + seconds * 1_000 + (REMEMBERED_MS[kind] ?? 0)).toISOString(),
        value: JSON.stringify(payload),
      };
      const write = async () => {
        // The others have random ids and never change.
        if (kind === 'interaction' || !(await store.replace(row, 0))) await store.save(row);
      };
      // The first token of a grant comes after its code was used, which could not be redeemed again.
      const isFirst = kind === 'refresh' && !String(payload.gty).endsWith('refresh_token');
      await (isFirst ? untilDatabaseAnswers(clock, write) : write());
    },
    find: async (id) => {
      const [row] = await store.find(kind, [oauthKey(kind, id)]);
      if (row === undefined) return undefined;
      if (kind === 'code' && row.consumedAt !== undefined) {
        await endReplayed(row.grantId, 'code', options);
        return undefined;
      }
      return { ...readPayload(row), jti: id };
    },
    consume: async (id) => {
      const key = oauthKey(kind, id);
      // First: if it fails, the code can be redeemed again, which would be a replay after it.
      if (kind === 'code' || kind === 'device') await keepGrant(kind, key, options);
      if (await store.consume(kind, key, new Date(clock.wall()).toISOString())) return;
      const [row] = await store.find(kind, [key]);
      await endReplayed(row?.grantId, kind, options);
      throw new errors.InvalidGrant('already used');
    },
    destroy: async (id) => {
      await store.delete(kind, [oauthKey(kind, id)]);
    },
  };
}

/**
 * Stores a grant. A grant whose code was never redeemed expires after some minutes; one with a token lives as long as the token,
 * or its refresh token.
 */
async function keepGrant(kind: 'code' | 'device', codeKey: string, options: AdapterOptions): Promise<void> {
  const { store, clients, causedBy, tokenSeconds, clock } = options;
  const [code] = await store.find(kind, [codeKey]);
  // Denied: there is no grant.
  if (kind === 'device' && code?.grantId === undefined) return;
  const [row] = await store.find('grant', [oauthKey('grant', code?.grantId ?? '')]);
  const grant = row && grantOf(row);
  if (row === undefined || grant === undefined) throw new errors.InvalidGrant('the grant has ended');
  const client = await clients.find(grant.clientId, causedBy());
  const endMs =
    client?.mayRefresh === true
      ? Date.parse(grant.createdAt) + GRANT_MS
      : clock.wall() + tokenSeconds * 1_000;
  const expiresAt = new Date(endMs).toISOString();
  const isKept = await store.replace(rowOfGrant({ ...grant, expiresAt }), row.version);
  // Else another redemption of the same code has kept it.
  if (!isKept && (await store.find('grant', [row.key])).length === 0)
    throw new errors.InvalidGrant('the grant has ended');
  await clients.used(grant.clientId);
}

/** Uses an assertion that a client signed to authenticate, which is possible once over all nodes. */
async function use(id: string, seconds: number, { store, clock: { wall } }: AdapterOptions): Promise<void> {
  const nowMs = wall();
  const isFirst = await store.replace(
    {
      kind: 'assertion',
      key: oauthKey('assertion', id),
      value: '',
      createdAt: new Date(nowMs).toISOString(),
      expiresAt: new Date(nowMs + seconds * 1_000).toISOString(),
    },
    0,
  );
  if (!isFirst) throw new errors.InvalidClientAuth('used before');
}

async function endReplayed(
  grantId: string | undefined,
  what: string,
  { store, onReplay }: AdapterOptions,
): Promise<void> {
  if (grantId !== undefined && (await store.end({ grantId }))) onReplay(grantId, what);
}

function grantAdapter({ store }: AdapterOptions): Partial<Adapter> {
  return {
    find: async (id) => {
      const [row] = await store.find('grant', [oauthKey('grant', id)]);
      const grant = row && grantOf(row);
      return grant && payloadOf(grant);
    },
    destroy: async (id) => {
      await store.end({ grantId: id });
    },
  };
}

function payloadOf({ id, userId, clientId, resource, scopes, createdAt, expiresAt }: Grant): AdapterPayload {
  return {
    jti: id,
    kind: 'Grant',
    accountId: userId,
    clientId,
    iat: Math.floor(Date.parse(createdAt) / 1_000),
    exp: Math.floor(Date.parse(expiresAt) / 1_000),
    resources: { [resource]: scopes.join(' ') },
  };
}

function revokedPayload(id: string, { revoked }: AdapterOptions): AdapterPayload | undefined {
  const token = revoked();
  if (token === undefined) return undefined;
  const { clientId, grantId, userId, expiresAtMs } = token;
  return { jti: id, kind: 'AccessToken', clientId, grantId, accountId: userId, exp: expiresAtMs / 1_000 };
}

async function findClient(
  id: string,
  { clients, causedBy }: AdapterOptions,
): Promise<AdapterPayload | undefined> {
  try {
    const client = await clients.find(id, causedBy());
    return client && metadataOf(client);
  } catch (thrown) {
    if (!(thrown instanceof DocumentFault)) throw thrown;
    const fault = new errors.InvalidClient(
      `The document of the client ${id} cannot be used: ${thrown.message}`,
    );
    fault.status = thrown.status;
    fault.statusCode = thrown.status;
    throw fault;
  }
}
