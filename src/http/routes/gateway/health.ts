// Health of the gateway: with its instances at `/gateway/health`, without them at `/health`.

import Type, { type Static } from 'typebox';
import { databaseUnavailable } from '../../../domain/errors/gateway-errors.ts';
import { countHealth, type InstanceState } from '../../../domain/instances/instance.ts';
import { API_VERSION, VERSION } from '../../../domain/version.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import type { StatisticsServices } from '../../all-nodes/statistics.ts';
import { integer, named, Time, text } from '../../records/schemas.ts';
import { errorReply } from '../../replies/error-reply.ts';
import { json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import type { Services } from '../../services.ts';

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

/** The health of this node alone. */
export function ownHealth(
  services: Pick<StatisticsServices, 'gateway' | 'traffic'>,
): Promise<Static<typeof GatewayHealth>> {
  return healthOf(ownCounts(services.gateway), services);
}

async function healthOf(
  counts: Counts | Promise<Counts>,
  { gateway, traffic }: Pick<StatisticsServices, 'gateway' | 'traffic'>,
): Promise<Static<typeof GatewayHealth>> {
  const [database, { instances, canServe, partial }] = await Promise.all([gateway.databaseStatus(), counts]);
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
  readonly partial: ReturnType<typeof partialField>;
}

/** The counts of all nodes. Other nodes are asked as this node, not as the caller, since the answer has only numbers. */
function countsOf({
  gateway,
  otherMembers,
  openStatistics,
}: Pick<Services, 'gateway' | 'otherMembers' | 'openStatistics'>): Counts | Promise<Counts> {
  if (otherMembers.isAlone) return ownCounts(gateway);
  return openStatistics().then((statistics) => {
    const counted = Object.values(statistics.instances);
    const { total, healthy } = countHealth(counted);
    const isHealthy = (state: InstanceState) => state === 'healthy';
    const canServe = counted.some(({ state, nodes = {} }) =>
      [state, ...Object.values(nodes)].some(isHealthy),
    );
    const instances = { total, healthy, unhealthy: total - healthy };
    return { instances, canServe, partial: partialField(statistics.partial ?? []) };
  });
}

function ownCounts(gateway: StatisticsServices['gateway']): Counts {
  const instances = instanceCounts(gateway);
  return { instances, canServe: instances.healthy > 0, partial: {} };
}

export const healthRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/health', {
    summary: 'Health of the deployment and its instances',
    scope: 'open',
    answers: { 200: { description: 'Status and counts', body: GatewayHealth } },
    handler: async (_input, services) => json(200, await healthOf(countsOf(services), services)),
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
