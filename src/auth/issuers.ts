// Tokens of other authorization servers (`auth.issuers`), accepted as they are. Issuer and algorithm choose the verifier before any key is
// chosen. Their callers have no account here: their groups give the rights, and the token can only narrow them. Loaded only where there
// are such issuers. Source: RFC 9068, ADR 207.

import { hash } from 'node:crypto';
import type { JWTPayload } from 'jose';
import { JWKSNoMatchingKey, JWTExpired } from 'jose/errors';
import { jwtVerify } from 'jose/jwt/verify';
import type { GroupRole, IssuerSetting } from '../config/issuer-settings.ts';
import { issuerPrincipalId, type ResourcePath } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import { invalidCredentials, noRoleForGroups, tokenExpired } from '../domain/error-catalogue.ts';
import { GatewayError } from '../domain/errors.ts';
import { isJsonObject, jsonIn } from '../domain/json.ts';
import type { GatewayAddress } from '../domain/resource.ts';
import { cutText } from '../domain/text.ts';
import { isScope } from './access-tokens.ts';
import type { ForeignTokens, Identity } from './authenticator.ts';
import { IssuerKeys, type KeySet } from './issuer-keys.ts';
import { type HourlyLimits, issuedPrincipal, scopesOfRole } from './permissions.ts';

/** Asymmetric ones only: no public key is ever a secret. */
const ALGORITHMS = [
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
];
/** Difference of clocks that is accepted. */
const SKEW_SECONDS = 60;
/** Sessions stay open for so long after their last token, because many clients renew a token only after a 401, in ms. */
const SESSION_REST_MS = 5 * 60_000;
/** Names for people, in characters. */
const LONGEST_NAME = 100;
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

export interface IssuersOptions extends Pick<Clock, 'now' | 'wall' | 'alarm'> {
  readonly settings: readonly IssuerSetting[];
  readonly address: GatewayAddress;
  readonly limits: HourlyLimits;
  readonly warn: (line: string) => void;
}

interface KnownIssuer {
  readonly setting: IssuerSetting;
  readonly keys: IssuerKeys;
}

export class Issuers implements ForeignTokens {
  readonly #options: IssuersOptions;
  readonly #issuers: ReadonlyMap<string, KnownIssuer>;

