// The fields of accounts, and of the caller, that limit its use of the gateway: the role, and lists of templates, views and
// tools.

import Type from 'typebox';
import {
  type DefinedRoles,
  ROLES,
  type Role,
  roleRights,
  type Scope,
} from '../../domain/accounts/account.ts';
import { TemplateList, ToolList, ViewList } from '../../domain/accounts/input-schemas.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import type { RightsLists } from '../../domain/accounts/rights.ts';
import { validationFailed } from '../../domain/errors/request-errors.ts';
import { definedFields } from '../../domain/json/json.ts';
import { nullableNames } from './schemas.ts';

/** The lists of rights in bodies; null means all. */
export const WRITTEN_LISTS = {
  templates: Type.Optional(Type.Union([TemplateList, Type.Null()], { examples: [null] })),
  /** The views that may be used. Null: all when `templates` is null or absent, else none. */
  views: Type.Optional(Type.Union([ViewList, Type.Null()], { examples: [null] })),
  /** `<template>/<glob>`, perhaps after `!`; the last match decides. */
  tools: Type.Optional(Type.Union([ToolList, Type.Null()], { examples: [['everything/*']] })),
};

type WrittenLists = { readonly [L in keyof RightsLists]: RightsLists[L] | null | undefined };

/** Null is all, as an absent list. */
export function listsIn(written: WrittenLists): RightsLists {
  const { templates, views, tools } = written;
  return definedFields({
    templates: templates ?? undefined,
    views: views ?? undefined,
    tools: tools ?? undefined,
  });
}

/** The lists of rights in records. */
export function shownListFields(templates: readonly string[] | null) {
  return {
    templates: nullableNames(templates),
    views: nullableNames(null),
    tools: nullableNames(['everything/*']),
  };
}

/** The lists of rights of a record as answers show them: null for all. */
export function shownLists({ templates, views, tools }: RightsLists) {
  return {
    templates: templates === undefined ? null : [...templates],
    views: views === undefined ? null : [...views],
    tools: tools === undefined ? null : [...tools],
  };
}

/** The rights of the caller: those that its lists have in common. */
export const CALLER_LIST_FIELDS = {
  templates: nullableNames(['everything']),
  views: nullableNames(null),
  tools: nullableNames(['everything/*']),
  /** Further lists, of the owner and of the role: a tool has to be in each of them, too. */
  tools_within: Type.Optional(Type.Array(Type.Array(Type.String()), { examples: [[['everything/echo']]] })),
};

/** The rights of a caller as answers show them, sorted. */
export function shownRights({ templates, views, tools }: Principal) {
  const [first, ...within] = tools?.lists ?? [];
  // When there is no list of views, a list of templates excludes all views.
  const ofViews = views ?? (templates === undefined ? undefined : new Set<string>());
  return {
    ...shownLists({
      ...(templates === undefined ? {} : { templates: [...templates].sort() }),
      ...(ofViews === undefined ? {} : { views: [...ofViews].sort() }),
      ...definedFields({ tools: first }),
    }),
    ...(within.length === 0 ? {} : { tools_within: within.map((list) => [...list]) }),
  };
}

/** The role that a body gives by either of two fields; undefined when it has neither. */
export function writtenRole(
  { role, is_superuser: isSuperuser }: { readonly role?: Role; readonly is_superuser?: boolean },
  defined: DefinedRoles | undefined,
): Role | undefined {
  const known = [...ROLES, ...Object.keys(defined ?? {})];
  if (role !== undefined && !known.includes(role)) {
    const issue = { msg: `Input should be one of ${known.join(', ')}`, type: 'enum' };
    throw validationFailed([{ loc: ['body', 'role'], ...issue }]);
  }
  if (isSuperuser === undefined) return role;
  const roleOfFlag: Role = isSuperuser ? 'admin' : 'user';
  if (role === undefined || role === roleOfFlag) return roleOfFlag;
  const msg = `Value error, it contradicts the role '${role}'`;
  throw validationFailed([{ loc: ['body', 'is_superuser'], msg, type: 'value_error' }]);
}

/**
 * The rights of a new key: those of the role, which the body may limit, else those of the body. A list that the
 * role has cannot be written, because a key has one list of each kind.
 */
export function rightsOfNewKey(
  body: WrittenLists & {
    readonly role?: Role | undefined;
    readonly permissions?: readonly Scope[] | undefined;
  },
  defined: DefinedRoles | undefined,
) {
  const { permissions } = body;
  const role = writtenRole(body.role === undefined ? {} : { role: body.role }, defined);
  if (role === undefined) {
    if (permissions !== undefined) return { permissions, ...listsIn(body) };
    throw validationFailed([{ loc: ['body', 'permissions'], msg: 'Field required', type: 'missing' }]);
  }
  const { scopes, ...lists } = roleRights(role, defined);
  // When there is no list of views, a list of templates excludes all views.
  const ofRole: RightsLists = lists.templates === undefined ? lists : { views: [], ...lists };
  const own = (['templates', 'views', 'tools'] as const).filter((list) => ofRole[list] !== undefined);
  const issues = own
    .filter((list) => body[list] !== undefined)
    .map((list) => ({ loc: ['body', list], msg: `Value error, the role '${role}' has its own` }));
  const beyond = (permissions ?? []).filter((scope) => !scopes.includes(scope));
  if (beyond.length > 0)
    issues.push({
      loc: ['body', 'permissions'],
      msg: `Value error, the role '${role}' has no ${beyond.join(', ')}`,
    });
  if (issues.length > 0) throw validationFailed(issues.map((each) => ({ ...each, type: 'value_error' })));
  return { permissions: permissions ?? scopes, ...listsIn(body), ...ofRole };
}
