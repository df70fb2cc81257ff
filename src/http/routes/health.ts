// Health of a template, and of the gateway: with its instances at `/gateway/health`, without them at `/health`; and liveness and
// readiness of the process, for its supervisor.

import Type, { type Static } from 'typebox';
import { STRATEGY_NAMES } from '../../balancing/strategies.ts';
import { ANONYMOUS, mayDo, type Principal } from '../../domain/accounts/account.ts';
import { mayUseInView } from '../../domain/accounts/rights.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { databaseUnavailable, gatewayStarting, shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { nodeDraining } from '../../domain/errors/node-errors.ts';
import { countHealth, type InstanceState } from '../../domain/instances/instance.ts';
import { callable } from '../../domain/lists/listed-tools.ts';
import type { WithheldItem } from '../../domain/mcp/mcp.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import { API_VERSION, VERSION } from '../../domain/version.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { ShownTemplate } from '../../gateway/gateway-types.ts';
import { agreementOf, NodeWarnings } from '../all-nodes/agreement.ts';
import { MissingNodes, missing } from '../all-nodes/deployment.ts';
import { healthWith, knownAtPeers } from '../all-nodes/instances.ts';
import { type StatisticsServices, statisticsOf } from '../all-nodes/statistics.ts';
import { InstanceHealth } from '../records/instance-record.ts';
import { closed, integer, named, number, rounded, Time, text } from '../records/schemas.ts';
import { errorReply } from '../replies/error-reply.ts';
import { type BytesReply, json } from '../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../routing/route.ts';
import { TemplateParams } from '../routing/route-params.ts';
import type { Services } from '../services.ts';

const InstanceCounts = Type.Object({
  total: Type.Integer(),
  healthy: Type.Integer(),
  unhealthy: integer(0),
});

/** The counts of instances, made without snapshots of them: the answers that contain the counts need no credentials. */
function instanceCounts(gateway: Gateway): Static<typeof InstanceCounts> {
  const { total, healthy } = gateway.countInstances();
  return { total, healthy, unhealthy: total - healthy };
}

const DatabaseConnection = Type.Enum(['connected', 'disconnected']);

/** Healthy when every instance is (or there is none), unhealthy when no instance is or the database is unavailable. */
export const GatewayHealth = named('GatewayHealth', {
  status: Type.Enum(['healthy', 'degraded', 'unhealthy']),
  database: DatabaseConnection,
  templates: Type.Integer(),
  instances: InstanceCounts,
  uptime: integer(3_600),
  version: text('2.0.0'),
  build: text('0.1.0'),
  partial: MissingNodes,
});

/** The gateway itself: failing backends do not make it unhealthy. */
const ServerHealth = named('ServerHealth', {
  status: Type.Enum(['healthy', 'unhealthy']),
  timestamp: Time,
  uptime: integer(3_600),
  version: text('2.0.0'),
  database: DatabaseConnection,
  mcp_servers: InstanceCounts,
});

export async function healthOf({
  gateway,
  traffic,
  deployment,
  scheduler,
}: StatisticsServices): Promise<Static<typeof GatewayHealth>> {
  const [database, { instances, canServe, partial }] = await Promise.all([
    gateway.databaseStatus(),
    countsOf({ gateway, traffic, deployment, scheduler }),
  ]);
  const isDown = database === 'disconnected' || (instances.total > 0 && !canServe);
  const status = isDown ? 'unhealthy' : instances.unhealthy === 0 ? 'healthy' : 'degraded';
  const uptime = traffic.uptimeSeconds;
  const versions = { version: API_VERSION, build: VERSION };
  const templates = gateway.templates().length;
  return { status, database, templates, instances, uptime, ...versions, ...partial };
}

interface Counts {
  readonly instances: Static<typeof InstanceCounts>;
  /** True when at least one instance is healthy at some node. */
  readonly canServe: boolean;
  readonly partial: ReturnType<typeof missing>;
}

/** The counts of all nodes. Other nodes are asked as this node, not as the caller, since the answer has only numbers. */
function countsOf(services: StatisticsServices): Counts | Promise<Counts> {
  const { gateway, deployment } = services;
  const own = instanceCounts(gateway);
  if (deployment?.isAlone !== false) return { instances: own, canServe: own.healthy > 0, partial: {} };
  return whenKnown(statisticsOf(ANONYMOUS, services), (statistics) => {
    const counted = Object.values(statistics.instances);
    const { total, healthy } = countHealth(counted);
    const isHealthy = (state: InstanceState) => state === 'healthy';
    const canServe = counted.some(({ state, nodes = {} }) =>
      [state, ...Object.values(nodes)].some(isHealthy),
    );
    const instances = { total, healthy, unhealthy: total - healthy };
    return { instances, canServe, partial: missing(statistics.partial ?? []) };
  });
}