  constructor(options: IssuersOptions) {
    this.#options = options;
    const { now, alarm, warn, settings } = options;
    this.#issuers = new Map(
      settings.map((setting) => [
        setting.issuer,
        { setting, keys: new IssuerKeys(setting, { now, alarm, log: warn }) },
      ]),
    );
  }

  /** True for a token that only another issuer can have signed, by its claim and its algorithm. Nothing is verified. */
  has(token: string): boolean {
    return this.#issuerOf(token) !== undefined;
  }

  /**
   * `isKnown`: the token was verified before. INVALID_CREDENTIALS, TOKEN_EXPIRED; INSUFFICIENT_PERMISSIONS when no group has a role;
   * ISSUER_UNAVAILABLE when the keys cannot be read.
   */
  async verify(token: string, isKnown: boolean): Promise<Identity> {
    const found = this.#issuerOf(token);
    if (found === undefined) throw invalidCredentials();
    const { setting, keys } = found;
    const payload = await this.#payloadOf(token, found, await keys.current(isKnown))
      .catch(async (thrown: unknown) => {
        if (!(thrown instanceof JWKSNoMatchingKey)) throw thrown;
        const fetched = await keys.refetched();
        if (fetched === undefined) throw thrown;
        return this.#payloadOf(token, found, fetched);
      })
      .catch((thrown: unknown) => {
        if (thrown instanceof GatewayError) throw thrown;
        // No cause: some errors of the library contain the claims.
        throw thrown instanceof JWTExpired ? tokenExpired() : invalidCredentials();
      });
    const { claims } = setting;
    const subject = claimOf(payload, claims.subject ?? 'sub');
    if (typeof subject !== 'string' || subject === '') throw invalidCredentials('The token names no subject');
    const audience = this.#audienceOf(payload.aud, setting);
    if (audience === undefined) throw invalidCredentials('The token is for another resource');
    const host = new URL(setting.issuer).host;
    const client =
      claimOf(payload, claims.client ?? 'client_id') ??
      (claims.client === undefined ? payload.azp : undefined);
    const principal = issuedPrincipal(
      {
        id: issuerPrincipalId(hash('sha256', JSON.stringify([setting.issuer, subject]), 'base64url')),
        name: `${shown(subject)} of ${host}`,
        clientName: typeof client === 'string' && shown(client) !== '' ? shown(client) : host,
      },
      {
        audience,
        scopes: scopesIn(payload, claims.scope),
        role: roleFor(groupsIn(payload, claims.groups), setting.roles),
      },
      this.#options.limits,
    );
    const expiresAtMs = ((payload.exp ?? 0) + SKEW_SECONDS) * 1000;
    return { principal, expiresAtMs, status: { stamp: '', endsAtMs: expiresAtMs + SESSION_REST_MS } };
  }

  #issuerOf(token: string): KnownIssuer | undefined {
    const [head = '', body = ''] = token.split('.', 2);
    const { alg } = partOf(head);
    if (typeof alg !== 'string' || !ALGORITHMS.includes(alg)) return undefined;
    const { iss } = partOf(body);
    // Its own tokens are never those of another issuer, whatever the settings say.
    if (typeof iss !== 'string' || iss === this.#options.address.issuer) return undefined;
    return this.#issuers.get(iss);
  }

  async #payloadOf(token: string, { setting }: KnownIssuer, keys: KeySet): Promise<JWTPayload> {
    const { payload } = await jwtVerify(token, keys, {
      ...{ algorithms: ALGORITHMS, issuer: setting.issuer, requiredClaims: ['aud', 'exp'] },
      ...{ clockTolerance: SKEW_SECONDS, currentDate: new Date(this.#options.wall()) },
    });
    return payload;
  }

  /** Where the token works: at the resource that it names, or everywhere for an audience that is a name. */
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

/** A claim by its name, which may contain dots, else by its path. */
function claimOf(payload: unknown, name: string): unknown {
  if (!isJsonObject(payload)) return undefined;
  if (Object.hasOwn(payload, name)) return payload[name];
  const [first = '', ...rest] = name.split('.');
  return rest.length > 0 && Object.hasOwn(payload, first)
    ? claimOf(payload[first], rest.join('.'))
    : undefined;
}

/** Those of this gateway, as text or as a list. */
function scopesIn(payload: JWTPayload, name: string | undefined) {
  const value =
    name === undefined ? (claimOf(payload, 'scope') ?? claimOf(payload, 'scp')) : claimOf(payload, name);
  const words = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  return words.filter((word) => typeof word === 'string').filter(isScope);
}

function groupsIn(payload: JWTPayload, name = 'groups'): readonly string[] {
  const groups = claimOf(payload, name);
  const hasElsewhere = isJsonObject(payload._claim_names) && Object.hasOwn(payload._claim_names, name);
  // Entra: above 200 groups the token says only where they are.
  if (groups === undefined && (hasElsewhere || payload.hasgroups === true))
    throw noRoleForGroups(
      'The token does not contain the groups, because there are too many: use app roles.',
    );
  return [groups].flat().filter((group) => typeof group === 'string');
}

/**
 * The first role of the settings that one of the groups has; other groups with at least its scopes add their templates. Every pair of a scope
 * and a template is so one that a single group gives.
 */
function roleFor(groups: readonly string[], roles: IssuerSetting['roles']): GroupRole {
  const own = roles.filter(([group]) => groups.includes(group)).map(([, role]) => role);
  const [first] = own;
  if (first === undefined) throw noRoleForGroups('No group of the token has a role at this gateway.');
  const wanted = scopesOfRole(first);
  const wider = own.filter((role) => wanted.every((scope) => scopesOfRole(role).includes(scope)));
  if (wider.some(({ templates }) => templates === undefined)) return { role: first.role, scopes: wanted };
  return {
    role: first.role,
    scopes: wanted,
    templates: [...new Set(wider.flatMap(({ templates = [] }) => templates))],
  };
}

function shown(text: string): string {
  return cutText(text.replace(UNSEEN, '').trim(), LONGEST_NAME);
}
