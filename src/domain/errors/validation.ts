// Checks input against TypeBox schemas and reports issues in the form of pydantic 2: `loc`, `msg`, `type`. It also
// searches a parsed body for NUL characters, lone surrogates and too deep nesting. Neither messages nor `loc`
// repeat a value. Source: ADR 5.

import type { StaticEncode, TSchema } from 'typebox';
import type { TLocalizedValidationError as SchemaFailure } from 'typebox/error';
import { Compile, type Validator } from 'typebox/schema';
import { Settings } from 'typebox/system';
import { LIMITS } from '../limits.ts';
import { nearName } from '../nearest.ts';
import { cutText, isCleanText, NOT_UNICODE } from '../text.ts';
import type { ValidationItem } from './errors.ts';
import { validationFailed } from './request-errors.ts';

/** Issues reported in one VALIDATION_ERROR. */
const MAX_ISSUES = 64;

/** The source of a value; the first word of every `loc`. */
export type InputPart = 'body' | 'path' | 'query' | 'header';

export interface Shape<T> {
  /** True when the value is valid; takes about 0.1 us. */
  accepts(value: unknown): value is T;
  issues(value: unknown): ValidationItem[];
  /** The value without optional fields that are null, unless null is one of their values. The same object without such fields. */
  withoutNulls(value: unknown): unknown;
}

/** A shape that accepts everything, for a part of the request that a route does not read. */
export function anything<T>(): Shape<T> {
  return { accepts: (_value): _value is T => true, issues: () => [], withoutNulls: (value) => value };
}

/** Runs a check, whose `finally` may be left out. Undefined for one that did not end. */
type Run = <T>(check: () => T) => { readonly value: T } | undefined;

/**
 * A schema that is compiled on first use, so that a start compiles none. For a union of objects (the nested and the flat form
 * of one body) the issues are those of one variant. It has most of the given fields, and of equal ones the fewest missing
 * fields. `run` runs the checks by a schema that is not ours: a value whose check did not end is not
 * accepted. Default: all end.
 */
export function compileShape<S extends TSchema>(
  schema: S,
  part: InputPart,
  run: Run = toItsEnd,
): Shape<StaticEncode<S>> {
  const compiled = new Map<TSchema, Validator>();
  const validatorOf = (one: TSchema): Validator => {
    const known = compiled.get(one);
    if (known !== undefined) return known;
    const validator = Compile(one);
    compiled.set(one, validator);
    return validator;
  };
  const check = (value: unknown) => {
    const validator = validatorOf(schema);
    return run(() => validator.Check(value))?.value;
  };
  const accepts = (value: unknown): value is StaticEncode<S> => check(value) === true;
  return {
    accepts,
    issues: (value) => {
      const isAccepted = check(value);
      if (isAccepted === true) return [];
      if (isAccepted === undefined) return [uncheckedIn(part)];
      const closest = variantsOf(schema).toSorted(
        (a, b) =>
          knownFields(b, value) - knownFields(a, value) || missingFields(a, value) - missingFields(b, value),
      )[0];
      const reported = closest ?? schema;
      const failures = failuresOf(validatorOf(reported), value, run);
      if (failures === undefined) return [uncheckedIn(part)];
      const items = withoutNull(failures.filter(isOwn)).flatMap((failure) =>
        itemsOf(failure, part, value, reported),
      );
      return items.slice(0, MAX_ISSUES);
    },
    withoutNulls: (value) => {
      if (accepts(value)) return value;
      const acceptsNull = (one: TSchema) => validatorOf(one).Check(null);
      const variants = [schema, ...variantsOf(schema)].map((one) => dropNulls(one, value, acceptsNull));
      return variants.find(accepts) ?? variants.find((variant) => variant !== value) ?? value;
    },
  };
}

const toItsEnd: Run = (check) => ({ value: check() });