/** Items of a template that the lists of all templates leave out. */
export const Withheld = Type.Optional(
  Type.Array(Type.Object({ list: text('tools'), name: text('search'), reason: text('its name is empty') }), {
    description:
      'With `gateway:write`, and only if there are any: items that the lists of all templates leave out, because clients could not use them, and tools that wait for approval',
  }),
);

export async function withheldFor(
  viewer: Principal,
  template: string,
  { withheld }: Pick<ShownTemplate, 'withheld'>,
  scheduler: Services['scheduler'],
): Promise<{ withheld?: { list: string; name: string; reason: string }[] }> {
  if (withheld.length === 0 || !mayDo(viewer, ['gateway:write'])) return {};
  const toolOf = ({ list, name }: WithheldItem) => (list === 'tools' ? { template, tool: name } : undefined);
  const shown = await callable(viewer, withheld, toolOf, scheduler);
  return shown.length === 0 ? {} : { withheld: [...shown] };
}

/** Body of GET /mcp/{template}/health; with `?format=array` the instances are a list and carry their `id`. */
const TemplateHealth = named('TemplateHealth', {
  template_name: text('everything'),
  status: Type.Enum(['healthy', 'unhealthy']),
  strategy: Type.Enum([...STRATEGY_NAMES], { examples: ['least_connections'] }),
  total_instances: Type.Integer(),
  healthy_instances: Type.Integer(),
  health_percentage: number(100),
  instances: Type.Union([
    Type.Record(Type.String(), InstanceHealth, { propertyNames: text('everything-1') }),
    Type.Array(Type.Object({ id: text('everything-1'), ...InstanceHealth.properties })),
  ]),
  withheld: Withheld,
  partial: MissingNodes,
});

const Status = Type.Enum(['healthy', 'unhealthy']);
const ComponentHealth = Type.Object({
  status: Status,
  total_instances: Type.Integer(),
  healthy_instances: Type.Integer(),
});

/** Health of a view: the worst status of its templates. */
const ViewHealth = named('ViewHealth', {
  view: text('support'),
  ...ComponentHealth.properties,
  health_percentage: number(100),
  templates: Type.Record(Type.String(), ComponentHealth, { propertyNames: text('everything') }),
});

function viewHealth(
  { views }: Pick<Gateway, 'views'>,
  view: string,
  viewer: Principal,
): Static<typeof ViewHealth> {
  const visible = views.health(view).filter(({ template }) => mayUseInView(viewer, template));
  const parts = visible.map(({ template, total, healthy }) => {
    const status = healthy > 0 ? ('healthy' as const) : ('unhealthy' as const);
    return [template, { status, total_instances: total, healthy_instances: healthy }] as const;
  });
  const sum = (field: 'total_instances' | 'healthy_instances') =>
    parts.reduce((total, [, part]) => total + part[field], 0);
  const [total, healthy] = [sum('total_instances'), sum('healthy_instances')];
  const isHealthy = parts.length > 0 && parts.every(([, { status }]) => status === 'healthy');
  return {
    view,
    status: isHealthy ? 'healthy' : 'unhealthy',
    total_instances: total,
    healthy_instances: healthy,
    health_percentage: total === 0 ? 0 : rounded((healthy / total) * 100, 1),
    templates: Object.fromEntries(parts),
  };
}

