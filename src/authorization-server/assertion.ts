// The grant type of identity assertions (ID-JAG): a company's issuer says that a client may act for one of its
// people, and the client exchanges that for an access token, without a browser. Each assertion is used once over
// all nodes. Its token belongs to a grant, which later assertions for the same prolong. Source: RFC 7523,
// draft-ietf-oauth-identity-assertion-authz-grant, ADR 224.

import { randomUUID } from 'node:crypto';
import { errors, type KoaContextWithOIDC, type Provider } from 'oidc-provider';
import type { AuditLog } from '../auth/audit/audit-log.ts';
import { grantOf, rowOfGrant } from '../auth/grants/grant-rows.ts';
import type { Assertion, AssertionUser, Issuers } from '../auth/issuers/issuers.ts';
import { CLIENT_SCOPES, type ResourcePath, type Scope } from '../domain/accounts/account.ts';
import type { Grant } from '../domain/accounts/grant.ts';
import { nameWithClient } from '../domain/accounts/principal.ts';
import { opens } from '../domain/accounts/resource.ts';
import { asGatewayError } from '../domain/errors/errors.ts';
import { clientKeyOf, oauthKey } from '../persistence/oauth-rows.ts';
import type { AdapterOptions } from './adapter.ts';
import type { ClientRecord } from './clients/client-record.ts';
import type { RefreshOptions } from './refresh-grant.ts';
import { requestedScopes } from './refresh-grant.ts';

/**
 * Grants stay so long after their last token: many clients renew a token only after a 401, and their sessions
 * belong to the grant.
 */
const REST_MS = 5 * 60_000;
/** The most grants of one subject and client: one for each resource and choice of scopes. */
const MAX_GRANTS = 100;

export interface AssertionOptions
  extends Pick<AdapterOptions, 'clock' | 'store' | 'clients' | 'tokenSeconds' | 'causedBy'>,
    Pick<RefreshOptions, 'resourceServer'> {
  /** If it is undefined, no assertion is accepted. */
  readonly assertions?: Pick<Issuers, 'readAssertion'> | undefined;
  readonly audit: Pick<AuditLog, 'record'>;
  readonly issuer: string;
  /** The path of a resource of this gateway. */
  readonly pathOf: (resource: string) => ResourcePath | undefined;
  /** The request that is being served. */
  readonly request: () => { readonly address: string; readonly requestId: string };
}

export function assertionHandler(provider: Provider, options: AssertionOptions) {
  const exchange = new AssertionExchange(provider, options);
  return (ctx: KoaContextWithOIDC): Promise<void> => exchange.serve(ctx);
}

class AssertionExchange {
  readonly #provider: Provider;
  readonly #options: AssertionOptions;

  constructor(provider: Provider, options: AssertionOptions) {
    this.#provider = provider;
    this.#options = options;
  }

  async serve(ctx: KoaContextWithOIDC): Promise<void> {
    const { clients, causedBy } = this.#options;
    const { client, params = {} } = ctx.oidc;
    const record = client && (await clients.find(client.clientId, causedBy(), true));
    if (client === undefined || record === undefined || client.clientAuthMethod === 'none')
      throw new errors.UnauthorizedClient('a client that authenticates may exchange assertions');
    const assertion = await this.#read(params.assertion, client.clientId);
    const wanted = {
      resource: resourceOf(params.resource, assertion, this.#options),
      scopes: scopesFor(params.scope, assertion, record),
    };
    await this.#useUp(assertion);
    const user = await assertion.user().catch(refuse);
    const grant = (await this.#prolonged(user, record, wanted)) ?? (await this.#made(user, record, wanted));
    ctx.body = await this.#tokenOf(grant, client);
    await clients.used(grant.clientId);
  }

  async #read(token: unknown, clientId: string): Promise<Assertion> {
    const { assertions } = this.#options;
    if (assertions === undefined) throw new errors.UnsupportedGrantType();
    if (typeof token !== 'string' || token === '')
      throw new errors.InvalidRequest("missing required parameter(s) 'assertion'");
    return assertions.readAssertion(token, clientId).catch(refuse);
  }

  /** Marks the assertion as used, which is possible once over all nodes. */
  async #useUp(assertion: Assertion): Promise<void> {
    const { store, clock } = this.#options;
    const createdAt = new Date(clock.wall()).toISOString();
    const expiresAt = new Date(assertion.expiresAtMs).toISOString();
    const use = { kind: 'assertion', key: oauthKey('assertion', assertion.id), createdAt } as const;
    if (!(await store.replace({ ...use, expiresAt, value: '' }, 0)))
      throw new errors.CustomOIDCProviderError('invalid_grant', 'The assertion was used before');
  }

