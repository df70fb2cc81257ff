// Health of one template, and of the gateway on both surfaces. Whether this process accepts requests is routes/liveness.ts.

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/account.ts';
import { databaseUnavailable } from '../../domain/errors.ts';
import { type InstanceDefinition, type InstanceSnapshot, TRANSPORT_KINDS } from '../../domain/instance.ts';
import { STRATEGY_NAMES } from '../../domain/policy.ts';
import { API_VERSION } from '../../domain/version.ts';
import type { Gateway } from '../../gateway.ts';
import type { Server } from '../../gateway-types.ts';
import { errorReply } from '../error-reply.ts';
import { TemplateParams } from '../parameters.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import {
  CLOSED,
  integer,
  NullableEjection,
  NullableText,
  NullableTime,
  number,
  rounded,
  Time,
  text,
} from '../schemas.ts';
import { seesMachine } from '../visible.ts';
import { fullReason, INSTANCE_STATES } from './instances.ts';

const InstanceCounts = Type.Object({
  total: Type.Integer(),
  healthy: Type.Integer(),
  unhealthy: integer(0),
});
type InstanceCounts = Static<typeof InstanceCounts>;

/** Counts instances, without draining and stopped ones: the same count for every answer. */
export function instanceCounts(servers: readonly Pick<Server, 'snapshot'>[]): InstanceCounts {
  const counted = servers.filter(isCounted);
  const healthy = counted.filter(({ snapshot }) => snapshot.healthy).length;
  return { total: counted.length, healthy, unhealthy: counted.length - healthy };
}

function isCounted({ snapshot }: Pick<Server, 'snapshot'>): boolean {
  return snapshot.state !== 'draining' && snapshot.state !== 'stopped';
}

const DatabaseConnection = Type.Enum(['connected', 'disconnected']);
type DatabaseConnection = Static<typeof DatabaseConnection>;

/** Body of GET /gateway/health. */
export const GatewayHealthView = Type.Object({
  status: Type.Enum(['healthy', 'degraded', 'unhealthy']),
  database: DatabaseConnection,
  templates: Type.Integer(),
  instances: InstanceCounts,
  uptime: integer(3_600),
  version: text('2.0.0'),
  build: text('0.1.0'),
});
export type GatewayHealthView = Static<typeof GatewayHealthView>;

/** Body of GET /health. */
export const ServerHealthView = Type.Object({
  status: Type.Enum(['healthy', 'unhealthy']),
  timestamp: Time,
  uptime: integer(3_600),
  version: text('2.0.0'),
  database: DatabaseConnection,
  mcp_servers: InstanceCounts,
});
export type ServerHealthView = Static<typeof ServerHealthView>;

/** Surface A: healthy when every instance is (or there is none), unhealthy when none is or the database is away. */
export function gatewayHealthView(
  gateway: Gateway,
  database: DatabaseConnection,
  build: string,
): GatewayHealthView {
  const instances = instanceCounts(gateway.servers());
  return {
    status: statusOf(instances, database),
    database,
    templates: gateway.templates().length,
    instances,
    uptime: gateway.stats().uptimeSeconds,
    version: API_VERSION,
    build,
  };
}

/** Surface B: the gateway itself; backends that fail do not make it unhealthy. */
export function serverHealthView(gateway: Gateway, database: DatabaseConnection): ServerHealthView {
  return {
    status: database === 'connected' ? 'healthy' : 'unhealthy',
    timestamp: new Date().toISOString(),
    uptime: gateway.stats().uptimeSeconds,
    version: API_VERSION,
    database,
    mcp_servers: instanceCounts(gateway.servers()),
  };
}

function statusOf(instances: InstanceCounts, database: DatabaseConnection): GatewayHealthView['status'] {
  if (database === 'disconnected' || (instances.total > 0 && instances.healthy === 0)) return 'unhealthy';
  return instances.unhealthy === 0 ? 'healthy' : 'degraded';
}

const healthFields = {
  healthy: Type.Boolean(),
  status: Type.Enum(['healthy', 'unhealthy']),
  state: Type.Enum([...INSTANCE_STATES], { examples: ['healthy'] }),
  transport: Type.Enum([...TRANSPORT_KINDS]),
  in_flight: integer(0),
  weight: integer(2),
  score: number(99.5),
  latency_ms: Type.Union([Type.Number(), Type.Null()], { examples: [1.25] }),
  consecutive_failures: integer(0),
  restarts: integer(0),
  last_check: NullableTime,
  reason: NullableText,
  ejection: NullableEjection,
};
export const InstanceHealth = Type.Object(healthFields);
export type InstanceHealth = Static<typeof InstanceHealth>;

/** Body of GET /mcp/{template}/health; with `?format=array` the instances are a list and carry their `id`. */
export const TemplateHealthView = Type.Object({
  template_name: text('everything'),
  status: Type.Enum(['healthy', 'unhealthy']),
  strategy: Type.Enum([...STRATEGY_NAMES], { examples: ['least_connections'] }),
  total_instances: Type.Integer(),
  healthy_instances: Type.Integer(),
  health_percentage: number(100),
  instances: Type.Union([
    Type.Record(Type.String(), InstanceHealth, { propertyNames: text('everything-1') }),
    Type.Array(Type.Object({ id: text('everything-1'), ...healthFields })),
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

/** The health of one instance; the reason is shown to viewers that may see how it is run. */
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
    restarts: snapshot.restarts,
    last_check: snapshot.lastCheck,
    reason: seesMachine(viewer) ? fullReason(snapshot) : null,
    ejection: snapshot.ejection,
  };
}

export const healthRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/mcp/:template/health',
    summary: 'Health of a template and its instances',
    scope: 'gateway:read',
    request: {
      params: TemplateParams,
      query: Type.Object({ format: Type.Optional(Type.Enum(['object', 'array'])) }, CLOSED),
    },
    answers: { 200: { description: 'Counts, and each instance', body: TemplateHealthView } },
    errors: ['TEMPLATE_NOT_FOUND'],
    handler: ({ params, query, principal }, { gateway }) => {
      const health = gateway.health(params.template);
      const { instances } = gateway.template(params.template);
      return json(200, templateHealthView(health, instances, query.format ?? 'object', principal));
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/gateway/health',
    summary: 'Health of the gateway and its instances',
    scope: 'open',
    answers: { 200: { description: 'Status and counts', body: GatewayHealthView } },
    errors: [],
    handler: async (_input, { gateway, build }) =>
      json(200, gatewayHealthView(gateway, await gateway.databaseStatus(), build)),
  }),
  defineRoute({
    method: 'GET',
    path: '/health',
    summary: 'Health of the gateway and its database',
    scope: 'open',
    answers: {
      200: { description: 'The database answers', body: ServerHealthView },
      503: {
        description: 'The database does not answer: the same with the fields of an error',
        body: ServerHealthView,
      },
    },
    errors: ['DATABASE_UNAVAILABLE'],
    handler: async ({ request }, { gateway }) => {
      const health = serverHealthView(gateway, await gateway.databaseStatus());
      if (health.database === 'connected') return json(200, health);
      // It is no refusal, so it does not leave as an error: everything else in it is true.
      return errorReply(databaseUnavailable(undefined), request.id, { fields: health });
    },
  }),
];
