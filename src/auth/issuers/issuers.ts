// Tokens of other authorization servers (`auth.issuers`), accepted as they are.

import { hash } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import type { JWTPayload, JWTVerifyOptions } from 'jose';
import {
  JWKSNoMatchingKey,
  JWSSignatureVerificationFailed,
  JWTClaimValidationFailed,
  JWTExpired,
} from 'jose/errors';
import { jwtVerify } from 'jose/jwt/verify';
import type { IssuerSetting } from '../../config/issuer-settings.ts';
import type { ProviderSetting } from '../../config/provider-settings.ts';
import {
  CLIENT_SCOPES,
  type DefinedRoles,
  isScope,
  type ResourcePath,
  type Scope,
} from '../../domain/accounts/account.ts';
import type { Grant, IssuedSubject } from '../../domain/accounts/grant.ts';
import {
  grantPrincipalId,
  issuerPrincipalId,
  type Principal,
  userPrincipalId,
} from '../../domain/accounts/principal.ts';
import type { GatewayAddress } from '../../domain/accounts/resource.ts';
import { invalidCredentials, tokenExpired } from '../../domain/errors/account-errors.ts';
import { GatewayError } from '../../domain/errors/errors.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { cutText } from '../../domain/text.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { ForeignTokens, Identity } from '../credential-verifier.ts';
import type { AccessClaims } from '../grants/access-tokens.ts';
import { issuedPrincipal, type RightsSettings, scopesOfRole } from '../principals.ts';
import { claimOf, groupsIn, roleForGroups } from './claims.ts';
import type { CompanyAccounts } from './company-accounts.ts';
import { type IssuerKeySet, IssuerKeys, SKEW_SECONDS } from './issuer-keys.ts';

/** Asymmetric ones only: no public key is ever a secret. */
const ALGORITHMS = [
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
];
/** Type and longest life of identity assertions. Source: draft-ietf-oauth-identity-assertion-authz-grant. */
const ASSERTION = 'oauth-id-jag+jwt';
const ASSERTION_SECONDS = 300;
const MAX_ID_LENGTH = 500;
/** Sessions stay open for so long after their last token, because many clients renew a token only after a 401, in ms. */
const SESSION_REST_MS = 5 * 60_000;
/** Names for people, in characters. */
const MAX_NAME_LENGTH = 100;
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

interface IssuersOptions {
  readonly clock: Clock;
  readonly settings: readonly IssuerSetting[];
  /** Identity providers whose assertions are for accounts here. Their tokens are not accepted. */
  readonly providers?: readonly ProviderSetting[] | undefined;
  /** The accounts of the providers. */
  readonly company?: (() => Pick<CompanyAccounts, 'vouched'> | undefined) | undefined;
  readonly address: GatewayAddress;
  readonly rightsSettings: RightsSettings;
  readonly warn: (line: string) => void;
  /** See IssuerKeys. */
  readonly lookup?: LookupFunction | undefined;
}

/** The user, or the subject without an account, that an identity assertion is about. */
export interface AssertionUser {
  /** User of the grant. Without an account: the id of the principal that the subject has with a token of the issuer. */
  readonly userId: string;
  /** The name of the caller in the audit log. */
  readonly actor: string;
  readonly name: string;
  /** The subject; set for a user without an account here. */
  readonly subject?: IssuedSubject;
}

/** An identity assertion of an issuer: this client may act for this subject. */
export interface Assertion {
  /** Unique among all assertions of all issuers. */
  readonly id: string;
  readonly expiresAtMs: number;
  /**
   * Makes the account of the user, or changes it, if the assertion says so: to be called once the assertion is used. Throws as
   * CompanyAccounts.signIn.
   */
  readonly user: () => Promise<AssertionUser>;
  /** The scopes that the role of its groups allows. */
  readonly scopes: readonly Scope[];
  /** Resources of this gateway that the token names; undefined: the token does not limit the resource. */
  readonly resources: readonly ResourcePath[] | undefined;
}

interface KnownIssuer<Setting = IssuerSetting> {
  readonly setting: Setting;
  readonly keys: IssuerKeys;
}

