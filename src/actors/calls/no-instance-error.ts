// The error that says why no instance of a template takes a call.

import { backendUnavailable, noHealthyInstance, toolNotFound } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { Tried } from './routes.ts';

/** An instance that takes no call, as the error names it. */
export interface UnavailableInstance {
  readonly id: string;
  readonly state: InstanceState;
  readonly reason: string | null;
}

/** Most instances that an error names. */
const MOST_NAMED = 3;

/** The result of a search that found no instance. */
export interface Search {
  readonly template: string;
  /** The only instance that may answer. */
  readonly bound: UnavailableInstance | undefined;
  /** The wanted tool, if at least one instance does not have it. */
  readonly lackedTool: string | undefined;
  readonly tried: Tried;
}

/** `members`: all instances of the template. TOOL_NOT_FOUND unless an unavailable instance may have the tool. */
export function noInstanceError(
  { template, bound, lackedTool, tried }: Search,
  members: readonly UnavailableInstance[],
): GatewayError {
  const mayExist =
    bound === undefined && members.some((member) => !tried?.has(member.id) && mayReturn(member));
  if (lackedTool !== undefined && !mayExist) return toolNotFound(lackedTool, template);
  if (bound === undefined) return noneHealthy(template, members);
  return backendUnavailable(`"${bound.id}" is ${bound.state}`, { delivered: 'no' });
}

/**
 * NO_HEALTHY_INSTANCE: `a is starting; b: connection refused`, at most three of them and how many there are more. Reasons
 * hold no secrets.
 */
export function noneHealthy(template: string, instances: readonly UnavailableInstance[]): GatewayError {
  if (instances.length === 0) return noHealthyInstance(template, 'none is registered');
  const absent = instances.filter(({ state }) => state !== 'healthy');
  const named = absent.slice(0, MOST_NAMED).map(clauseOf);
  const more = absent.length - named.length;
  return noHealthyInstance(template, [...named, ...(more === 0 ? [] : [`and ${more} more`])].join('; '));
}

/** True for an instance that may become available on this node: its tools are unknown. */
function mayReturn({ state }: UnavailableInstance): boolean {
  return state === 'starting' || state === 'unhealthy';
}

function clauseOf({ id, state, reason }: UnavailableInstance): string {
  const hasReason = state === 'unhealthy' || state === 'stopped';
  return hasReason && reason !== null ? `${id}: ${reason}` : `${id} is ${state}`;
}
