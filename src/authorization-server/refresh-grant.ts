// The grant type refresh_token, in place of the library's: a refresh token is used once over all nodes. The answer
// of the token just replaced may be asked for again for 30 s, because answers get lost and clients refresh from
// two tabs at once; any other reuse ends the grant. A token whose answer was never stored may be used again after
// that time. Nodes compare times of the database's clock, if it has one; the node that has taken a token goes by its
// own monotonic one. Source: ADR 204, ADR 332.

import { errors, type KoaContextWithOIDC, type Provider } from 'oidc-provider';
import Type from 'typebox';
import { grantOf, rowOfGrant } from '../auth/grants/grant-rows.ts';
import type { Grant } from '../domain/accounts/grant.ts';
import { decryptBytes, encryptBytes, encryptionKeyFrom } from '../domain/encrypted-bytes.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { DAY_MS, isRecent, sleep } from '../domain/time/clock.ts';
import { oauthKey, rowReader } from '../persistence/oauth-rows.ts';
import { MAX_OAUTH_ROWS, type OAuthRow, type OAuthStore } from '../persistence/oauth-store.ts';
import type { Store } from '../persistence/store.ts';
import type { AdapterOptions } from './adapter.ts';

/** The time for which the answer of a replaced token may be asked for again. */
const REPEATED_MS = 30_000;
/**
 * The longest wait for the answer to an equal request, and the first and the longest time between two looks: looks at
 * a fixed pace by many clients would hold up the requests for which they wait.
 */
const WAIT_MS = 10_000;
const [FIRST_LOOK_MS, MAX_LOOK_MS] = [25, 800];
const MAX_TAKEN = 10_000;

export interface RefreshOptions extends Pick<AdapterOptions, 'clock' | 'store' | 'clients' | 'onReplay'> {
  readonly serverTimeMs: Store['serverTimeMs'];
  readonly isActive: (userId: string) => Promise<boolean>;
  /** Reads the rights of the user again where a provider decides them. */
  readonly confirm: (userId: string) => Promise<void>;
  /** The resource in its one spelling. */
  readonly normalise: (resource: string) => string | undefined;
  /** The part of the library's configuration that signs tokens. */
  readonly resourceServer: () => Promise<ResourceServerInfo>;
}

interface ResourceServerInfo {
  readonly scope: string;
  readonly accessTokenFormat: 'jwt';
  readonly accessTokenTTL: number;
  readonly jwt: { readonly sign: { readonly alg: 'ES256'; readonly kid: string } };
}

interface Stored {
  readonly clientId: string;
  readonly accountId: string;
  readonly scope: string;
  readonly exp: number;
  readonly rotations?: number;
  /** Encrypted with a key that only the holder of the replaced token has. */
  readonly answer?: string;
  /** Key of the row of its successor. */
  readonly successor?: string;
}

const readStored: (row: OAuthRow) => Stored = rowReader(
  Type.Object({
    clientId: Type.String(),
    accountId: Type.String(),
    scope: Type.String(),
    exp: Type.Number(),
    rotations: Type.Optional(Type.Number()),
    answer: Type.Optional(Type.String()),
    successor: Type.Optional(Type.String()),
  }),
);

export function refreshHandler(provider: Provider, options: RefreshOptions) {
  const refresh = new RefreshGrantType(provider, options);
  return (ctx: KoaContextWithOIDC): Promise<void> => refresh.answer(ctx);
}

/** A request that may have new tokens. */
interface Admitted {
  readonly client: NonNullable<KoaContextWithOIDC['oidc']['client']>;
  readonly token: string;
  readonly row: OAuthRow;
  readonly stored: Stored;
  readonly grant: Grant;
  readonly grantRow: OAuthRow;
  /** The scopes of the new access token. */
  readonly scopes: readonly string[];
}

class RefreshGrantType {
  readonly #provider: Provider;
  readonly #options: RefreshOptions;
  /** When the tokens that were taken here were taken, by the monotonic clock: the wall clock may have been set since. */
  readonly #taken = new LruMap<{ readonly consumedAt: string; readonly atMs: number }>(MAX_TAKEN);

  constructor(provider: Provider, options: RefreshOptions) {
    this.#provider = provider;
    this.#options = options;
  }

