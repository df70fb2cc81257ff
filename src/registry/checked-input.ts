// Checks the input of embedding programs with the schemas and messages of the HTTP routes, and copies it, because the program may
// change its object later. Rules about several fields are in domain/registration.ts.

import Type from 'typebox';
import { validationFailed } from '../domain/error-catalogue.ts';
import type { ValidationItem } from '../domain/errors.ts';
import { InstanceChange, InstanceInput, RegisterInput } from '../domain/instance.ts';
import { isJsonObject } from '../domain/json.ts';
import { asJson, checkedMetadata, instanceShape } from '../domain/registration.ts';
import { type LoadBalancerChange, LoadBalancerSettings } from '../domain/template.ts';
import { compileShape, inspect, type Shape } from '../domain/validation.ts';
import type { RegisterOptions } from './registry-types.ts';

const CLOSED = { additionalProperties: false } as const;
const { id, weight, metadata } = InstanceInput.properties;
const { template_name } = RegisterInput.properties;

/** A function has no transport fields: they would have no effect. */
const functionShape = compileShape(Type.Object({ id, weight, metadata }, CLOSED), 'body');
const nameShape = compileShape(Type.Object({ template_name }, CLOSED), 'body');
const changeShape = compileShape(InstanceChange, 'body');
const settingsShape = compileShape(LoadBalancerSettings, 'body');

/** A valid copy of the instance. VALIDATION_ERROR names each invalid field, and no values. */
export function checkedInstance(
  template: string,
  input: InstanceInput,
  { handler }: Pick<RegisterOptions, 'handler'>,
): InstanceInput {
  const at = ['body', 'instance'];
  const instance = copyOf(input, at);
  const named = { template_name: template };
  refuseAny(inspect({ ...named, instance }));
  const shape: Shape<unknown> = handler === undefined ? instanceShape : functionShape;
  refuseAny([...nameShape.issues(named), ...locatedAt(at, shape.issues(instance))]);
  return instance;
}

/** A valid copy of the change, without undefined fields. VALIDATION_ERROR. */
export function checkedInstanceChange(change: InstanceChange): InstanceChange {
  const copy = copyOf(change, ['body']);
  refuseAny(inspect(copy));
  refuseAny(changeShape.issues(copy));
  if (copy.metadata !== undefined) checkedMetadata(copy.metadata, ['body', 'metadata']);
  return copy;
}

/** VALIDATION_ERROR for an invalid template name or invalid settings. */
export function checkTemplate(template: string, loadBalancer: LoadBalancerSettings): void {
  refuseAny(nameShape.issues({ template_name: template }));
  refuseAny(locatedAt(['body', 'load_balancer'], settingsShape.issues(loadBalancer)));
}

/** A copy of the change, with settings that are checked later. VALIDATION_ERROR when it is not an object. */
export function checkedTemplateChange(change: LoadBalancerChange): LoadBalancerChange {
  copyOf(change, ['body', 'load_balancer']);
  return { ...change }; // in JSON a number such as NaN is null, which removes a setting
}

function refuseAny(items: readonly ValidationItem[]): void {
  if (items.length > 0) throw validationFailed(items);
}

/** The issues of a body that is a part of another one. */
function locatedAt(at: ValidationItem['loc'], items: readonly ValidationItem[]): ValidationItem[] {
  return items.map(({ loc, ...issue }) => ({ loc: [...at, ...loc.slice(1)], ...issue }));
}

/** The input as plain JSON. VALIDATION_ERROR for a value that is no object of JSON, such as one with a cycle. */
function copyOf<T extends object>(input: T, loc: ValidationItem['loc']): T {
  const copy = asJson(input);
  if (isJsonObject(copy)) return copy as T;
  throw validationFailed([
    { loc, msg: 'Input should be a dictionary that JSON can hold', type: 'dict_type' },
  ]);
}
