// The health of a template, counted from the snapshots of its instances.

import type { GatewayEvent } from '../domain/events.ts';
import type { InstanceSnapshot } from '../domain/instance.ts';
import type { StrategyName } from '../domain/policy.ts';

export interface TemplateHealth {
  readonly template: string;
  readonly strategy: StrategyName;
  /** All instances, including draining ones. */
  readonly instances: readonly InstanceSnapshot[];
  /** Without draining and stopped ones. */
  readonly total: number;
  readonly healthy: number;
  /** 0 to 100, one decimal; 0 without instances. */
  readonly healthPercentage: number;
}

/** Selects the events that may change the health of a template. */
export function changesHealthOf(template: string): (event: GatewayEvent) => boolean {
  return (event) => event.type.startsWith('instance.') && 'template' in event && event.template === template;
}

export function healthOf(
  template: string,
  strategy: StrategyName,
  instances: readonly InstanceSnapshot[],
): TemplateHealth {
  const counted = instances.filter(({ state }) => state !== 'draining' && state !== 'stopped');
  const total = counted.length;
  const healthy = counted.filter((snapshot) => snapshot.healthy).length;
  const healthPercentage = total === 0 ? 0 : Math.round((healthy / total) * 1000) / 10;
  return { template, strategy, instances, total, healthy, healthPercentage };
}