  async answer(ctx: KoaContextWithOIDC): Promise<void> {
    const { store, clock } = this.#options;
    const { client, params = {} } = ctx.oidc;
    const token = params.refresh_token;
    if (client === undefined || typeof token !== 'string' || token === '')
      throw new errors.InvalidRequest("missing required parameter(s) 'refresh_token'");
    const [row] = await store.find('refresh', [oauthKey('refresh', token)]);
    if (row === undefined) throw new errors.InvalidGrant('refresh token not found');
    const stored = readStored(row);
    if (stored.clientId !== client.clientId) throw new errors.InvalidGrant('client mismatch');
    const [grantRow] = await store.find('grant', [oauthKey('grant', row.grantId ?? '')]);
    const grant = grantRow && grantOf(grantRow);
    if (grantRow === undefined || grant === undefined || Date.parse(grant.expiresAt) <= clock.wall())
      throw new errors.InvalidGrant('the grant has ended');
    const isUsed = row.consumedAt !== undefined && !(await this.#isAbandoned(row));
    if (!isUsed) await this.#options.confirm(grant.userId);
    if (!(await this.#options.isActive(grant.userId)))
      throw new errors.InvalidGrant('the account cannot be used');
    if (isUsed) {
      ctx.body = await this.#repeated(ctx, token, row);
      return;
    }
    const scopes = this.#admittedScopes(params, stored, grant);
    ctx.body = await this.#renew(ctx, { client, token, row, stored, grant, grantRow, scopes });
  }

  /** The scopes of the new access token. Throws for a token or parameters that get none. */
  #admittedScopes(
    params: Readonly<Record<string, unknown>>,
    stored: Stored,
    grant: Grant,
  ): readonly string[] {
    const { normalise, clock } = this.#options;
    if (stored.exp * 1_000 <= clock.wall()) throw new errors.InvalidGrant('refresh token is expired');
    const wanted = requestedScopes(params.scope);
    const granted = stored.scope.split(' ');
    if (wanted?.some((scope) => !granted.includes(scope)))
      throw new errors.InvalidScope('only scopes of the grant can be asked for', wanted.join(' '));
    if (params.resource !== undefined && normalise(String(params.resource)) !== grant.resource)
      throw new errors.InvalidTarget();
    return wanted ?? granted;
  }

  /** New tokens, which the row stores as its answer; the answer of another request that was first. */
  async #renew(ctx: KoaContextWithOIDC, admitted: Admitted): Promise<object> {
    const { store, clients, clock } = this.#options;
    const { token, row, stored, grant, grantRow } = admitted;
    const consumedAt = new Date(await this.#timeMs()).toISOString();
    if (!(await this.#take(row, consumedAt))) return this.#answerOfOther(ctx, token);
    const rotations = (stored.rotations ?? 0) + 1;
    const body = await this.#newTokens(admitted, rotations);
    if (rotations % KEPT === 0) await forgetOldest(store, grant.id);
    // The grant ends with its last token. A grant that has ended meanwhile stays ended.
    // A clock that is behind for a while shortens no life: all would end when it is right again.
    const idleEndMs = Math.max(clock.wall() + IDLE_MS, Date.parse(grant.expiresAt));
    const endMs = Math.min(Date.parse(grant.createdAt) + MAX_MS, idleEndMs);
    await store.replace(rowOfGrant({ ...grant, expiresAt: new Date(endMs).toISOString() }), grantRow.version);
    await clients.used(grant.clientId);
    const answer = encrypted(token, JSON.stringify(body));
    const value: Stored = { ...stored, answer, successor: oauthKey('refresh', body.refresh_token) };
    // Last: from then on there is an answer. `consume` leaves the version.
    const version = row.consumedAt === undefined ? row.version : row.version + 1;
    const isStored = await store.replace({ ...row, consumedAt, value: JSON.stringify(value) }, version);
    return isStored ? body : this.#answerOfOther(ctx, token);
  }

  async #newTokens({ client, stored, grant, scopes }: Admitted, rotations: number) {
    const provider = this.#provider;
    const common = {
      client,
      accountId: grant.userId,
      grantId: grant.id,
      gty: 'authorization_code refresh_token',
    };
    const successor = new provider.RefreshToken({
      ...common,
      resource: grant.resource,
      scope: stored.scope,
      rotations,
    });
    const nowSeconds = Math.floor(this.#options.clock.wall() / 1_000);
    successor.exp = Math.max(nowSeconds + successor.expiration, stored.exp);
    const refreshToken = await successor.save();
    const access = new provider.AccessToken(common);
    const info = await this.#options.resourceServer();
    access.resourceServer = new provider.ResourceServer(grant.resource, info);
    access.scope = scopes.join(' ');
    return {
      access_token: await access.save(),
      expires_in: access.expiration,
      refresh_token: refreshToken,
      scope: access.scope,
      token_type: 'Bearer',
    };
  }

  async #answerOfOther(ctx: KoaContextWithOIDC, token: string): Promise<object> {
    const [present] = await this.#options.store.find('refresh', [oauthKey('refresh', token)]);
    if (present === undefined) throw new errors.InvalidGrant('the grant has ended');
    return this.#repeated(ctx, token, present);
  }

  /** The answer that this token got before. */
  async #repeated(ctx: KoaContextWithOIDC, token: string, row: OAuthRow): Promise<object> {
    const { store, clock } = this.#options;
    if (await this.#isLate(row)) return this.#endReplayed(row.grantId);
    const untilMs = clock.now() + WAIT_MS;
    let lookMs = FIRST_LOOK_MS;
    for (
      let present: OAuthRow | undefined = row;
      present !== undefined;
      [present] = await store.find('refresh', [row.key])
    ) {
      const { answer, successor } = readStored(present);
      if (answer !== undefined && successor !== undefined) {
        const [next] = await store.find('refresh', [successor]);
        if (next === undefined || next.consumedAt !== undefined) return this.#endReplayed(row.grantId);
        return JSON.parse(decrypted(token, answer)) as object;
      }
      if (clock.now() >= untilMs) break;
      await sleep(clock, lookMs);
      lookMs = Math.min(lookMs * 2, MAX_LOOK_MS);
    }
    ctx.set('Retry-After', '1');
    const late = new errors.TemporarilyUnavailable('the same request is being answered');
    late.status = 503;
    late.statusCode = 503;
    throw late;
  }

  async #endReplayed(grantId: string | undefined): Promise<never> {
    const { store, onReplay } = this.#options;
    if (grantId !== undefined && (await store.end({ grantId }))) onReplay(grantId, 'refresh token');
    throw new errors.InvalidGrant('refresh token already used');
  }

  /** True for one caller on all nodes. */
  async #take(row: OAuthRow, at: string): Promise<boolean> {
    const { store, clock } = this.#options;
    const atMs = clock.now();
    const isTaken =
      row.consumedAt === undefined
        ? await store.consume('refresh', row.key, at)
        : await store.replace({ ...row, consumedAt: at }, row.version);
    if (isTaken) this.#taken.set(row.key, { consumedAt: at, atMs });
    return isTaken;
  }

  /** The time when a token is taken, by a clock that all nodes share: another node may be ahead by more than REPEATED_MS. */
  async #timeMs(): Promise<number> {
    return (await this.#options.serverTimeMs()) ?? this.#options.clock.wall();
  }

  async #isLate({ key, consumedAt }: OAuthRow): Promise<boolean> {
    const taken = this.#taken.get(key);
    if (taken !== undefined && taken.consumedAt === consumedAt)
      return this.#options.clock.now() - taken.atMs >= REPEATED_MS;
    return consumedAt !== undefined && !isRecent(Date.parse(consumedAt), REPEATED_MS, await this.#timeMs());
  }

  /** True when no answer was stored, so none was sent: the process has ended meanwhile, or the database did not answer. */
  async #isAbandoned(row: OAuthRow): Promise<boolean> {
    return readStored(row).answer === undefined && this.#isLate(row);
  }
}

