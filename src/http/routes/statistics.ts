// The numbers of the gateway, on both surfaces.

import Type from 'typebox';
import { STRATEGY_NAMES } from '../../domain/policy.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { requestsByServer, StatisticsView, statisticsView } from '../views/statistics.ts';
import { visibleStats } from '../views/visible-stats.ts';
import { visibleServers } from '../visible.ts';

/** Source: spec, "Statistics response". */
const ServerStatistics = Type.Object({
  uptime: Type.Integer(),
  total_requests: Type.Integer(),
  active_servers: Type.Integer(),
  healthy_servers: Type.Integer(),
  load_balancer: Type.Object({
    strategy: Type.Enum([...STRATEGY_NAMES]),
    total_requests: Type.Integer(),
    requests_per_server: Type.Record(Type.String(), Type.Integer()),
  }),
});

export const statisticsRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/gateway/stats',
    summary: 'Requests, times, balancing and health checks',
    scope: 'gateway:read',
    answers: { 200: { description: 'Numbers since the start', body: StatisticsView } },
    errors: [],
    handler: ({ principal }, { gateway }) => json(200, statisticsView(gateway, principal)),
  }),
  defineRoute({
    method: 'GET',
    path: '/stats',
    summary: 'Requests per server',
    scope: 'gateway:read',
    answers: { 200: { description: 'Numbers since the start', body: ServerStatistics } },
    errors: [],
    handler: ({ principal }, { gateway }) => {
      const servers = visibleServers(gateway, principal);
      const stats = visibleStats(gateway.stats(), servers, principal);
      return json(200, {
        uptime: stats.uptimeSeconds,
        total_requests: stats.totalRequests,
        active_servers: servers.filter(({ snapshot }) => snapshot.state !== 'stopped').length,
        healthy_servers: servers.filter(({ snapshot }) => snapshot.healthy).length,
        load_balancer: {
          strategy: gateway.policy.strategy,
          total_requests: stats.totalRequests,
          requests_per_server: requestsByServer(servers, stats),
        },
      });
    },
  }),
];
