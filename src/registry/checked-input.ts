// Holds what an embedding program wants to have registered or changed to the rules of the HTTP routes, by the same schemas
// and in the same words, and takes a copy: whoever wrote it may go on writing. What a request brought was checked before
// and passes; what fields mean together is domain/registration.ts.

import Type from 'typebox';
import type { ValidationItem } from '../domain/errors.ts';
import { inspect } from '../domain/inspect.ts';
import { InstanceChange, InstanceInput, RegisterInput } from '../domain/instance.ts';
import { instanceShape } from '../domain/instance-shape.ts';
import { isJsonObject } from '../domain/json.ts';
import { checkedMetadata } from '../domain/registration.ts';
import { validationFailed } from '../domain/request-errors.ts';
import type { LoadBalancerChange, LoadBalancerSettings } from '../domain/template.ts';
import { compileShape, type Shape } from '../domain/validation.ts';
import { checkSettings } from './checked-settings.ts';
import type { RegisterOptions } from './registry-types.ts';

const CLOSED = { additionalProperties: false } as const;
const NO_RECORD = { msg: 'Input should be a valid dictionary', type: 'dict_type' } as const;
/** Fields that hold what is no field of ours. */
const RECORDS: ReadonlySet<string> = new Set(['headers', 'env_vars', 'metadata']);
const { id, weight, metadata } = InstanceInput.properties;
const { template_name } = RegisterInput.properties;

/** How a server is reached is not said of a function: it would have no effect. */
const functionShape = compileShape(Type.Object({ id, weight, metadata }, CLOSED), 'body');
const nameShape = compileShape(Type.Object({ template_name }, CLOSED), 'body');
const changeShape = compileShape(InstanceChange, 'body');

/** A copy of the instance, fit to be defined. VALIDATION_ERROR names every field that is wrong, and none of their values. */
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
    .findings(instance)
    .map(({ loc, ...rest }) => ({ loc: [...at, ...loc.slice(1)], ...rest }));
  refuseAny([...nameShape.findings(named), ...found]);
  return instance;
}

/** A copy of the change. VALIDATION_ERROR. */
export function checkedInstanceChange(change: InstanceChange): InstanceChange {
  const copy = copyOf(change, ['body']);
  refuseAny(inspect(copy));
  refuseAny(changeShape.findings(copy));
  return copy;
}

/** VALIDATION_ERROR for what is no name of a template, or for settings that none can follow. */
export function checkTemplate(template: string, loadBalancer: LoadBalancerSettings): void {
  refuseAny(nameShape.findings({ template_name: template }));
  checkSettings(loadBalancer);
}

/** A copy of the change, whose settings are to be checked like any others. VALIDATION_ERROR when it is none. */
export function checkedTemplateChange(change: LoadBalancerChange): LoadBalancerChange {
  return copyOf(change, ['body', 'load_balancer']);
}

function refuseAny(items: readonly ValidationItem[]): void {
  if (items.length > 0) throw validationFailed(items);
}

/** VALIDATION_ERROR for what has no fields, or hides them from a schema: a Map would lose what it holds without a word. */
function copyOf<T extends object>(written: T, loc: ValidationItem['loc']): T {
  if (!isJsonObject(written)) throw validationFailed([{ loc, ...NO_RECORD }]);
  const entries = Object.entries(written).map(([name, value]) => {
    if (Array.isArray(value)) return [name, [...value]];
    if (!RECORDS.has(name) || !isJsonObject(value)) return [name, value];
    if (isHollow(value)) throw validationFailed([{ loc: [...loc, name], ...NO_RECORD }]);
    return [name, name === 'metadata' ? checkedMetadata(value, [...loc, name]) : definedOf(value)];
  });
  return Object.fromEntries(entries);
}

/** A copy without what is undefined, as JSON writes it. */
function definedOf(record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

/** Not plain, and nothing to see in it. */
function isHollow(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return !isPlain && Object.keys(value).length === 0;
}
