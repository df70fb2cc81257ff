// How the health of the whole gateway looks on each surface.
// Sources: spec, "Gateway health response"; decisions, "Surface A bodies" and "Surface B bodies".

import Type, { type Static } from 'typebox';
import { API_VERSION } from '../../domain/version.ts';
import type { Gateway } from '../../gateway.ts';
import { InstanceCounts, instanceCounts } from './instance-counts.ts';

const Database = Type.Enum(['connected', 'disconnected']);
type Database = Static<typeof Database>;

/** Schema of GET /gateway/health. */
export const GatewayHealthView = Type.Object({
  status: Type.Enum(['healthy', 'degraded', 'unhealthy']),
  database: Database,
  templates: Type.Integer(),
  instances: InstanceCounts,
  uptime: Type.Integer(),
  version: Type.String(),
  build: Type.String(),
});
export type GatewayHealthView = Static<typeof GatewayHealthView>;

/** Schema of GET /health. */
export const ServerHealthView = Type.Object({
  status: Type.Enum(['healthy', 'unhealthy']),
  timestamp: Type.String(),
  uptime: Type.Integer(),
  version: Type.String(),
  database: Database,
  mcp_servers: InstanceCounts,
});
export type ServerHealthView = Static<typeof ServerHealthView>;

/** Surface A: healthy when every instance is (or there is none), unhealthy when none is or the database is away. */
export function gatewayHealthView(gateway: Gateway, database: Database, build: string): GatewayHealthView {
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
export function serverHealthView(gateway: Gateway, database: Database): ServerHealthView {
  return {
    status: database === 'connected' ? 'healthy' : 'unhealthy',
    timestamp: new Date().toISOString(),
    uptime: gateway.stats().uptimeSeconds,
    version: API_VERSION,
    database,
    mcp_servers: instanceCounts(gateway.servers()),
  };
}

function statusOf(instances: InstanceCounts, database: Database): GatewayHealthView['status'] {
  if (database === 'disconnected' || (instances.total > 0 && instances.healthy === 0)) return 'unhealthy';
  return instances.unhealthy === 0 ? 'healthy' : 'degraded';
}
