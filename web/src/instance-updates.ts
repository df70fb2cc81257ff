// The fields of an instance record that an event contains, so that a page shows them before it reads the record. Pure.

import type { GatewayEvent, Instance } from './types.ts';

export type InstanceUpdate = Partial<Pick<Instance, 'state' | 'healthy' | 'reason' | 'ejection'>>;

const STATES: Readonly<Record<string, Instance['state']>> = {
  'instance.starting': 'starting',
  'instance.healthy': 'healthy',
  'instance.unhealthy': 'unhealthy',
  'instance.restarting': 'unhealthy',
  'instance.crashed': 'unhealthy',
  'instance.draining': 'draining',
  'instance.stopped': 'stopped',
};

/** `known` is the previous state. Empty for an event that only says that the record changed. */
export function updateOf(event: GatewayEvent, known: Instance['state'] | undefined): InstanceUpdate {
  const { type, at, reason, for_ms } = event;
  if (type === 'instance.readmitted') return { ejection: null };
  if (type === 'instance.ejected') {
    const until = new Date(Date.parse(at) + Number(for_ms)).toISOString();
    return { ejection: { reason: String(reason), until } };
  }
  const state = STATES[type];
  // A draining instance stays so, whatever its connection does.
  if (state === undefined || (known === 'draining' && state !== 'stopped')) return {};
  return stateUpdate(state, typeof reason === 'string' ? reason : undefined);
}

/** A new state, and its reason if there is one: a healthy instance has none. */
export function stateUpdate(state: Instance['state'], reason?: string): InstanceUpdate {
  const healthy = state === 'healthy';
  if (healthy) return { state, healthy, reason: null };
  return reason === undefined ? { state, healthy } : { state, healthy, reason };
}
