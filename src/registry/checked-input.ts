// Checks the input of embedding programs with the schemas and messages of the HTTP routes, and copies it, because the program may
// change its object later. Rules about several fields are in domain/registration.ts.

import Type from 'typebox';
import { Compile } from 'typebox/schema';
import { validationFailed } from '../domain/error-catalogue.ts';
import type { ValidationItem } from '../domain/errors.ts';
import { InstanceChange, InstanceInput, RegisterInput } from '../domain/instance.ts';
import { definedFields, isJsonObject } from '../domain/json.ts';
import { checkedMetadata, instanceShape } from '../domain/registration.ts';
import { type LoadBalancerChange, LoadBalancerSettings } from '../domain/template.ts';
import { compileShape, inspect, issuesOf, type Shape } from '../domain/validation.ts';
import type { RegisterOptions } from './registry-types.ts';

const CLOSED = { additionalProperties: false } as const;
const NO_RECORD = { msg: 'Input should be a valid dictionary', type: 'dict_type' } as const;
/** Fields with arbitrary names. */
const RECORDS: ReadonlySet<string> = new Set(['headers', 'env_vars', 'metadata']);
const { id, weight, metadata } = InstanceInput.properties;
const { template_name } = RegisterInput.properties;

/** A function has no transport fields: they would have no effect. */
const functionShape = compileShape(Type.Object({ id, weight, metadata }, CLOSED), 'body');
const nameShape = compileShape(Type.Object({ template_name }, CLOSED), 'body');
const changeShape = compileShape(InstanceChange, 'body');

/** A valid copy of the instance. VALIDATION_ERROR names each invalid field, and no values. */
export function checkedInstance(
  template: string,
  input: InstanceInput,
  { handler }: Pick<RegisterOptions, 'handler'>,
): InstanceInput {
  const at = ['body', 'instance'];
  if (handler !== undefined && typeof handler !== 'function')
    throw validationFailed([
      { loc: [...at, 'handler'], msg: 'Input should be a function', type: 'callable_type' },
    ]);
  const instance = copyOf(input, at);
  const named = { template_name: template };
  refuseAny(inspect({ ...named, instance }));
  const shape: Shape<unknown> = handler === undefined ? instanceShape : functionShape;
  const found = shape
    .issues(instance)
    .map(({ loc, ...rest }) => ({ loc: [...at, ...loc.slice(1)], ...rest }));
  refuseAny([...nameShape.issues(named), ...found]);
  return instance;
}

/** A valid copy of the change, without undefined fields. VALIDATION_ERROR. */
export function checkedInstanceChange(change: InstanceChange): InstanceChange {
  const copy = definedFields(copyOf(change, ['body']));
  refuseAny(inspect(copy));
  refuseAny(changeShape.issues(copy));
  return copy;
}

/** VALIDATION_ERROR for an invalid template name or invalid settings. */
export function checkTemplate(template: string, loadBalancer: LoadBalancerSettings): void {
  refuseAny(nameShape.issues({ template_name: template }));
  checkSettings(loadBalancer);
}

/** A copy of the change, with settings that are checked later. VALIDATION_ERROR when it is not an object. */
export function checkedTemplateChange(change: LoadBalancerChange): LoadBalancerChange {
  return copyOf(change, ['body', 'load_balancer']);
}

function refuseAny(items: readonly ValidationItem[]): void {
  if (items.length > 0) throw validationFailed(items);
}

/** VALIDATION_ERROR for a value without fields, or with entries that a schema cannot see, as of a Map: they would be lost. */
function copyOf<T extends object>(input: T, loc: ValidationItem['loc']): T {
  if (!isJsonObject(input)) throw validationFailed([{ loc, ...NO_RECORD }]);
  const entries = Object.entries(input).map(([name, value]) => {
    if (Array.isArray(value)) return [name, [...value]];
    if (!RECORDS.has(name) || !isJsonObject(value)) return [name, value];
    if (hasHiddenEntries(value)) throw validationFailed([{ loc: [...loc, name], ...NO_RECORD }]);
    return [name, name === 'metadata' ? checkedMetadata(value, [...loc, name]) : definedFields(value)];
  });
  return Object.fromEntries(entries);
}

/** True for an object that is not plain and has no own fields. */
function hasHiddenEntries(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return !isPlain && Object.keys(value).length === 0;
}

const validator = Compile(LoadBalancerSettings);

function checkSettings(settings: LoadBalancerSettings): void {
  if (validator.Check(settings)) return;
  const found = issuesOf(validator.Errors(settings)[1]);
  throw validationFailed(found.map((msg) => ({ loc: ['body', 'load_balancer'], msg, type: 'value_error' })));
}
