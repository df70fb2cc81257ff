// The gateway events of an instance, made from its state and its emissions. fleet.ts emits them.

import { eventOf, type GatewayEvent } from '../../domain/events.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { InstanceRef } from './instance-ref.ts';
import type { InstanceEmission } from './instance-setup.ts';

/** The event for a new state. */
export function stateEvent(ref: InstanceRef, state: InstanceState): GatewayEvent {
  const fact = eventOf(ref);
  if (state === 'healthy') return { type: 'instance.healthy', ...fact, era: ref.peer?.era ?? 'unknown' };
  if (state === 'unhealthy') {
    const { reason, isReopening: isPlanned } = ref;
    return { type: 'instance.unhealthy', ...fact, reason: reason ?? 'unknown', isPlanned };
  }
  return { type: `instance.${state}`, ...fact };
}

/** The event for an emission besides a state; undefined for an emission that is not published. */
export function emissionEvent(ref: InstanceRef, emission: InstanceEmission): GatewayEvent | undefined {
  const fact = eventOf(ref);
  if (emission.type === 'probed') return { ...emission, type: 'probe.finished', ...fact };
  if (emission.type === 'restarting') {
    const isProgram = ref.definition.command !== undefined;
    return { ...emission, type: 'instance.restarting', ...fact, isProgram };
  }
  if (emission.type === 'toolOmitted') return { ...emission, type: 'tool.omitted', ...fact };
  return emission.list === 'tools' ? { type: 'tools.changed', ...fact } : undefined;
}
