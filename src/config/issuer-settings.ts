// The setting of other authorization servers whose tokens are accepted: its form, and the faults that it names. Source: ADR
// 207.

import { definedFields, isJsonObject, jsonIn } from '../domain/json/json.ts';
import { isLoopback } from '../domain/local-address.ts';
import { ConfigError } from './config-error.ts';
import { checkKeys, type Fail, type GroupRoles, rolesIn, textsIn } from './group-roles.ts';
import { type PlaceOf, type SettingType, setting } from './setting-types.ts';

/** The names of claims by their meanings; a name with dots may also be a path. */
export type ClaimNames<Name extends string> = { readonly [Each in Name]?: string };

export interface IssuerSetting {
  /** The issuer, equal to the claim `iss` character by character. */
  readonly issuer: string;
  /** The accepted audiences. Absent: a resource of this gateway. */
  readonly audience?: readonly string[];
  /** The address of its keys. Absent: the one in the metadata of the issuer. */
  readonly jwksUri?: string;
  readonly claims: ClaimNames<(typeof CLAIMS)[number]>;
  /** Whether its identity assertions (ID-JAG) are exchanged for access tokens. Absent: no. */
  readonly idJag?: true;
  readonly roles: GroupRoles;
}

/** Entries of one list of issuers. */
const MAX_ISSUERS = 20;
const FIELDS = ['issuer', 'audience', 'jwks_uri', 'claims', 'id_jag', 'roles'];
const CLAIMS = ['subject', 'scope', 'client', 'groups'] as const;

const issuers: SettingType<readonly IssuerSetting[]> = {
  type: 'a list of issuers, each with `issuer`, `audience`, `jwks_uri`, `claims`, `id_jag` and `roles`',
  read: (raw, _, placeOf = () => 'auth.issuers') => entriesIn(placeOf, raw, issuerIn, ({ issuer }) => issuer),
  show: (value) => (value.length === 0 ? 'none' : JSON.stringify(value.map(written))),
};

export const ISSUERS = setting<readonly IssuerSetting[]>({
  key: 'auth.issuers',
  mustAgree: true,
  kind: issuers,
  default: [],
  doc: 'Other authorization servers whose tokens for this gateway are accepted as they are, with the roles of their groups. See docs/guides/other-issuers.md.',
});

/**
 * The entries of a list of issuers, as a file or a variable gives it; undefined when it is not a list, or too long. Throws
 * ConfigError for an entry that `entryIn` refuses, and for one that is listed twice, by its id.
 */
export function entriesIn<Entry extends Pick<IssuerSetting, 'issuer'>>(
  placeOf: PlaceOf,
  raw: unknown,
  entryIn: (value: unknown, fail: Fail) => Entry,
  idOf: (entry: Entry) => string,
): readonly Entry[] | undefined {
  if (raw === 'none') return [];
  const value = typeof raw === 'string' ? jsonIn(raw) : raw;
  if (!Array.isArray(value) || value.length > MAX_ISSUERS) return undefined;
  const all = value.map((each, index) =>
    entryIn(each, (what) => {
      throw new ConfigError(`${placeOf(index)}, entry ${index + 1}: ${what}`);
    }),
  );
  const ids = all.map(idOf);
  const twice = all.find((entry, index) => ids.indexOf(idOf(entry)) !== index);
  if (twice !== undefined)
    throw new ConfigError(`${placeOf(all.indexOf(twice))}: ${twice.issuer} is listed twice`);
  return all;
}

/** True for https, and for http on this machine. */
export function isSafeUrl(text: string): boolean {
  if (!/^https?:\/\/[^\s/?#@\\]+(\/[^\s?#\\]*)?$/i.test(text) || !URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || isLoopback(hostname);
}

function issuerIn(value: unknown, fail: Fail): IssuerSetting {
  if (!isJsonObject(value)) return fail('expected `issuer` and `roles`');
  checkKeys(value, FIELDS, fail);
  const { issuer, audience, jwks_uri: jwksUri, claims = {}, id_jag: idJag = false, roles } = value;
  if (typeof issuer !== 'string' || !isSafeUrl(issuer))
    return fail('`issuer` must be an https URL, or http on loopback, as in the claim `iss`');
  if (
    jwksUri !== undefined &&
    (typeof jwksUri !== 'string' || !isSafeUrl(jwksUri.replace(/\?[^#\s\\]*$/, '')))
  )
    return fail('`jwks_uri` must be an https URL, or http on loopback');
  if (typeof idJag !== 'boolean') return fail('`id_jag` must be true or false');
  const audiences = audience === undefined ? undefined : textsIn([audience].flat());
  if (audiences === undefined ? audience !== undefined : audiences.length === 0)
    return fail('`audience` must be a text or a list of texts');
  return {
    issuer,
    ...definedFields({ audience: audiences, jwksUri }),
    claims: claimsIn(claims, CLAIMS, fail),
    ...(idJag ? { idJag } : {}),
    roles: rolesIn(roles, fail),
  };
}

/** Reads the names of claims; only those in `names` may be set. */
export function claimsIn<Name extends string>(
  value: unknown,
  names: readonly Name[],
  fail: Fail,
): ClaimNames<Name> {
  if (!isJsonObject(value)) return fail(`\`claims\` must be names of claims: ${names.join(', ')}`);
  checkKeys(value, names, (what) => fail(`\`claims\`: ${what}`));
  for (const [name, claim] of Object.entries(value))
    if (textsIn([claim]) === undefined) fail(`\`claims\`: ${name} must be the name of a claim`);
  // Checked above.
  return value as ClaimNames<Name>;
}

function written({ jwksUri, idJag, roles, ...rest }: IssuerSetting): unknown {
  return {
    ...rest,
    ...definedFields({ jwks_uri: jwksUri, id_jag: idJag }),
    roles: Object.fromEntries(roles),
  };
}
