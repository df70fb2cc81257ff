// The error that says why no instance of a template takes a call.

import { backendUnavailable, noHealthyInstance, toolNotFound } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { Tried } from './routes.ts';

/** What the error says about an instance. */
export interface Absent {
  readonly id: string;
  readonly state: InstanceState;
  readonly reason: string | null;
}

/** Instances that are named. */
const MOST_NAMED = 3;

/** The search of a call that no instance took. */
export interface Search {
  readonly template: string;
  /** The only one that may answer. */
  readonly bound: Absent | undefined;
  /** The tool that at least one of the instances does not have. */
  readonly lackedTool: string | undefined;
  readonly tried: Tried;
}

/** Of all `members` of the template. TOOL_NOT_FOUND unless an instance is away that may have it. */
export function noInstanceError(
  { template, bound, lackedTool, tried }: Search,
  members: readonly Absent[],
): GatewayError {
  const mayBeThere = bound === undefined && members.some((one) => !tried?.has(one.id) && mayComeBack(one));
  if (lackedTool !== undefined && !mayBeThere) return toolNotFound(lackedTool, template);
  if (bound === undefined) return noneHealthy(template, members);
  return backendUnavailable(`"${bound.id}" is ${bound.state}`, { delivered: 'no' });
}

/**
 * NO_HEALTHY_INSTANCE: `a is starting; b: connection refused`, at most three of them and how many there are more. Reasons
 * hold no secrets.
 */
export function noneHealthy(template: string, instances: readonly Absent[]): GatewayError {
  if (instances.length === 0) return noHealthyInstance(template, 'none is registered');
  const absent = instances.filter(({ state }) => state !== 'healthy');
  const named = absent.slice(0, MOST_NAMED).map(clauseOf);
  const more = absent.length - named.length;
  return noHealthyInstance(template, [...named, ...(more === 0 ? [] : [`and ${more} more`])].join('; '));
}

/** The instance is away and may come back to this node: its tools are not known. */
function mayComeBack({ state }: Absent): boolean {
  return state === 'starting' || state === 'unhealthy';
}

function clauseOf({ id, state, reason }: Absent): string {
  const isTelling = state === 'unhealthy' || state === 'stopped';
  return isTelling && reason !== null ? `${id}: ${reason}` : `${id} is ${state}`;
}
