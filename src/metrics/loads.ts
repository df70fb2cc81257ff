// The load of templates and instances in one interval, and the sum of the loads of several nodes. Source: ADR 172.

import { DurationHistogram } from '../counts/duration-histogram.ts';
import type { Tally } from '../counts/traffic-counts.ts';
import { type InstanceState, worstState } from '../domain/instances/instance.ts';

/** The load in one interval. `times`: only for a template. */
export interface Load extends Tally {
  readonly times?: DurationHistogram | undefined;
}

export interface TemplateLoad extends Load {
  readonly inFlight: number;
  readonly queued: number;
  readonly sessions: number;
}

export interface InstanceLoad extends Tally {
  readonly state: InstanceState;
  readonly inFlight: number;
}

/** The loads that the other nodes reported since the last sample. */
export interface TakenLoads {
  /** The loads of templates, by name. */
  readonly templates: ReadonlyMap<string, TemplateLoad>;
  /** The loads of instances, by server id. */
  readonly instances: ReadonlyMap<string, InstanceLoad>;
  /** The ids of nodes that reported nothing. */
  readonly partial: readonly string[];
}

export interface OtherLoads {
  /** Takes the loads since the last call; undefined while there are no other nodes. */
  take(): TakenLoads | undefined;
}

export function sumOfTemplateLoads(one: TemplateLoad, other: TemplateLoad | undefined): TemplateLoad {
  if (other === undefined) return one;
  return {
    ...sumOfLoads(one, other),
    inFlight: one.inFlight + other.inFlight,
    queued: one.queued + other.queued,
    sessions: one.sessions + other.sessions,
  };
}

export function sumOfInstanceLoads(one: InstanceLoad, other: InstanceLoad | undefined): InstanceLoad {
  if (other === undefined) return one;
  return {
    ...sumOfLoads(one, other),
    inFlight: one.inFlight + other.inFlight,
    state: worstState([one.state, other.state]),
  };
}

/** The sum of two loads of the same interval; `one` itself without another. */
export function sumOfLoads(one: Load, other: Load | undefined): Load {
  if (other === undefined) return one;
  const tally = { requests: one.requests + other.requests, failures: one.failures + other.failures };
  if (other.times === undefined || one.times === undefined)
    return { ...tally, times: one.times ?? other.times };
  const times = new DurationHistogram();
  times.add(one.times);
  times.add(other.times);
  return { ...tally, times };
}