export const healthRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/mcp/:template/health', {
    summary: 'Health of a template and its instances',
    scope: 'gateway:read',
    request: {
      params: TemplateParams,
      query: closed({ format: Type.Optional(Type.Enum(['object', 'array'])) }),
    },
    answers: {
      200: {
        description: 'Counts, and each instance; of a view, each of its templates',
        body: Type.Union([TemplateHealth, ViewHealth]),
      },
    },
    handler: async ({ params: { template }, query, principal }, { gateway, scheduler, deployment }) => {
      if (gateway.views.has(template)) return json(200, viewHealth(gateway, template, principal));
      const shown = gateway.template(template);
      const withheld = await withheldFor(principal, template, shown, scheduler);
      // `gateway.health` is not called as well: each makes a snapshot of all instances, 10,000 take 0.1 s.
      const servers = gateway.servers(template);
      return whenKnown(knownAtPeers(gateway, principal, deployment), (known) => {
        const healths = servers.map(
          (server) => [server.definition.id, healthWith(known, server, principal)] as const,
        );
        const { total, healthy, healthPercentage } = countHealth(healths.map(([, health]) => health));
        return json(200, {
          template_name: template,
          status: healthy > 0 ? 'healthy' : 'unhealthy',
          strategy: shown.policy.strategy,
          total_instances: total,
          healthy_instances: healthy,
          health_percentage: healthPercentage,
          instances:
            query.format === 'array'
              ? healths.map(([id, health]) => ({ id, ...health }))
              : Object.fromEntries(healths),
          ...withheld,
          ...missing(known.partial),
        });
      });
    },
  }),
  defineRoute('GET', '/gateway/health', {
    summary: 'Health of the deployment and its instances',
    scope: 'open',
    answers: { 200: { description: 'Status and counts', body: GatewayHealth } },
    handler: async (_input, services) => json(200, await healthOf(services)),
  }),
  defineRoute('GET', '/health', {
    summary: 'Health of the gateway and its database',
    scope: 'open',
    answers: {
      200: { description: 'The database answers', body: ServerHealth },
      503: {
        description: 'The database does not answer: the same with the fields of an error',
        body: ServerHealth,
      },
    },
    errors: ['DATABASE_UNAVAILABLE'],
    handler: async ({ request }, { gateway, clock, traffic }) => {
      const database = await gateway.databaseStatus();
      const health: Static<typeof ServerHealth> = {
        status: database === 'connected' ? 'healthy' : 'unhealthy',
        timestamp: new Date(clock.wall()).toISOString(),
        uptime: traffic.uptimeSeconds,
        version: API_VERSION,
        database,
        mcp_servers: instanceCounts(gateway),
      };
      if (database === 'connected') return json(200, health);
      // The error is not thrown, because the answer contains the other fields, too.
      return errorReply(databaseUnavailable(undefined), request.id, { fields: health });
    },
  }),
];

const WithWarnings = {
  /** The warnings of the node; present with `?verbose`. */
  warnings: Type.Optional(NodeWarnings),
  /** The nodes that did not answer; present with `?verbose`. */
  partial: MissingNodes,
};

// These routes need no credentials, and do not depend on the database: a restart would not repair its failure.
export const livenessRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/livez', {
    summary: 'Whether the process is alive',
    scope: 'open',
    answers: {
      200: { description: 'The process is alive', body: Type.Object({ status: Type.Literal('alive') }) },
    },
    handler: () => json(200, { status: 'alive' }),
  }),
  defineRoute('GET', '/readyz', {
    summary: 'Whether requests may be sent here',
    scope: 'open',
    // Probes may add anything to the path.
    request: { query: Type.Object({ verbose: Type.Optional(Type.String()) }) },
    answers: {
      200: {
        description: 'Requests may be sent',
        body: Type.Object({ status: Type.Literal('ready'), ...WithWarnings }),
      },
      503: {
        description: 'The fields of an error, and the status',
        body: Type.Object({
          status: Type.Enum(['starting', 'draining', 'shutting down']),
          ...WithWarnings,
        }),
      },
    },
    errors: ['SHUTTING_DOWN', 'NODE_UNAVAILABLE', 'NO_HEALTHY_INSTANCE'],
    handler: ({ request, query }, services) => {
      if (query.verbose === undefined) return readinessOf(services, request.id);
      return whenKnown(agreementOf(services), ({ warnings, partial }) =>
        readinessOf(services, request.id, { warnings, ...missing(partial) }),
      );
    },
  }),
];

function readinessOf(
  { gateway, readiness }: Pick<Services, 'gateway' | 'readiness'>,
  requestId: string,
  more: object = {},
): BytesReply {
  if (gateway.isReady) return json(200, { status: 'ready', ...more });
  if (readiness.isDraining) return refusal('draining', nodeDraining(), requestId, more);
  if (readiness.isLeaving || gateway.phase === 'closing')
    return refusal('shutting down', shuttingDown(), requestId, more);
  return startingReply(requestId, more);
}

/** The answer of `/readyz` during the start, and of every path before the accounts are loaded. */
export function startingReply(requestId: string, more: object = {}): BytesReply {
  return refusal('starting', gatewayStarting(), requestId, more);
}

function refusal(
  status: 'starting' | 'draining' | 'shutting down',
  error: GatewayError,
  requestId: string,
  more: object,
): BytesReply {
  return errorReply(error, requestId, { fields: { status, ...more } });
}