/** Serializers write null for a field without a value. Source: ADR 120. */
function dropNulls(schema: TSchema, value: unknown, acceptsNull: (schema: TSchema) => boolean): unknown {
  if (!isObject(value) || !('properties' in schema) || !isObject(schema.properties)) return value;
  const { properties } = schema;
  const required = 'required' in schema && Array.isArray(schema.required) ? schema.required : [];
  const before = Object.entries(value);
  const after = before.flatMap(([name, field]): [string, unknown][] => {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isObject(own)) return [[name, field]];
    if (field === null && !required.includes(name) && !acceptsNull(own)) return [];
    return [[name, dropNulls(own, field, acceptsNull)]];
  });
  const isSame = after.length === before.length && after.every(([, field], at) => field === before[at]?.[1]);
  return isSame ? value : Object.fromEntries(after);
}

function uncheckedIn(part: InputPart): ValidationItem {
  return { loc: [part], msg: 'Value error, the check took too long', type: 'value_error' };
}

/** TypeBox stops at 8 errors by default. The setting is global, and belongs to the embedding program as well. */
function failuresOf(validator: Validator, value: unknown, run: Run): readonly SchemaFailure[] | undefined {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: MAX_ISSUES });
  try {
    return run(() => validator.Errors(value)[1])?.value;
  } finally {
    Settings.Set({ maxErrors });
  }
}

function variantsOf(schema: TSchema): readonly TSchema[] {
  return 'anyOf' in schema && Array.isArray(schema.anyOf) ? schema.anyOf : [];
}

function knownFields(schema: TSchema, value: unknown): number {
  if (!isObject(value) || !('properties' in schema) || !isObject(schema.properties)) return 0;
  const { properties } = schema;
  return Object.keys(value).filter((key) => Object.hasOwn(properties, key)).length;
}

function missingFields(schema: TSchema, value: unknown): number {
  if (!isObject(value) || !('required' in schema) || !Array.isArray(schema.required)) return 0;
  return schema.required.filter((key) => !Object.hasOwn(value, key)).length;
}

/** Leaves out that null was expected when another failure is about the same value or a part of it. */
function withoutNull(failures: readonly SchemaFailure[]): readonly SchemaFailure[] {
  const isNull = (failure: SchemaFailure) => failure.keyword === 'type' && failure.params.type === 'null';
  const others = failures.filter((failure) => !isNull(failure)).map(({ instancePath }) => `${instancePath}/`);
  return failures.filter(
    (failure) => !isNull(failure) || !others.some((path) => path.startsWith(`${failure.instancePath}/`)),
  );
}

/** False for a failure that repeats others: `additionalProperties: false` also fails as the schema `false`. */
function isOwn({ keyword }: SchemaFailure): boolean {
  return keyword !== 'boolean' && keyword !== 'anyOf';
}

function itemsOf(failure: SchemaFailure, part: InputPart, value: unknown, schema: TSchema): ValidationItem[] {
  const loc = locOf(failure.instancePath, part, value);
  const named = (fields: readonly string[], issueOf: (field: string) => Description): ValidationItem[] =>
    // One failure may name a hundred thousand fields.
    fields.slice(0, MAX_ISSUES).map((field) => ({ loc: [...loc, clip(field)], ...issueOf(field) }));
  if (failure.keyword === 'required') return named(failure.params.requiredProperties, () => MISSING);
  const failed: unknown = pointerSegments(failure.schemaPath).reduce(childOf, schema);
  if (failure.keyword === 'pattern' && isObject(failed) && typeof failed['x-words'] === 'string')
    return [{ loc, msg: `String should be ${failed['x-words']}`, type: 'string_pattern_mismatch' }];
  if (failure.keyword === 'additionalProperties') {
    const { properties } = Object(failed);
    const known = isObject(properties) ? Object.keys(properties) : [];
    return named(failure.params.additionalProperties, (field) => extraBeside(known, field));
  }
  return [{ loc, ...describe(failure, part, pointerSegments(failure.instancePath).reduce(childOf, value)) }];
}

type Description = Pick<ValidationItem, 'msg' | 'type'>;