/**
 * Verifies the tokens of other authorization servers. Issuer and algorithm choose the verifier before any key is
 * chosen. Callers with such a token have no account here: their groups give the rights, and the token can only narrow
 * them. Identity assertions are read here, too. Loaded only where there are such issuers. Source: RFC 9068, ADR 207,
 * ADR 224.
 */
export class Issuers implements ForeignTokens {
  readonly #options: IssuersOptions;
  readonly #issuers: ReadonlyMap<string, KnownIssuer>;
  readonly #providers: ReadonlyMap<string, KnownIssuer<ProviderSetting>>;

  constructor(options: IssuersOptions) {
    this.#options = options;
    const { warn, settings, providers = [], clock, lookup } = options;
    const known = <Setting extends Pick<IssuerSetting, 'issuer' | 'jwksUri'>>(setting: Setting) =>
      [setting.issuer, { setting, keys: new IssuerKeys(setting, clock, warn, lookup) }] as const;
    this.#issuers = new Map(settings.map(known));
    this.#providers = new Map(providers.map(known));
  }

  /** True for a token that only another issuer can have signed, by its claim and its algorithm. Nothing is verified. */
  has(token: string): boolean {
    return this.#signerOf(token, this.#issuers) !== undefined;
  }

  /**
   * `isKnown`: the token was verified before. Throws INVALID_CREDENTIALS, TOKEN_EXPIRED; INSUFFICIENT_PERMISSIONS when no
   * group has a role; ISSUER_UNAVAILABLE when the keys cannot be read.
   */
  async verify(token: string, isKnown: boolean): Promise<Identity> {
    const found = this.#signerOf(token, this.#issuers);
    if (found === undefined) throw invalidCredentials();
    const { setting } = found;
    const { claims } = setting;
    // An identity assertion names the gateway, too, but only its client may use it, and once.
    if (typeOf(token) === ASSERTION) throw invalidCredentials();
    const payload = await this.#payloadOf(token, found, isKnown, { requiredClaims: ['aud', 'exp'] });
    const { countedId, name } = subjectOf(payload, setting);
    const audience = this.#audienceOf(payload.aud, setting);
    if (audience === undefined) throw invalidCredentials('The token is for another resource');
    const host = new URL(setting.issuer).host;
    const scopes = scopesOfClaim(payload, claims.scope);
    const client =
      claimOf(payload, claims.client ?? 'client_id') ??
      (claims.client === undefined ? payload.azp : undefined);
    const principal = issuedPrincipal(
      {
        id: countedId,
        name,
        clientName: typeof client === 'string' && shown(client) !== '' ? shown(client) : host,
      },
      {
        audience,
        scopes: scopes.length === 0 ? undefined : scopes,
        role: roleForGroups(
          groupsIn(payload, claims.groups),
          setting.roles,
          this.#options.rightsSettings.roles,
        ),
      },
      this.#options.rightsSettings,
    );
    const expiresAtMs = ((payload.exp ?? 0) + SKEW_SECONDS) * 1000;
    return { principal, expiresAtMs, status: { stamp: '', endsAtMs: expiresAtMs + SESSION_REST_MS } };
  }

