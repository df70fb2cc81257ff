// The setting of identity providers, with whose accounts users sign in: its form, and the faults that it names. Source: ADR
// 214.

import { definedFields, isJsonObject } from '../domain/json/json.ts';
import { HOUR_MS } from '../domain/time/clock.ts';
import {
  checkKeys,
  type Fail,
  type GroupRole,
  type GroupRoles,
  roleIn,
  rolesIn,
  textsIn,
} from './group-roles.ts';
import { type ClaimNames, claimsIn, entriesIn, isSafeUrl } from './issuer-settings.ts';
import { type SettingType, setting } from './setting-types.ts';

const CLAIMS = ['subject', 'username', 'email', 'groups'] as const;

export interface ProviderSetting {
  /** The id in the path of its redirect URI, made from the issuer, because a label may change. */
  readonly id: string;
  /** The issuer, equal to the one in its metadata character by character. */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The label on the button: "Sign in with ...". */
  readonly label: string;
  readonly claims: ClaimNames<(typeof CLAIMS)[number]>;
  readonly roles: GroupRoles;
  /** The claims that a user must have: each must be, or contain, one of the values. */
  readonly require: readonly (readonly [claim: string, values: readonly string[]])[];
  /** The role of users whose groups have none. */
  readonly everyone?: GroupRole;
  /** Whether its identity assertions (ID-JAG) are exchanged for access tokens of the accounts. Absent: no. */
  readonly idJag?: true;
  /** The time in ms for which a sign-in counts when the provider cannot be asked again. */
  readonly sessionMs: number;
}

/** The path of redirect URIs, which the id of a provider follows: the whole is registered at the provider. */
export const PROVIDER_CALLBACK = '/oauth/callback/';
const MAX_HOURS = 168;
const LABEL = /^[^\p{C}\p{Zl}\p{Zp}]{1,60}$/u;
const FIELDS = [
  ...['issuer', 'client_id', 'client_secret', 'label', 'claims', 'roles'],
  ...['require', 'everyone', 'session_hours', 'id_jag'],
];
/** The paths at Microsoft Entra that let in any account of any company. */
const ANYBODY = /^\/(?:common|organizations|consumers)(?:\/|$)/i;

const providers: SettingType<readonly ProviderSetting[]> = {
  type: `a list of providers, each with ${FIELDS.map((field) => `\`${field}\``).join(', ')}`,
  read: (raw, _, placeOf = () => 'auth.providers') => entriesIn(placeOf, raw, providerIn, ({ id }) => id),
  show: (value) => (value.length === 0 ? 'none' : JSON.stringify(value.map(written))),
  mask: (value) =>
    value.length === 0
      ? 'none'
      : JSON.stringify(value.map((each) => written({ ...each, clientSecret: '***' }))),
};

export const PROVIDERS = setting<readonly ProviderSetting[]>({
  key: 'auth.providers',
  secret: true,
  mustAgree: true,
  kind: providers,
  default: [],
  doc: 'Identity providers with whose accounts users sign in, with the roles of their groups. See docs/guides/company-accounts.md.',
});

function providerIn(value: unknown, fail: Fail): ProviderSetting {
  if (!isJsonObject(value)) return fail('expected `issuer`, `client_id`, `client_secret` and `label`');
  checkKeys(value, FIELDS, fail);
  const { issuer, label, claims = {}, roles, require = {}, everyone, session_hours: hours = 12 } = value;
  const { id_jag: idJag = false } = value;
  if (typeof issuer !== 'string' || !isSafeUrl(issuer))
    return fail('`issuer` must be an https URL, or http on loopback, as in the metadata of the provider');
  if (ANYBODY.test(new URL(issuer).pathname))
    fail('`issuer` stands for all companies: use the issuer of your own tenant');
  if (typeof label !== 'string' || !LABEL.test(label))
    return fail('`label` must be a text of 1 to 60 characters');
  if (typeof hours !== 'number' || !(hours > 0 && hours <= MAX_HOURS))
    return fail(`\`session_hours\` must be a number up to ${MAX_HOURS}`);
  if (typeof idJag !== 'boolean') return fail('`id_jag` must be true or false');
  const required = requiredIn(require, fail);
  if (roles === undefined && everyone === undefined && required.length === 0)
    fail(
      'each account of the provider could sign in: name `roles` of groups, or `require`, or write `everyone: { role: user }`',
    );
  const rights = roles === undefined ? [] : rolesIn(roles, fail);
  const others = everyoneIn(everyone, roles === undefined, fail);
  return {
    id: idOf(issuer),
    issuer,
    label,
    clientId: textIn(value.client_id, 'client_id', fail),
    clientSecret: textIn(value.client_secret, 'client_secret', fail),
    claims: claimsIn(claims, CLAIMS, fail),
    roles: rights,
    require: required,
    ...others,
    ...(idJag ? { idJag } : {}),
    sessionMs: hours * HOUR_MS,
  };
}

/** The role of users without one from their groups. Where no group has a role, the claims of `require` are enough for `user`. */
function everyoneIn(value: unknown, hasNoRoles: boolean, fail: Fail): Pick<ProviderSetting, 'everyone'> {
  if (value !== undefined) return { everyone: roleIn(value, (what) => fail(`\`everyone\`: ${what}`)) };
  return hasNoRoles ? { everyone: { role: 'user' } } : {};
}

function requiredIn(value: unknown, fail: Fail): ProviderSetting['require'] {
  if (!isJsonObject(value)) return fail('`require` must name a value, or a list of them, for each claim');
  return Object.entries(value).map(([claim, each]) => {
    const values = textsIn([each].flat());
    return values === undefined || values.length === 0
      ? fail(`\`require\`: ${claim} must be a text or a list of texts`)
      : [claim, values];
  });
}

function textIn(value: unknown, name: string, fail: Fail): string {
  return typeof value === 'string' && value !== '' && value.length <= 1_000
    ? value
    : fail(`\`${name}\` must be a text`);
}

function idOf(issuer: string): string {
  const { host, pathname } = new URL(issuer);
  return `${host}${pathname}`.replace(/[^A-Za-z0-9.]+/g, '-').replace(/-$/, '');
}

function written({
  clientId,
  clientSecret,
  roles,
  require,
  sessionMs,
  idJag,
  ...rest
}: ProviderSetting): unknown {
  const { id: _, ...fields } = rest;
  return {
    ...fields,
    client_id: clientId,
    client_secret: clientSecret,
    ...(roles.length === 0 ? {} : { roles: Object.fromEntries(roles) }),
    ...(require.length === 0 ? {} : { require: Object.fromEntries(require) }),
    ...definedFields({ id_jag: idJag }),
    session_hours: sessionMs / HOUR_MS,
  };
}