const MISSING: Description = { msg: 'Field required', type: 'missing' };
const EXTRA: Description = { msg: 'Extra inputs are not permitted', type: 'extra_forbidden' };

function extraBeside(known: readonly string[], field: string): Description {
  const near = nearName(field, known);
  return near === undefined ? EXTRA : { ...EXTRA, msg: `${EXTRA.msg}; did you mean "${near}"?` };
}

function describe(failure: SchemaFailure, part: InputPart, value: unknown): Description {
  const should = (what: string, type: string): Description => ({ msg: `Input should be ${what}`, type });
  switch (failure.keyword) {
    case 'type':
      return describeType([failure.params.type].flat()[0] ?? '', part, value);
    case 'enum':
      return should(oneOf(failure.params.allowedValues), 'enum');
    case 'const':
      return should(oneOf([failure.params.allowedValue]), 'literal_error');
    case 'pattern':
      return {
        msg: `String should match pattern '${failure.params.pattern}'`,
        type: 'string_pattern_mismatch',
      };
    case 'minLength':
    case 'maxLength':
    case 'minItems':
    case 'maxItems':
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum': {
      const [type, words, unit] = BOUNDS[failure.keyword];
      const { limit } = failure.params;
      return { msg: `${words} ${limit}${unit}${unit && limit !== 1 ? 's' : ''}`, type };
    }
    default:
      return { msg: `Value error, ${failure.message}`, type: 'value_error' };
  }
}

const BOUNDS = {
  minLength: ['string_too_short', 'String should have at least', ' character'],
  maxLength: ['string_too_long', 'String should have at most', ' character'],
  minItems: ['too_short', 'List should have at least', ' item'],
  maxItems: ['too_long', 'List should have at most', ' item'],
  minimum: ['greater_than_equal', 'Input should be greater than or equal to', ''],
  maximum: ['less_than_equal', 'Input should be less than or equal to', ''],
  exclusiveMinimum: ['greater_than', 'Input should be greater than', ''],
  exclusiveMaximum: ['less_than', 'Input should be less than', ''],
} as const;

/** Pydantic's description of a wrong type; a text in a query that cannot be parsed has another one. */
function describeType(expected: string, part: InputPart, value: unknown): Description {
  const [what, name] = TYPE_NAMES[expected] ?? ['of another type', 'value_error'];
  if (expected === 'integer' && Number.isFinite(value)) {
    return {
      msg: 'Input should be a valid integer, got a number with a fractional part',
      type: 'int_from_float',
    };
  }
  if (part === 'query' && PARSED.includes(name))
    return { msg: `Input should be ${what}, unable to parse string`, type: `${name}_parsing` };
  return { msg: `Input should be ${what}`, type: name === 'value_error' ? name : `${name}_type` };
}

const TYPE_NAMES: Readonly<Record<string, readonly [what: string, name: string]>> = {
  string: ['a valid string', 'string'],
  integer: ['a valid integer', 'int'],
  number: ['a valid number', 'float'],
  boolean: ['a valid boolean', 'bool'],
  object: ['a valid dictionary (a JSON object)', 'dict'],
  array: ['a valid list', 'list'],
  null: ['null', 'none'],
};

const PARSED: readonly string[] = ['int', 'float', 'bool'];

function oneOf(values: readonly unknown[]): string {
  const words = values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)));
  const last = words.pop() ?? '';
  return words.length === 0 ? last : `${words.join(', ')} or ${last}`;
}

function locOf(instancePath: string, part: InputPart, value: unknown): (string | number)[] {
  const loc: (string | number)[] = [part];
  let parent: unknown = value;
  for (const segment of pointerSegments(instancePath)) {
    loc.push(Array.isArray(parent) ? Number(segment) : clip(segment));
    parent = childOf(parent, segment);
  }
  return loc;
}

