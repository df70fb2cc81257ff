// How the health of a template looks. Source: spec, "Template health response"; decisions, "Surface A bodies".

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/account.ts';
import { type InstanceDefinition, type InstanceSnapshot, TRANSPORT_KINDS } from '../../domain/instance.ts';
import { STRATEGY_NAMES } from '../../domain/policy.ts';
import type { Gateway } from '../../gateway.ts';
import { NullableEjection, NullableText } from '../schemas.ts';
import { fullReason, INSTANCE_STATES, seesMachine } from './instance-record.ts';
import { rounded } from './rounded.ts';

const healthFields = {
  healthy: Type.Boolean(),
  status: Type.Enum(['healthy', 'unhealthy']),
  state: Type.Enum([...INSTANCE_STATES]),
  transport: Type.Enum([...TRANSPORT_KINDS]),
  in_flight: Type.Integer(),
  weight: Type.Integer(),
  score: Type.Number(),
  latency_ms: Type.Union([Type.Number(), Type.Null()]),
  consecutive_failures: Type.Integer(),
  last_check: NullableText,
  reason: NullableText,
  ejection: NullableEjection,
};
export const InstanceHealth = Type.Object(healthFields);
export type InstanceHealth = Static<typeof InstanceHealth>;

/** Schema of the answer; with `?format=array` the instances are a list and carry their `id`. */
export const TemplateHealthView = Type.Object({
  template_name: Type.String(),
  status: Type.Enum(['healthy', 'unhealthy']),
  strategy: Type.Enum([...STRATEGY_NAMES]),
  total_instances: Type.Integer(),
  healthy_instances: Type.Integer(),
  health_percentage: Type.Number(),
  instances: Type.Union([
    Type.Record(Type.String(), InstanceHealth),
    Type.Array(Type.Object({ id: Type.String(), ...healthFields })),
  ]),
});
export type TemplateHealthView = Static<typeof TemplateHealthView>;

/** Makes the answer for one viewer. The template is healthy when at least one instance is. */
export function templateHealthView(
  health: ReturnType<Gateway['health']>,
  definitions: readonly InstanceDefinition[],
  format: 'object' | 'array',
  viewer: Principal,
): TemplateHealthView {
  const transports = new Map(definitions.map(({ id, transport }) => [id, transport]));
  const views = health.instances.flatMap((snapshot) => {
    const transport = transports.get(snapshot.id);
    return transport === undefined
      ? []
      : [[snapshot.id, instanceHealth(snapshot, transport, viewer)] as const];
  });
  return {
    template_name: health.template,
    status: health.healthy > 0 ? 'healthy' : 'unhealthy',
    strategy: health.strategy,
    total_instances: health.total,
    healthy_instances: health.healthy,
    health_percentage: health.healthPercentage,
    instances: format === 'array' ? views.map(([id, view]) => ({ id, ...view })) : Object.fromEntries(views),
  };
}

/** The health of one instance; why it is not healthy is told to those who may see how it is run. */
export function instanceHealth(
  snapshot: InstanceSnapshot,
  transport: InstanceDefinition['transport'],
  viewer: Principal,
): InstanceHealth {
  return {
    healthy: snapshot.healthy,
    status: snapshot.healthy ? 'healthy' : 'unhealthy',
    state: snapshot.state,
    transport: snapshot.foundTransport ?? transport,
    in_flight: snapshot.inFlight,
    weight: snapshot.weight,
    score: rounded(snapshot.score, 1),
    latency_ms: snapshot.latencyMs === null ? null : rounded(snapshot.latencyMs, 3),
    consecutive_failures: snapshot.consecutiveFailures,
    last_check: snapshot.lastCheck,
    reason: seesMachine(viewer) ? fullReason(snapshot) : null,
    ejection: snapshot.ejection,
  };
}