  /** The present grant for the same; undefined when there is none. */
  async #prolonged(
    { userId, subject }: AssertionUser,
    client: ClientRecord,
    wanted: Wanted,
  ): Promise<Grant | undefined> {
    const { store } = this.#options;
    const { at, expiresAt } = this.#times();
    const filter = { kind: 'grant', userId, clientKey: clientKeyOf(client.id) } as const;
    for (const row of await store.list(filter, MAX_GRANTS)) {
      const present = grantOf(row);
      if (present === undefined || present.expiresAt <= at || !isFor(present, wanted)) continue;
      if (present.isAsserted !== isAssertedOf(subject)) continue;
      const prolonged = { ...present, subject, expiresAt };
      // The grant may have ended meanwhile.
      if (await store.replace(rowOfGrant(prolonged), row.version)) return prolonged;
    }
    return undefined;
  }

  async #made(
    { userId, subject, actor, name }: AssertionUser,
    client: ClientRecord,
    wanted: Wanted,
  ): Promise<Grant> {
    const { store, audit, request } = this.#options;
    const { at, expiresAt } = this.#times();
    const grant: Grant = {
      id: randomUUID(),
      userId,
      subject,
      isAsserted: isAssertedOf(subject),
      clientId: client.id,
      clientName: client.name,
      ...wanted,
      lists: client.lists,
      createdAt: at,
      expiresAt,
    };
    await store.save(rowOfGrant(grant));
    const { address, requestId } = request();
    audit.record({
      actor,
      actorName: nameWithClient(name, client.name),
      action: 'POST /oauth/token',
      subject: `/auth/grants/${grant.id} for ${client.name} (${client.id})`,
      status: 201,
      address,
      requestId,
    });
    return grant;
  }

  /** The present time, and the end of a grant whose token is issued now. */
  #times(): { readonly at: string; readonly expiresAt: string } {
    const { clock, tokenSeconds } = this.#options;
    const nowMs = clock.wall();
    const endMs = nowMs + tokenSeconds * 1_000 + REST_MS;
    return { at: new Date(nowMs).toISOString(), expiresAt: new Date(endMs).toISOString() };
  }

  /** The body of the answer. */
  async #tokenOf(grant: Grant, client: NonNullable<KoaContextWithOIDC['oidc']['client']>) {
    const provider = this.#provider;
    const access = new provider.AccessToken({
      client,
      accountId: grant.userId,
      grantId: grant.id,
      gty: 'jwt_bearer',
    });
    const resourceServer = await this.#options.resourceServer();
    access.resourceServer = new provider.ResourceServer(grant.resource, resourceServer);
    access.scope = grant.scopes.join(' ');
    return {
      access_token: await access.save(),
      expires_in: access.expiration,
      scope: access.scope,
      token_type: 'Bearer',
    };
  }
}

/** The field of a grant: true for an account, absent for a subject without one. */
function isAssertedOf(subject: AssertionUser['subject']): true | undefined {
  return subject === undefined ? true : undefined;
}

/** Throws it as an error of OAuth; a fault of the gateway stays one. */
function refuse(thrown: unknown): never {
  const { code, message } = asGatewayError(thrown);
  if (code === 'ISSUER_UNAVAILABLE') {
    const later = new errors.TemporarilyUnavailable('the keys of the issuer cannot be read');
    later.status = 503;
    later.statusCode = 503;
    throw later;
  }
  if (code === 'INTERNAL_ERROR' || code === 'DATABASE_UNAVAILABLE') throw thrown;
  throw new errors.CustomOIDCProviderError('invalid_grant', message);
}

type Wanted = Pick<Grant, 'resource' | 'scopes'>;

function isFor({ resource, scopes }: Grant, wanted: Wanted): boolean {
  return resource === wanted.resource && scopes.join() === wanted.scopes.join();
}

/** The resource that is asked for, else the one that the assertion names, else the gateway; both must allow it. */
function resourceOf(
  asked: unknown,
  { resources }: Assertion,
  { pathOf, issuer }: Pick<AssertionOptions, 'pathOf' | 'issuer'>,
): string {
  const [only, ...others] = resources ?? [''];
  const path = asked === undefined ? (others.length === 0 ? only : undefined) : pathOf(String(asked));
  const isNamed = (each: ResourcePath) => path !== undefined && opens(each, path);
  if (path === undefined || (resources !== undefined && !resources.some(isNamed)))
    throw new errors.InvalidTarget();
  return `${issuer}${path}`;
}

/** The scopes that the request, the assertion, the role and the client have in common. */
function scopesFor(written: unknown, { scopes }: Assertion, client: ClientRecord): readonly Scope[] {
  const asked = requestedScopes(written);
  const common = scopes
    .filter((scope) => asked === undefined || asked.includes(scope))
    .filter((scope) => CLIENT_SCOPES.includes(scope) || client.scopes.includes(scope));
  if (common.length === 0)
    throw new errors.InvalidScope('none of the scopes is available', String(written ?? ''));
  return common;
}
