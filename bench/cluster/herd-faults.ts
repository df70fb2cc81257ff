// The faults of `npm run cluster` with thousands of sessions besides its clients.

import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Node } from './deployment.ts';
import { type Disturbance, nowMs } from './history.ts';
import { heapOf, watchLoads } from './node-loads.ts';
import type { Run } from './run.ts';

/** Settings of nodes. */
export const MANY_SESSIONS = {
  GATEWAY_MAX_SESSIONS: '100000',
  GATEWAY_SESSION_SHARE: '100',
  GATEWAY_MAX_CONNECTIONS_PER_ADDRESS: '100000',
};

/** The deployment and the bars of faults with a stream for each session. */
export const MANY_STREAMS = {
  nodes: 3,
  database: 'PostgreSQL',
  templates: ['far'],
  settings: MANY_SESSIONS,
  isDirect: true,
  bars: { herdServedMs: 30_000, herdBytes: [128e6, 50_000] },
  shortestRun: 'standard',
} as const;

/** Sessions before the first measurement. */
const WARM_UP = 1_000;
/** Sessions are idle after a minute; what serves their requests is removed some time later. */
const IDLE_MS = 150_000;

/** Between two messages for all streams, for each stream. */
const NEWS_MS = 1;

/** Once: the node stays away until each of its sessions is served by the others. */
export async function herdOfOne({ deployment, herd, load, profiles }: Run): Promise<readonly Disturbance[]> {
  const [ended, ...others] = deployment.nodes;
  if (ended === undefined) throw new Error('there is no node');
  await delay(2_000);
  const endWatch = await watchLoads(others, deployment, profiles);
  await herd?.begin(ended.port);
  const fromMs = nowMs();
  await ended.kill();
  const untilMs = nowMs();
  await herd?.served();
  load.push(...(await endWatch()));
  await herd?.othersServed();
  return [{ what: `kill -9 of ${ended.id}`, fromMs, untilMs, servedMs: untilMs, backMs: nowMs() }];
}

/** The same, while messages for all streams are sent all the time. */
export async function newsOfOne(run: Run): Promise<readonly Disturbance[]> {
  const { herd, deployment } = run;
  await openAll(run, 0);
  const pauseMs = NEWS_MS * (herd?.count ?? 0);
  let last = 0;
  const tell = async (): Promise<void> => {
    last += 1;
    const params = { name: 'tell', arguments: { token: String(last) } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: last, method: 'tools/call', params });
    // A connection of its own: one that was idle may be closed just then.
    const request = httpRequest(deployment.backend, { method: 'POST', agent: false });
    request.end(body);
    const [answer] = await once(request, 'response');
    answer.resume();
  };
  let isOver = false;
  const telling = (async () => {
    while (!isOver) {
      await tell();
      await delay(pauseMs);
    }
  })();
  await delay(2 * pauseMs);
  const disturbances = await herdOfOne(run);
  isOver = true;
  await telling;
  await tell();
  await herd?.heard(last);
  return disturbances;
}

/** Until all sessions are idle. */
export async function idleSessions(run: Run): Promise<readonly Disturbance[]> {
  await openAll(run, IDLE_MS);
  await run.herd?.askSome();
  return [];
}

/** Measures what they take, after this pause. */
async function openAll({ deployment: { nodes }, herd, idle }: Run, pauseMs: number): Promise<void> {
  if (herd === undefined) throw new Error('there are no sessions');
  await herd.open(WARM_UP);
  await delay(pauseMs);
  const before = await Promise.all(nodes.map(measure));
  await herd.open();
  await delay(pauseMs);
  for (const from of before) {
    const to = await measure(from.node);
    const added = (field: 'sessions' | 'heapBytes' | 'memoryBytes') => to[field] - from[field];
    const bytes = { heapBytes: added('heapBytes'), memoryBytes: added('memoryBytes') };
    idle.push({ node: to.node.id, sessions: added('sessions'), ...bytes });
  }

  async function measure(node: Node) {
    const heapBytes = await heapOf(node);
    return {
      node,
      heapBytes,
      memoryBytes: node.memoryBytes,
      sessions: (await herd?.openedBy(node.port)) ?? 0,
    };
  }
}
