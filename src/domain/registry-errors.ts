// Errors about registered templates and instances: missing or invalid. The error of a registration names the broken rule.

import { OTHER_STATUS } from './error-codes.ts';
import { GatewayError } from './errors.ts';
import type { InstanceDefinition, InstanceSnapshot } from './instance.ts';

export function templateNotFound(template: string): GatewayError {
  return new GatewayError('TEMPLATE_NOT_FOUND', `No template named "${template}" is registered.`);
}

export function serverNotFound(id: string): GatewayError {
  return new GatewayError('SERVER_NOT_FOUND', `No instance "${id}" is registered.`);
}

export function duplicateServer(id: string): GatewayError {
  return new GatewayError('DUPLICATE_SERVER', `"${id}" is registered already.`);
}

/** `what` is counted in `most`: "instances". */
export function registryFull(what: string, most: number): GatewayError {
  return new GatewayError(
    'REGISTRY_FULL',
    `There are ${most} ${what} already, which is the most there may be.`,
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

/** The command would be handed what the gateway keeps for itself; `reason` says what, as a sentence. */
export function commandExposes(reason: string): GatewayError {
  return new GatewayError('COMMAND_NOT_ALLOWED', reason, { status: OTHER_STATUS.COMMAND_NOT_ALLOWED });
}

/** A registration did not lead to a healthy instance within its `waitMs`: it was taken out, or it is not healthy yet. */
export function notHealthyInTime(
  { template, id }: Pick<InstanceDefinition, 'template' | 'id'>,
  { state, reason }: Pick<InstanceSnapshot, 'state' | 'reason'>,
  waitMs: number,
): GatewayError {
  const name = `Instance "${id}" of "${template}"`;
  if (state === 'stopped')
    return new GatewayError('SERVER_NOT_FOUND', `${name} was taken out or replaced before it was healthy.`);
  const plainMessage = `${name} is not healthy after ${waitMs / 1000} s; it stays registered and is tried again.`;
  const message = reason === null ? plainMessage : `${plainMessage.slice(0, -1)} (${reason}).`;
  return new GatewayError('BACKEND_UNAVAILABLE', message, {
    delivered: 'no',
    plainMessage,
    instanceId: id,
    ...(reason === null ? {} : { reason }),
  });
}
