// The rights that settings give the members of groups: their role, scopes, templates, views and tools.

import {
  isBuiltIn,
  ROLE_PATTERN,
  ROLE_SCOPES,
  type Role,
  SCOPES,
  type Scope,
} from '../domain/accounts/account.ts';
import { type RightsLists, TOOL_ENTRY, tooLongLists } from '../domain/accounts/rights.ts';
import { definedFields, isJsonObject } from '../domain/json/json.ts';
import { TEMPLATE_NAME } from '../domain/template-name.ts';

const MAX_ROLES = 200;
const FIELDS = ['role', 'scopes', 'templates', 'views', 'tools'];
const TEMPLATE = new RegExp(`^${TEMPLATE_NAME}$`);

/** The rights of the members of a group. */
export interface GroupRole extends RightsLists {
  readonly role: Role;
  /** The scopes. Absent: all scopes of the role. */
  readonly scopes?: readonly Scope[];
}

/** The roles by group, in the order of the setting. */
export type GroupRoles = readonly (readonly [group: string, GroupRole])[];

/** Ends the reading of an entry; `what` describes its fault. */
export type Fail = (what: string) => never;

/** Reads the role of each group, 1 to MAX_ROLES of them. Faults go to `fail`. */
export function rolesIn(value: unknown, fail: Fail): GroupRoles {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  if (entries.length === 0 || entries.length > MAX_ROLES)
    return fail(`\`roles\` must name a role for each of 1 to ${MAX_ROLES} groups`);
  return entries.map(([group, each]) => [
    group,
    roleIn(each, (what) => fail(`\`roles\`, ${group}: ${what}`)),
  ]);
}

/** Reads one role with its scopes and lists. Whether a role of this name exists is checked later. */
export function roleIn(value: unknown, fail: Fail): GroupRole {
  if (!isJsonObject(value)) return fail('expected `role`');
  const { role, scopes, templates, views, tools } = value;
  // Whether it is defined is checked with the setting `roles`.
  if (typeof role !== 'string' || !new RegExp(ROLE_PATTERN).test(role))
    return fail('`role` must be the name of a role');
  checkKeys(value, FIELDS, fail);
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
    ...checkedLists({ templates, views, tools }, fail),
  };
}

/** Reads lists of templates, views and tools; absent ones stay absent. */
export function checkedLists(value: { readonly [L in keyof RightsLists]: unknown }, fail: Fail): RightsLists {
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

/** Refuses keys that an entry does not have. */
export function checkKeys(entry: object, known: readonly string[], fail: Fail): void {
  const unknown = Object.keys(entry).find((name) => !known.includes(name));
  if (unknown !== undefined) fail(`unknown key ${JSON.stringify(unknown)}; known: ${known.join(', ')}`);
}

/** A list of at most 1,000 texts of 1 to 500 characters; undefined for any other value. */
export function textsIn(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length > 1_000) return undefined;
  const isText = (each: unknown) => typeof each === 'string' && each !== '' && each.length <= 500;
  return value.every(isText) ? value : undefined;
}
