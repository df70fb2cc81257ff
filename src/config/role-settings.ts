// The setting of roles besides `admin` and `user`: its form, and the settings that name roles without a definition. Source:
// ADR 231.

import {
  type DefinedRoles,
  isBuiltIn,
  ROLE_PATTERN,
  ROLES,
  type RoleRights,
  SCOPES,
} from '../domain/accounts/account.ts';
import { isJsonObject, jsonIn } from '../domain/json/json.ts';
import { ConfigError } from './config-error.ts';
import {
  checkedLists,
  checkKeys,
  type Fail,
  type GroupRole,
  type GroupRoles,
  textsIn,
} from './group-roles.ts';
import { type PlaceOf, type SettingType, setting } from './setting-types.ts';

const MAX_DEFINED = 100;
const FIELDS = ['scopes', 'templates', 'views', 'tools'];

const roles: SettingType<DefinedRoles> = {
  type: 'a map of roles by name, each with `scopes`, and perhaps `templates`, `views` and `tools`',
  read: (raw, _, placeOf = () => 'roles') => {
    if (raw === 'none') return {};
    const value = typeof raw === 'string' ? jsonIn(raw) : raw;
    if (!isJsonObject(value)) return undefined;
    const count = Object.keys(value).length;
    if (count > MAX_DEFINED)
      throw new ConfigError(`${placeOf()}: expected at most ${MAX_DEFINED} roles, not ${count}`);
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, definedRoleIn(name, each, placeOf)]),
    );
  },
  show: (value) => (Object.keys(value).length === 0 ? 'none' : JSON.stringify(value)),
};

export const DEFINED_ROLES = setting<DefinedRoles>({
  key: 'roles',
  mustAgree: true,
  kind: roles,
  default: {},
  doc: 'Roles besides admin and user, by name, each with scopes and perhaps templates, views and tools. See docs/guides/tool-rights.md.',
});

function definedRoleIn(name: string, value: unknown, placeOf: PlaceOf): RoleRights {
  const fail: Fail = (what) => {
    throw new ConfigError(`${placeOf(name)}, ${JSON.stringify(name)}: ${what}`);
  };
  if (isBuiltIn(name)) fail('it is built in, and cannot be defined again');
  if (!new RegExp(ROLE_PATTERN).test(name))
    fail(
      'a name has lower-case letters, digits and dashes, begins with a letter, and has at most 31 characters',
    );
  if (!isJsonObject(value)) return fail('expected `scopes`');
  checkKeys(value, FIELDS, fail);
  const { scopes, templates, views, tools } = value;
  const wanted = textsIn(scopes) ?? [];
  const granted = SCOPES.filter((scope) => wanted.includes(scope));
  if (granted.length === 0 || granted.length !== wanted.length)
    fail(`\`scopes\` must be a list of scopes: ${SCOPES.join(', ')}`);
  const lists = checkedLists({ templates, views, tools }, fail);
  // As for the role `admin`: this scope implies the others.
  return { scopes: granted.includes('admin') ? SCOPES : granted, ...lists };
}

/** One line for each role that a setting names and none defines. */
export function undefinedRoles(
  defined: DefinedRoles,
  named: readonly {
    readonly settingName: string;
    readonly roles: GroupRoles;
    readonly everyone?: GroupRole;
  }[],
): readonly string[] {
  const known = [...ROLES, ...Object.keys(defined)];
  return named.flatMap(({ settingName, roles: groups, everyone }) => {
    const all = [...groups.map(([, each]) => each.role), ...(everyone === undefined ? [] : [everyone.role])];
    const unknown = new Set(all.filter((role) => !known.includes(role)));
    return [...unknown].map(
      (role) => `${settingName}: \`role\` must be one of ${known.join(', ')}, not ${role}`,
    );
  });
}
