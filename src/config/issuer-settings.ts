// The setting of other authorization servers whose tokens are accepted: its form, and which faults it names. Source: ADR 207.

import {
  isBuiltIn,
  ROLE_PATTERN,
  ROLE_SCOPES,
  type Role,
  SCOPES,
  type Scope,
} from '../domain/accounts/account.ts';
import { TEMPLATE_NAME } from '../domain/instances/template.ts';
import { definedFields, isJsonObject, jsonIn } from '../domain/json/json.ts';
import { type RightsLists, TOOL_ENTRY, tooLongLists } from '../domain/rights/rights.ts';
import { ConfigError } from './config-error.ts';
import { isLoopback, type SettingType, setting } from './setting-types.ts';

/** What the members of a group may do. */
export interface GroupRole extends RightsLists {
  readonly role: Role;
  /** Absent: all of the role. */
  readonly scopes?: readonly Scope[];
}

/** Roles by group, in the order as written. */
export type GroupRoles = readonly (readonly [group: string, GroupRole])[];

/** Names of claims, by what they mean; a name with dots may also be a path. */
export type ClaimNames<Name extends string> = { readonly [Each in Name]?: string };

export interface IssuerSetting {
  /** As in the claim `iss`, character by character. */
  readonly issuer: string;
  /** Absent: a resource of this gateway. */
  readonly audience?: readonly string[];
  /** Absent: named by the metadata of the issuer. */
  readonly jwksUri?: string;
  readonly claims: ClaimNames<(typeof CLAIMS)[number]>;
  /** Whether its identity assertions (ID-JAG) are exchanged for access tokens. Absent: no. */
  readonly idJag?: true;
  readonly roles: GroupRoles;
}

const MAX_ISSUERS = 20;
const MAX_ROLES = 200;
const TEMPLATE = new RegExp(`^${TEMPLATE_NAME}$`);
const FIELDS = ['issuer', 'audience', 'jwks_uri', 'claims', 'id_jag', 'roles'];
const CLAIMS = ['subject', 'scope', 'client', 'groups'] as const;

const issuers: SettingType<readonly IssuerSetting[]> = {
  type: 'a list of issuers, each with `issuer`, `audience`, `jwks_uri`, `claims`, `id_jag` and `roles`',
  read: (raw) => {
    if (raw === 'none') return [];
    const value = typeof raw === 'string' ? jsonIn(raw) : raw;
    if (!Array.isArray(value) || value.length > MAX_ISSUERS) return undefined;
    const all = value.map((each, index) => issuerIn(each, `auth.issuers, entry ${index + 1}`));
    const twice = all.find(({ issuer }, index) => all.findIndex((each) => each.issuer === issuer) !== index);
    if (twice !== undefined) throw new ConfigError(`auth.issuers: ${twice.issuer} is there twice`);
    return all;
  },
  show: (value) => (value.length === 0 ? 'none' : JSON.stringify(value.map(written))),
};

export const ISSUERS = setting<readonly IssuerSetting[]>({
  key: 'auth.issuers',
  mustAgree: true,
  kind: issuers,
  default: [],
  doc: 'Other authorization servers whose tokens for this gateway are accepted as they are, with the roles of their groups. See docs/guides/other-issuers.md.',
});

/** True for https, and for http on this machine. */
export function isSafeUrl(text: string): boolean {
  if (!/^https?:\/\/[^\s/?#@\\]+(\/[^\s?#\\]*)?$/i.test(text) || !URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || isLoopback(hostname);
}

function issuerIn(value: unknown, place: string): IssuerSetting {
  const fail = (what: string): never => {
    throw new ConfigError(`${place}: ${what}`);
  };
  if (!isJsonObject(value)) return fail('expected `issuer` and `roles`');
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) fail(`unknown key ${JSON.stringify(unknown)}; known: ${FIELDS.join(', ')}`);
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

/** Ends the reading of an entry with what is wrong. */
export type Fail = (what: string) => never;

export function claimsIn<Name extends string>(
  value: unknown,
  names: readonly Name[],
  fail: Fail,
): ClaimNames<Name> {
  const known = names.join(', ');
  if (!isJsonObject(value)) return fail(`\`claims\` must be names of claims: ${known}`);
  for (const [name, claim] of Object.entries(value)) {
    if (!names.some((each) => each === name))
      fail(`\`claims\`: unknown key ${JSON.stringify(name)}; known: ${known}`);
    if (textsIn([claim]) === undefined) fail(`\`claims\`: ${name} must be the name of a claim`);
  }
  // Checked above.
  return value as ClaimNames<Name>;
}

export function rolesIn(value: unknown, fail: Fail): GroupRoles {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  if (entries.length === 0 || entries.length > MAX_ROLES)
    return fail(`\`roles\` must name a role for each of 1 to ${MAX_ROLES} groups`);
  return entries.map(([group, each]) => [
    group,
    roleIn(each, (what) => fail(`\`roles\`, ${group}: ${what}`)),
  ]);
}

export function roleIn(value: unknown, fail: Fail): GroupRole {
  if (!isJsonObject(value)) return fail('expected `role`');
  const { role: named, scopes, templates, views, tools, ...others } = value;
  // Whether it is defined is checked with the setting `roles`.
  if (typeof named !== 'string' || !new RegExp(ROLE_PATTERN).test(named))
    return fail('`role` must be the name of a role');
  const role = named;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    fail(`unknown key ${JSON.stringify(unknown)}; known: role, scopes, templates, views, tools`);
  const own = isBuiltIn(role) ? ROLE_SCOPES[role] : SCOPES;
  const wanted = scopes === undefined ? undefined : textsIn(scopes);
  const granted = wanted && SCOPES.filter((scope) => own.includes(scope) && wanted.includes(scope));
  if (
    scopes !== undefined &&
    (granted === undefined || granted.length === 0 || granted.length !== wanted?.length)
  )
    fail(`\`scopes\` must be a list of scopes of the role ${role}: ${own.join(', ')}`);
  return {
    role,
    ...definedFields({ scopes: granted }),
    ...listsIn({ templates, views, tools }, fail),
  };
}

export function listsIn(value: { readonly [L in keyof RightsLists]: unknown }, fail: Fail): RightsLists {
  const read = (name: keyof RightsLists, form: RegExp, what: string) => {
    if (value[name] === undefined) return {};
    const list = textsIn(value[name]);
    if (list?.every((each) => form.test(each)) !== true) return fail(`\`${name}\` must be a list of ${what}`);
    return { [name]: list };
  };
  const lists: RightsLists = {
    ...read('templates', TEMPLATE, 'ids of templates'),
    ...read('views', TEMPLATE, 'ids of views'),
    ...read('tools', new RegExp(TOOL_ENTRY), '`<template>/<glob>`, perhaps after `!`'),
  };
  for (const { list, msg } of tooLongLists(lists)) fail(`\`${list}\`: ${msg}`);
  return lists;
}

export function textsIn(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length > 1_000) return undefined;
  const isText = (each: unknown) => typeof each === 'string' && each !== '' && each.length <= 500;
  return value.every(isText) ? value : undefined;
}

function written({ jwksUri, idJag, roles, ...rest }: IssuerSetting): unknown {
  return {
    ...rest,
    ...definedFields({ jwks_uri: jwksUri, id_jag: idJag }),
    roles: Object.fromEntries(roles),
  };
}
