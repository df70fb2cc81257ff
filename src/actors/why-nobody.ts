// Says of the instances of a template why none of them can take a call: for the message of NO_HEALTHY_INSTANCE.

import type { InstanceState } from '../domain/instance.ts';

/** What is told of an instance. */
interface Absent {
  readonly id: string;
  readonly state: InstanceState;
  readonly reason: string | null;
}

/** Instances that are named. */
const MOST_NAMED = 3;

/** `a is starting; b: connection refused`, at most three of them and how many there are more. Reasons hold no secrets. */
export function whyNobody(instances: readonly Absent[]): string {
  if (instances.length === 0) return 'none is registered';
  const absent = instances.filter(({ state }) => state !== 'healthy');
  const named = absent.slice(0, MOST_NAMED).map(clauseOf);
  const more = absent.length - named.length;
  return [...named, ...(more === 0 ? [] : [`and ${more} more`])].join('; ');
}

/** True of an instance that is not there and may come back to this node: what it can do is not known. */
export function mayComeBack({ state }: Pick<Absent, 'state'>): boolean {
  return state === 'starting' || state === 'unhealthy';
}

function clauseOf({ id, state, reason }: Absent): string {
  const isTelling = state === 'unhealthy' || state === 'stopped';
  return isTelling && reason !== null ? `${id}: ${reason}` : `${id} is ${state}`;
}
