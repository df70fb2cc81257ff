// Checks the input of embedding programs with the schemas and messages of the HTTP routes.
// domain/registration/registration.ts has the rules about several fields of an instance.

import Type from 'typebox';
import { LoadBalancerChange } from '../balancing/policy-schemas.ts';
import type { TemplateChange } from '../balancing/stored-template.ts';
import { TemplateId } from '../domain/accounts/input-schemas.ts';
import { compileShape, locatedAt, refuseIssues, type Shape } from '../domain/errors/validation.ts';
import { InstanceChange, InstanceInput, type TemplateAuth } from '../domain/instances/instance.ts';
import {
  checkedInput,
  checkedTemplateAuth,
  checkMetadata,
  instanceShape,
} from '../domain/registration/registration.ts';
import type { RegisterOptions } from './registry-types.ts';

const CLOSED = { additionalProperties: false } as const;
const { id, weight, metadata } = InstanceInput.properties;

/** A function has no transport fields: they would have no effect. */
const functionShape: Shape<InstanceInput> = compileShape(
  Type.Object({ id, weight, metadata }, CLOSED),
  'body',
);
const nameShape = compileShape(Type.Object({ template_name: TemplateId }, CLOSED), 'body');
const changeShape = compileShape(InstanceChange, 'body');
const settingsShape = compileShape(LoadBalancerChange, 'body');

/** A valid copy of the instance. Throws VALIDATION_ERROR, which names each invalid field, and no values. */
export function checkedInstance(
  template: string,
  input: InstanceInput,
  { handler }: Pick<RegisterOptions, 'handler'>,
): InstanceInput {
  checkName(template);
  return checkedInput(input, handler === undefined ? instanceShape : functionShape, ['body', 'instance']);
}

/** A valid copy of the change, without undefined fields. Throws VALIDATION_ERROR. */
export function checkedInstanceChange(change: InstanceChange): InstanceChange {
  const copy = checkedInput(change, changeShape, ['body']);
  checkMetadata(copy, ['body']);
  return copy;
}

/** Throws VALIDATION_ERROR for an invalid name of a template. */
export function checkName(template: string): void {
  refuseIssues(nameShape.issues({ template_name: template }));
}

/** A valid copy. Throws VALIDATION_ERROR. */
export function checkedTemplate(
  name: string,
  change: LoadBalancerChange,
  auth?: TemplateAuth | null,
): TemplateChange {
  // The settings are not copied through JSON, where NaN would become null, which removes a setting.
  refuseIssues(locatedAt(['body', 'load_balancer'], settingsShape.issues(change)));
  const loadBalancer = { ...change };
  if (auth === undefined || auth === null) return { name, loadBalancer, auth };
  return { name, loadBalancer, auth: checkedTemplateAuth(auth, ['body', 'auth']) };
}
