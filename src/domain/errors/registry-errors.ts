// The errors of the registry: templates, instances and views.

import type { InstanceDefinition, InstanceSnapshot } from '../instances/instance.ts';
import { isMissing } from '../instances/start-failure.ts';
import { GatewayError } from './errors.ts';
import { quoted } from './request-errors.ts';

export function templateNotFound(template: string): GatewayError {
  return new GatewayError('TEMPLATE_NOT_FOUND', `No template named ${quoted(template)} is registered.`);
}

export function noStoredDefinition(template: string): GatewayError {
  return new GatewayError('TEMPLATE_NOT_FOUND', `The template ${quoted(template)} has no stored definition.`);
}

export function serverNotFound(id: string): GatewayError {
  return new GatewayError('SERVER_NOT_FOUND', `No instance ${quoted(id)} is registered.`);
}

export function duplicateServer(id: string): GatewayError {
  return new GatewayError('DUPLICATE_SERVER', `Instance "${id}" already exists.`);
}

/** `what` is the counted noun: "instances". */
export function registryFull(what: string, most: number): GatewayError {
  return new GatewayError(
    'REGISTRY_FULL',
    `The registry is full (${most} ${what}): deregister or delete unused ones first.`,
  );
}

export function configIncomplete(reason: string): GatewayError {
  return new GatewayError('CONFIG_INCOMPLETE', reason);
}

export function endpointNotAllowed(reason: string): GatewayError {
  return new GatewayError('ENDPOINT_NOT_ALLOWED', reason);
}

export function commandNotAllowed(reason: string): GatewayError {
  return new GatewayError('COMMAND_NOT_ALLOWED', reason);
}

/** The command names secrets or files of the gateway; `reason` is a sentence. */
export function commandExposes(reason: string): GatewayError {
  return new GatewayError('COMMAND_NOT_ALLOWED', reason, { status: 400 });
}

/** A registered instance was not healthy within `waitMs`, or was removed. */
export function notHealthyInTime(
  { template, id }: Pick<InstanceDefinition, 'template' | 'id'>,
  { state, reason }: Pick<InstanceSnapshot, 'state' | 'reason'>,
  waitMs: number,
): GatewayError {
  const name = `Instance "${id}" of "${template}"`;
  const removed = `${name} was deregistered or replaced before it was healthy.`;
  if (state === 'stopped') return new GatewayError('SERVER_NOT_FOUND', removed);
  const fault = isMissing(reason) ? 'is not healthy' : `is not healthy after ${waitMs / 1000} s`;
  const plainMessage = `${name} ${fault}; it stays registered and the gateway retries.`;
  const details = { delivered: 'no', plainMessage, instanceId: id } as const;
  if (reason === null) return new GatewayError('BACKEND_UNAVAILABLE', plainMessage, details);
  const message = `${plainMessage.slice(0, -1)} (${reason}).`;
  return new GatewayError('BACKEND_UNAVAILABLE', message, { ...details, reason });
}

export function viewNotFound(id: string): GatewayError {
  return new GatewayError('VIEW_NOT_FOUND', `There is no view ${JSON.stringify(id)}.`);
}

/** Views and templates share their names, because they share the path /mcp/{name}. `taken`: what has the name. */
export function duplicateView(id: string, taken: 'template' | 'view'): GatewayError {
  return new GatewayError('DUPLICATE_VIEW', `The name "${id}" belongs to a ${taken}: choose another one.`);
}

/** `If-Match` names another version. */
export function changedMeanwhile(what: 'instance' | 'view', id: string): GatewayError {
  const message = `The ${what} "${id}" is not as it was when you read it: read it again, then change it.`;
  return new GatewayError('PRECONDITION_FAILED', message);
}
