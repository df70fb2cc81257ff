import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import type { GatewayStats, Server } from '../../src/gateway-types.ts';
import { visibleStats } from '../../src/http/visible.ts';
import { definitionSample, snapshotSample } from '../helpers/http-samples.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the numbers a viewer may see');
const stats: GatewayStats = {
  ...{
    uptimeSeconds: 60,
    totalRequests: 100,
    errorRate: 0.5,
    averageResponseTimeMs: 9,
    activeConnections: 7,
  },
  ...{ p50Ms: 1, p95Ms: 2, p99Ms: 3, probes: { total: 4, passed: 3, lastAtMs: null } },
  instances: {
    a: { requests: 30, errorRate: 0.1, averageResponseTimeMs: 10, ejections: 0 },
    b: { requests: 10, errorRate: 0.5, averageResponseTimeMs: 50, ejections: 0 },
    other: { requests: 60, errorRate: 1, averageResponseTimeMs: 1, ejections: 0 },
  },
  clients: { parkedSessions: 2, maxSessions: 10, templates: new Map() },
};
const server = (serverId: string, inFlight: number): Server => ({
  definition: definitionSample({ serverId }),
  snapshot: snapshotSample({ serverId, inFlight }),
  clients: { sessions: 0, ownProcesses: 0, processes: [] },
});
const part = { ...ANONYMOUS, templates: new Set(['demo']) };

test('are all of them without a restriction', () => {
  assert.equal(visibleStats(stats, [], ANONYMOUS), stats);
});

test('are sums and means over the instances of a part', () => {
  const seen = visibleStats(stats, [server('a', 2), server('b', 1), server('never asked', 0)], part);
  assert.equal(seen, {
    ...{
      ...stats,
      totalRequests: 40,
      activeConnections: 3,
      errorRate: 0.2,
      averageResponseTimeMs: 20,
    },
    ...{ p50Ms: null, p95Ms: null, p99Ms: null },
    clients: { ...stats.clients, parkedSessions: null },
  });
});

test('are zeros where nothing may be seen', () => {
  const { totalRequests, errorRate, averageResponseTimeMs } = visibleStats(stats, [], part);
  assert.equal([totalRequests, errorRate, averageResponseTimeMs], [0, 0, 0]);
});

test.run();
