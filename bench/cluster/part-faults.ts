// Faults of parts of a deployment: a worker, Redis, the link between two nodes; and what all faults use.

import { setTimeout as delay } from 'node:timers/promises';
import type { Node } from './deployment.ts';
import { type Disturbance, nowMs } from './history.ts';
import type { Run } from './run.ts';

/** The others serve its sessions at once. */
export async function killedWorker({ deployment: { nodes }, random }: Run): Promise<Disturbance> {
  const node = present(nodes[0]);
  const before = node.workers;
  const pid = before[Math.floor(random() * before.length)];
  if (pid === undefined) throw new Error('the node has no workers');
  const fromMs = nowMs();
  process.kill(pid, 'SIGKILL');
  while (node.workers.includes(pid)) await delay(10);
  const untilMs = nowMs();
  while (node.workers.length < before.length) await delay(10);
  return { what: `kill -9 of worker ${pid}`, fromMs, untilMs, servedMs: untilMs, backMs: nowMs() };
}

/** No call may fail. */
export async function withoutRedis({ deployment: { redis } }: Run, ms: number): Promise<Disturbance> {
  redis?.refuse();
  const fault = momentary('Redis refuses connections');
  await delay(ms);
  await redis?.pass();
  return { ...fault, lastsUntilMs: nowMs() };
}

/** No call may fail. */
export async function late(node: Node | undefined, lateMs: number, ms: number): Promise<Disturbance> {
  const { id, peers } = present(node);
  peers?.delay(lateMs);
  const fault = momentary(`${id} is far from the others`);
  await delay(ms);
  await peers?.pass();
  return { ...fault, lastsUntilMs: nowMs(), endsNoLife: true };
}

/** A fault that excuses no call in flight. */
export function momentary(what: string): Disturbance {
  const untilMs = nowMs();
  return { what, fromMs: untilMs, untilMs, servedMs: untilMs, backMs: untilMs };
}

export function present(node: Node | undefined): Node {
  if (node === undefined) throw new Error('there is no such node');
  return node;
}