  /**
   * The content of an identity assertion for this client. The caller has to see to it that it is used once. Throws
   * INVALID_CREDENTIALS, whose message names the fault; TOKEN_EXPIRED, INSUFFICIENT_PERMISSIONS, ISSUER_UNAVAILABLE as
   * `verify`; DATABASE_UNAVAILABLE.
   */
  async readAssertion(token: string, clientId: string): Promise<Assertion> {
    const provider = this.#signerOf(token, this.#providers);
    const found = provider ?? this.#signerOf(token, this.#issuers);
    if (found?.setting.idJag !== true)
      throw invalidCredentials('This gateway accepts no assertions of this issuer');
    const { issuer } = this.#options.address;
    if (typeOf(token) !== ASSERTION)
      throw invalidCredentials(`The type of the assertion is not ${ASSERTION}`);
    const payload = await this.#payloadOf(token, found, false, {
      requiredClaims: ['aud', 'exp', 'iat', 'jti', 'client_id'],
      maxTokenAge: ASSERTION_SECONDS,
    });
    const { aud, exp = 0, iat = 0, jti, client_id: client, scope, resource } = payload;
    if ([aud].flat().join() !== issuer)
      throw invalidCredentials(`The audience of the assertion is not ${issuer}`);
    if (exp - iat > ASSERTION_SECONDS)
      throw invalidCredentials(`The assertion is valid for longer than ${ASSERTION_SECONDS} s`);
    if (client !== clientId) throw invalidCredentials('The assertion is for another client');
    if (typeof jti !== 'string' || jti === '' || jti.length > MAX_ID_LENGTH)
      throw invalidCredentials('The assertion has no usable id');
    const { scopes: allowed, user } =
      provider === undefined
        ? rightsOfSubject(payload, (found as KnownIssuer).setting, this.#options.rightsSettings.roles)
        : await this.#rightsOfAccount(payload, provider.setting);
    const own = scope === undefined ? undefined : scopesOfClaim(payload, 'scope');
    const resources = resource === undefined ? undefined : [resource].flat().map(String);
    return {
      id: JSON.stringify([found.setting.issuer, jti]),
      expiresAtMs: (exp + SKEW_SECONDS) * 1_000,
      user,
      scopes: allowed.filter((each) => own === undefined || own.includes(each)),
      resources: resources?.flatMap((each) => this.#options.address.pathOf(each) ?? []),
    };
  }

  async #rightsOfAccount(payload: JWTPayload, setting: ProviderSetting): Promise<SubjectRights> {
    const company = this.#options.company?.();
    const subject = subjectIn(payload, setting.claims.subject);
    if (company === undefined) throw invalidCredentials();
    const said = { subject, claims: { ...payload }, issuedAtMs: (payload.iat ?? 0) * 1_000 };
    const { scopes, account } = await company.vouched(setting, said);
    const user = async () => {
      const { id, username } = await account();
      return { userId: id, actor: userPrincipalId(id), name: username };
    };
    return { scopes, user };
  }

  /** The result is undefined when the issuer, its assertions, or the roles of the groups are not in the settings any more. */
  granted(
    { audience, scopes }: Pick<AccessClaims, 'audience' | 'scopes'>,
    grant: Grant,
  ): Principal | undefined {
    const { id, userId, clientName, subject } = grant;
    const setting = subject && this.#issuers.get(subject.issuer)?.setting;
    if (subject === undefined || setting?.idJag !== true) return undefined;
    const { groups, name } = subject;
    if (!setting.roles.some(([group]) => groups.includes(group))) return undefined;
    const role = roleForGroups(groups, setting.roles, this.#options.rightsSettings.roles);
    return issuedPrincipal(
      { id: grantPrincipalId(id, userId), name, clientName },
      {
        audience,
        role,
        lists: grant.lists,
        obtainable: [...CLIENT_SCOPES, ...grant.scopes],
        scopes: scopes.filter((scope) => grant.scopes.includes(scope)),
      },
      this.#options.rightsSettings,
    );
  }

  #signerOf<Known>(token: string, known: ReadonlyMap<string, Known>): Known | undefined {
    const [head = '', body = ''] = token.split('.', 2);
    const { alg } = partOf(head);
    if (typeof alg !== 'string' || !ALGORITHMS.includes(alg)) return undefined;
    const { iss } = partOf(body);
    // The gateway's own tokens never count as those of another issuer, whatever the settings say.
    if (typeof iss !== 'string' || iss === this.#options.address.issuer) return undefined;
    return known.get(iss);
  }

  async #payloadOf(
    token: string,
    { setting: { issuer }, keys }: KnownIssuer<Pick<IssuerSetting, 'issuer'>>,
    isKnown: boolean,
    checks: JWTVerifyOptions,
  ): Promise<JWTPayload> {
    const verified = async (set: IssuerKeySet) => {
      const { payload } = await jwtVerify(token, set, {
        algorithms: ALGORITHMS,
        issuer,
        clockTolerance: SKEW_SECONDS,
        currentDate: new Date(this.#options.clock.wall()),
        ...checks,
      });
      return payload;
    };
    const current = await keys.current(isKnown);
    return verified(current)
      .catch(async (thrown: unknown) => {
        // Some issuers give a new key the name of the one before.
        const mayBeNew =
          thrown instanceof JWKSNoMatchingKey || thrown instanceof JWSSignatureVerificationFailed;
        if (!mayBeNew) throw thrown;
        const newer = await keys.newerThan(current);
        if (newer === undefined) throw thrown;
        return verified(newer);
      })
      .catch((thrown: unknown) => {
        if (thrown instanceof GatewayError) throw thrown;
        // The error has no cause: some errors of the library contain the claims.
        if (thrown instanceof JWTExpired) throw tokenExpired();
        throw thrown instanceof JWTClaimValidationFailed
          ? invalidCredentials(`The claim "${thrown.claim}" is missing or not valid`)
          : invalidCredentials();
      });
  }

  /** The audience of the token: the resource that it names, or everywhere for an audience that is a name. */
  #audienceOf(aud: unknown, { audience }: IssuerSetting): ResourcePath | undefined {
    const named = [aud].flat().filter((each) => typeof each === 'string');
    const { address } = this.#options;
    const accepted = audience === undefined ? named : named.filter((each) => audience.includes(each));
    const paths = accepted.flatMap((each) => address.pathOf(each) ?? (audience === undefined ? [] : ''));
    const [first, ...others] = new Set(paths);
    if (paths.includes('')) return '';
    // Several resources would be a token for each of them, which no path says.
    return others.length === 0 ? first : undefined;
  }
}