function childOf(parent: unknown, segment: string): unknown {
  return isObject(parent) && Object.hasOwn(parent, segment) ? parent[segment] : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function clip(field: string): string {
  return cutText(field, LIMITS.locCharacters);
}

/** The issues of a body that no schema finds. Recursion is bounded by LIMITS.nestingDepth. */
export function inspect(body: unknown): ValidationItem[] {
  return inspectWith(body, (value) => {
    return typeof value === 'string' && !isCleanText(value) ? NOT_UNICODE : undefined;
  });
}

/**
 * The issues of numbers in a value that is kept: JSON.parse rounds whole numbers beyond 2^53, and turns numbers that no double
 * holds into Infinity. `value` can be written as JSON.
 */
export function inspectNumbers(value: unknown): ValidationItem[] {
  return inspectWith(value, (found) => {
    if (typeof found !== 'number' || Number.isSafeInteger(found)) return undefined;
    return Number.isFinite(found) && !Number.isInteger(found) ? undefined : INEXACT;
  });
}

const INEXACT: Description = {
  msg: 'Value error, the number is too large to be kept exactly: write it as a string',
  type: 'value_error',
};

/** The issues of all values and keys of a body, including keys that are not clean text. */
function inspectWith(body: unknown, issueOf: (value: unknown) => Description | undefined): ValidationItem[] {
  const issues: ValidationItem[] = [];
  const path: (string | number)[] = ['body'];
  const report = (issue: Description): void => {
    if (issues.length < MAX_ISSUES) issues.push({ loc: [...path], ...issue });
  };
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) {
      const issue = issueOf(value);
      if (issue !== undefined) report(issue);
      return;
    }
    if (path.length > LIMITS.nestingDepth) {
      issues.splice(0, issues.length, TOO_DEEP);
      return;
    }
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) visitMember(index, item);
      return;
    }
    for (const [key, field] of Object.entries(value)) {
      if (isCleanText(key)) visitMember(clip(key), field);
      else report(NOT_UNICODE); // the key itself is not repeated: `loc` names its object
    }
  };
  const visitMember = (segment: string | number, value: unknown): void => {
    path.push(segment);
    visit(value);
    path.pop();
  };
  visit(body);
  return issues;
}

const TOO_DEEP: ValidationItem = {
  loc: ['body'],
  msg: `Value error, nested deeper than ${LIMITS.nestingDepth} levels`,
  type: 'value_error',
};

/** Throws VALIDATION_ERROR if there are issues; `what` as in validationFailed. */
export function refuseIssues(items: readonly ValidationItem[], what?: string): void {
  if (items.length > 0) throw validationFailed(items, what);
}

/** The issues of a value that is at this place of the input. */
export function locatedAt(at: ValidationItem['loc'], items: readonly ValidationItem[]): ValidationItem[] {
  return items.map(({ loc, ...issue }) => ({ loc: [...at, ...loc.slice(1)], ...issue }));
}

// The issues of a document as lines for operators: the path in the document, then the rule, but never a value,
// which may be a secret.

/** The path of a member: `templates.demo`, `instances[0]`, `env["MY KEY"]`. */
export function pathTo(parent: string, member: string | number): string {
  if (typeof member === 'number') return `${parent}[${member}]`;
  if (!/^[\w-]+$/.test(member)) return `${parent}[${JSON.stringify(member)}]`;
  return parent === '' ? member : `${parent}.${member}`;
}

/**
 * One line per issue. `locate` returns the path of a field at the top level (default: its name), or that of the document when it
 * gets no field.
 */
export function issueLines(
  items: readonly ValidationItem[],
  locate: (field?: string) => string = (field) => (field === undefined ? '' : pathTo('', field)),
): string[] {
  return items.map(({ loc: [, field, ...deeper], msg, type }) => {
    const path = field === undefined ? locate() : deeper.reduce<string>(pathTo, locate(String(field)));
    const extra = deeper.length === 0 ? 'unknown field' : 'is not a valid name';
    const text = type === EXTRA.type ? msg.replace(EXTRA.msg, extra) : msg;
    return path === '' ? text : `${path}: ${text}`;
  });
}

/** The segments of a JSON pointer, without its escapes. */
function pointerSegments(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}
