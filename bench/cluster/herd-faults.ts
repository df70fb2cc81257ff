// The faults of `npm run cluster` with thousands of sessions besides its clients.

import { setTimeout as delay } from 'node:timers/promises';
import type { Node } from './deployment.ts';
import { type Disturbance, nowMs } from './history.ts';
import { heapOf, watchLoads } from './node-loads.ts';
import type { Run } from './run.ts';

/** Sessions before the first measurement. */
const WARM_UP = 1_000;
/** Sessions are parked after a minute; what serves their requests is removed some time later. */
const PARKED_MS = 150_000;

/** Once: the node stays away until each of its sessions is served by the others. */
export async function herdOfOne({ deployment, herd, load, profiles }: Run): Promise<readonly Disturbance[]> {
  const [ended, ...others] = deployment.nodes;
  if (ended === undefined) throw new Error('there is no node');
  await delay(2_000);
  const endWatch = await watchLoads(others, deployment, profiles);
  herd?.begin(ended.port);
  const fromMs = nowMs();
  await ended.kill();
  const untilMs = nowMs();
  await herd?.served();
  load.push(...(await endWatch()));
  await herd?.othersServed();
  return [{ what: `kill -9 of ${ended.id}`, fromMs, untilMs, servedMs: untilMs, backMs: nowMs() }];
}

/** Until all sessions are parked. */
export async function idleSessions({
  deployment: { nodes },
  herd,
  idle,
}: Run): Promise<readonly Disturbance[]> {
  if (herd === undefined) throw new Error('there are no sessions');
  await herd.open(WARM_UP);
  await delay(PARKED_MS);
  const before = await Promise.all(nodes.map(measure));
  await herd.open();
  await delay(PARKED_MS);
  for (const from of before) {
    const to = await measure(from.node);
    const added = (field: 'sessions' | 'heapBytes' | 'memoryBytes') => to[field] - from[field];
    const bytes = { heapBytes: added('heapBytes'), memoryBytes: added('memoryBytes') };
    idle.push({ node: to.node.id, sessions: added('sessions'), ...bytes });
  }
  await herd.askSome();
  return [];

  async function measure(node: Node) {
    const heapBytes = await heapOf(node);
    return { node, heapBytes, memoryBytes: node.memoryBytes, sessions: herd?.openedBy(node.port) ?? 0 };
  }
}