function partOf(text: string): Readonly<Record<string, unknown>> {
  return Object(jsonIn(Buffer.from(text, 'base64url').toString()));
}

/** The type of a token, without the prefix that a media type may have. Source: RFC 7515. */
function typeOf(token: string): string {
  const { typ } = partOf(token.split('.', 1)[0] ?? '');
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : '';
}

interface SubjectRights extends Pick<Assertion, 'user'> {
  readonly scopes: readonly Scope[];
}

/** Throws INSUFFICIENT_PERMISSIONS when no group of the assertion has a role. */
function rightsOfSubject(
  payload: JWTPayload,
  setting: IssuerSetting,
  roles: DefinedRoles | undefined,
): SubjectRights {
  const { countedId: userId, name } = subjectOf(payload, setting);
  const known = new Set(setting.roles.map(([group]) => group));
  const groups = groupsIn(payload, setting.claims.groups).filter((group) => known.has(group));
  const subject = { issuer: setting.issuer, name, groups: [...new Set(groups)] };
  return {
    scopes: scopesOfRole(roleForGroups(groups, setting.roles, roles), roles),
    user: async () => ({ userId, actor: userId, name, subject }),
  };
}

/** Throws INVALID_CREDENTIALS. */
function subjectIn(payload: JWTPayload, claim = 'sub'): string {
  const subject = claimOf(payload, claim);
  if (typeof subject !== 'string' || subject === '') throw invalidCredentials('The token names no subject');
  return subject;
}

/** Throws INVALID_CREDENTIALS. */
function subjectOf(payload: JWTPayload, { issuer, claims }: IssuerSetting) {
  const subject = subjectIn(payload, claims.subject);
  return {
    countedId: issuerPrincipalId(hash('sha256', JSON.stringify([issuer, subject]), 'base64url')),
    name: `${shown(subject)} of ${new URL(issuer).host}`,
  };
}

/** The scopes of this gateway in a claim, which is text or a list. */
function scopesOfClaim(payload: JWTPayload, name: string | undefined) {
  const value =
    name === undefined ? (claimOf(payload, 'scope') ?? claimOf(payload, 'scp')) : claimOf(payload, name);
  const words = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  return words.filter((word) => typeof word === 'string').filter(isScope);
}

function shown(text: string): string {
  return cutText(text.replace(UNSEEN, '').trim(), MAX_NAME_LENGTH);
}