/**
 * Replaced tokens of one grant that are remembered, of which a second use ends the grant: a loop of refreshes must not fill the
 * database.
 */
const KEPT = MAX_OAUTH_ROWS;

/** Deletes all but KEPT replaced tokens. At most as many again are added until the next call. */
async function forgetOldest(store: OAuthStore, grantId: string): Promise<void> {
  const rows = await store.list({ kind: 'refresh', grantId }, 2 * KEPT);
  await store.delete(
    'refresh',
    rows.slice(KEPT).map(({ key }) => key),
  );
}

const IDLE_MS = 31 * DAY_MS;
const MAX_MS = 180 * DAY_MS;

/** The result is undefined when nothing in particular is asked for; scopes of OpenID clients are not ours. */
export function requestedScopes(written: unknown): readonly string[] | undefined {
  const scopes =
    typeof written === 'string' ? written.split(' ').filter((scope) => scope !== '' && !isHabit(scope)) : [];
  return scopes.length === 0 ? undefined : scopes;
}

/** True for scopes that SDKs send by habit. They mean nothing here, and break nothing. */
export function isHabit(scope: string): boolean {
  return ['openid', 'offline_access', 'profile', 'email'].includes(scope);
}

const LABEL = 'stagedoor repeated answer';

function encrypted(token: string, text: string): string {
  return encryptBytes(encryptionKeyOf(token), text, LABEL).toString('base64url');
}

function decrypted(token: string, text: string): string {
  return decryptBytes(encryptionKeyOf(token), Buffer.from(text, 'base64url'), LABEL);
}

function encryptionKeyOf(token: string): Uint8Array {
  return encryptionKeyFrom(token, LABEL);
}
