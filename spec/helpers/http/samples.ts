// Sample definition and snapshot of an instance, for the specs of src/http/routes. Specs override fields.

import type { InstanceDefinition, InstanceSnapshot } from '../../../src/domain/instances/instance.ts';

/** A definition with every field filled. */
export function definitionSample(over: Partial<InstanceDefinition> = {}): InstanceDefinition {
  return {
    id: 'one',
    serverId: 'one',
    template: 'demo',
    transport: 'http',
    endpoint: 'http://127.0.0.1:9000/mcp',
    command: 'serve',
    args: ['--fast'],
    workingDir: '/srv',
    env: { TOKEN: 'secret' },
    headers: { Authorization: 'secret' },
    weight: 2,
    metadata: { team: 'a' },
    source: 'api',
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-02T00:00:00.000Z',
    ...over,
  };
}

/** A healthy snapshot. */
export function snapshotSample(over: Partial<InstanceSnapshot> = {}): InstanceSnapshot {
  return {
    id: 'one',
    serverId: 'one',
    template: 'demo',
    state: 'healthy',
    healthy: true,
    inFlight: 1,
    weight: 2,
    score: 99.96,
    latencyMs: 1.23456,
    consecutiveFailures: 0,
    ejection: null,
    lastCheck: '2026-01-03T00:00:00.000Z',
    nextAttemptAt: null,
    reason: null,
    restarts: 0,
    era: 'legacy',
    pid: null,
    stderr: [],
    ...over,
  };
}
