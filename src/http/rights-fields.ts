// The fields of accounts, and of the caller, that say what may be used: the role, and lists of templates, views and tools.

import Type from 'typebox';
import { type DefinedRoles, type Principal, ROLES, type Role } from '../domain/account.ts';
import { validationFailed } from '../domain/error-catalogue.ts';
import { TemplateList, ToolList, ViewList } from '../domain/input-schemas.ts';
import { definedFields } from '../domain/json.ts';
import type { RightsLists } from '../domain/rights.ts';
import { nullableNames } from './schemas.ts';

/** In bodies; null = all. */
export const WRITTEN_LISTS = {
  templates: Type.Optional(Type.Union([TemplateList, Type.Null()], { examples: [null] })),
  /** Without `templates` null = all, else none. */
  views: Type.Optional(Type.Union([ViewList, Type.Null()], { examples: [null] })),
  /** `<template>/<glob>`, perhaps after `!`; the last match decides. */
  tools: Type.Optional(Type.Union([ToolList, Type.Null()], { examples: [['everything/*']] })),
};

/** Null is all, as an absent list. */
export function listsIn(
  written: {
    readonly [L in keyof RightsLists]: RightsLists[L] | null | undefined;
  },
): RightsLists {
  const { templates, views, tools } = written;
  return definedFields({
    templates: templates ?? undefined,
    views: views ?? undefined,
    tools: tools ?? undefined,
  });
}

/** In records. */
export function shownListFields(templates: readonly string[] | null) {
  return {
    templates: nullableNames(templates),
    views: nullableNames(null),
    tools: nullableNames(['everything/*']),
  };
}

export function shownLists({ templates, views, tools }: RightsLists) {
  return {
    templates: templates === undefined ? null : [...templates],
    views: views === undefined ? null : [...views],
    tools: tools === undefined ? null : [...tools],
  };
}

/** Of the caller: what its lists have in common. */
export const CALLER_LIST_FIELDS = {
  templates: nullableNames(['everything']),
  views: nullableNames(null),
  tools: nullableNames(['everything/*']),
  /** Further lists, of the owner and of the role: a tool has to be in each of them, too. */
  tools_within: Type.Optional(Type.Array(Type.Array(Type.String()), { examples: [[['everything/echo']]] })),
};

export function shownRights({ templates, views, tools }: Principal) {
  const [first, ...within] = tools?.lists ?? [];
  // Without a list of views, a list of templates excludes them.
  const ofViews = views ?? (templates === undefined ? undefined : new Set<string>());
  return {
    ...shownLists({
      ...(templates === undefined ? {} : { templates: [...templates].sort() }),
      ...(ofViews === undefined ? {} : { views: [...ofViews].sort() }),
      ...(first === undefined ? {} : { tools: first }),
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
