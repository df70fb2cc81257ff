// Statistics: of the deployment at `/gateway/stats`, of this node at `/stats` (requests per server), and metrics for Prometheus.
// counts/traffic-counts.ts counts.

import Type from 'typebox';
import { STRATEGY_NAMES } from '../../../balancing/strategies.ts';
import { whenKnown } from '../../../domain/time/when-known.ts';
import { METRICS_TYPE } from '../../../metrics/prometheus.ts';
import { HistoryRecord, historyOf, ownHistory } from '../../all-nodes/history.ts';
import { ownStatistics, statisticsOf } from '../../all-nodes/statistics.ts';
import { visibleServers, visibleStats } from '../../callers/visible.ts';
import { integer } from '../../records/schemas.ts';
import { CountByServer, requestsByServer, StatisticsRecord } from '../../records/statistics-record.ts';
import { jsonInTurns } from '../../replies/json-in-turns.ts';
import { bytes, json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';

const ServerStatistics = Type.Object({
  uptime: integer(3_600),
  total_requests: integer(1_200),
  active_servers: Type.Integer(),
  healthy_servers: Type.Integer(),
  load_balancer: Type.Object({
    strategy: Type.Enum([...STRATEGY_NAMES], { examples: ['least_connections'] }),
    total_requests: integer(1_200),
    requests_per_server: CountByServer,
  }),
});

export const statisticsRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/stats', {
    summary: 'Requests, times, balancing and health checks of the deployment',
    scope: 'gateway:read',
    isForwarded: true,
    answers: { 200: { description: 'Sums of all nodes, each since its start', body: StatisticsRecord } },
    handler: async ({ principal, request }, services) => {
      const body = await (request.isForwarded ? ownStatistics : statisticsOf)(principal, services);
      return jsonInTurns(body, services.scheduler);
    },
  }),
  defineRoute('GET', '/gateway/history', {
    summary: 'The load of the last hour, in steps of 10 s',
    scope: 'gateway:read',
    isForwarded: true,
    answers: {
      200: {
        description:
          'Totals of all templates at all nodes, oldest first; empty for a caller that may use some of them only. `sessions` needs the scope `admin`',
        body: HistoryRecord,
      },
    },
    handler: ({ principal, request }, services) =>
      whenKnown((request.isForwarded ? ownHistory : historyOf)(principal, services), (body) =>
        json(200, body),
      ),
  }),
  defineRoute('GET', '/stats', {
    summary: 'Requests per server at this node',
    scope: 'gateway:read',
    answers: { 200: { description: 'Numbers since the start', body: ServerStatistics } },
    handler: async ({ principal }, { gateway, scheduler }) => {
      const servers = await visibleServers(gateway, principal, scheduler);
      await scheduler.turn();
      const stats = visibleStats(gateway.stats(), servers, principal);
      const body = {
        uptime: stats.uptimeSeconds,
        total_requests: stats.totalRequests,
        active_servers: servers.filter(({ snapshot }) => snapshot.state !== 'stopped').length,
        healthy_servers: servers.filter(({ snapshot }) => snapshot.healthy).length,
        load_balancer: {
          strategy: gateway.policy.strategy,
          total_requests: stats.totalRequests,
          requests_per_server: await requestsByServer(servers, stats, scheduler),
        },
      };
      return jsonInTurns(body, scheduler);
    },
  }),
  defineRoute('GET', '/metrics', {
    summary: 'Metrics for Prometheus',
    scope: 'gateway:read',
    answers: {
      200: {
        description:
          'Counts since the start, and the present state, in the text format of Prometheus. A caller that is limited to templates gets only those of its templates.',
        types: ['text/plain'],
        body: Type.String({ examples: ['stagedoor_queue_length{template="everything"} 0\n'] }),
      },
    },
    handler: async ({ principal }, { metrics }) => ({
      ...bytes(200, await metrics.text(principal)),
      type: METRICS_TYPE,
    }),
  }),
];
