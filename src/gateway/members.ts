// Checks the options of an embedding program with tables of allowed values, and words the issues for people. Issues
// name options and rules, never values. The options themselves are defined in the modules that take them.

import { nearest } from '../config/nearest.ts';
import { validationFailed } from '../domain/error-catalogue.ts';
import type { ValidationItem } from '../domain/errors.ts';

/** What an option may be. */
export interface Check {
  /** Completes "expected ...". */
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

/** What an object may hold. All of it may be missing, or undefined. */
export interface Members {
  readonly members: Readonly<Record<string, Check | Members>>;
}

/** A table with a row for each option there is. */
export function membersOf<T>(members: Readonly<Record<keyof T, Check | Members>>): Members {
  return { members };
}

/** VALIDATION_ERROR names each unknown or invalid option, and what is expected. `what` begins its message. */
export function checkMembers(table: Members, value: unknown, what: string): void {
  const items = issues(table, value, ['options']);
  if (items.length > 0) throw validationFailed(items, what);
}

function issues({ members }: Members, value: unknown, loc: readonly string[]): ValidationItem[] {
  const names = Object.keys(members);
  if (typeof value !== 'object' || value === null)
    return [issue(loc, `expected an object with the options ${names.join(', ')}`)];
  return Object.entries(value).flatMap(([name, written]) => {
    const at = [...loc, name];
    const check = Object.hasOwn(members, name) ? members[name] : undefined;
    if (check === undefined)
      return [issue(at, `there is no such option; "${nearest(name, names)}" is the nearest`)];
    if (written === undefined) return [];
    if ('members' in check) return issues(check, written, at);
    return check.accepts(written) ? [] : [issue(at, `expected ${check.expected}`)];
  });
}

function issue(loc: readonly string[], msg: string): ValidationItem {
  return { loc, msg, type: 'value_error' };
}

export function oneOf(words: readonly string[]): Check {
  return {
    expected: `one of ${words.join(', ')}`,
    accepts: (value) => typeof value === 'string' && words.includes(value),
  };
}

export function milliseconds(least: number, most: number): Check {
  return {
    expected: `milliseconds from ${least} to ${most}`,
    accepts: (value) => isNumber(value) && value >= least && value <= most,
  };
}

export function wholeNumber(least: number, most: number): Check {
  return {
    expected: `a whole number from ${least} to ${most}`,
    accepts: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  };
}

export function arrayOf(what: string, accepts: (text: string) => boolean): Check {
  return {
    expected: `a list of ${what}`,
    accepts: (value) =>
      Array.isArray(value) && value.every((each) => typeof each === 'string' && accepts(each)),
  };
}

export function observable(): Check {
  return { expected: 'an Observable', accepts: (value) => has(value, 'subscribe') };
}

export function aFunction(): Check {
  return { expected: 'a function', accepts: (value) => typeof value === 'function' };
}

export function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

export function has(value: unknown, method: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, method) === 'function';
}
