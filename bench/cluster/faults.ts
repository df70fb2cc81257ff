// TABLE of the faults of `npm run cluster`. A row has its deployment, its clients, its bars and the disturbance itself, which runs
// while the clients call. Source: docs/explanation/cluster.md, the bars.

import { setTimeout as delay } from 'node:timers/promises';
import type { Kind } from './clients.ts';
import type { DeploymentOptions, Node, Template } from './deployment.ts';
import { herdOfOne, idleSessions, MANY_SESSIONS, MANY_STREAMS, newsOfOne } from './herd-faults.ts';
import { type Bars, type Disturbance, nowMs } from './history.ts';
import { HOST } from './network.ts';
import { PROFILED } from './node-loads.ts';
import { killedWorker, late, momentary, present, withoutRedis } from './part-faults.ts';
import type { Run } from './run.ts';

/** Each run has the faults of those before it. */
export const RUN_LENGTHS = ['quick', 'standard', 'long'] as const;

export type RunLength = (typeof RUN_LENGTHS)[number];

export interface Fault extends DeploymentOptions {
  readonly name: string;
  /** One line for the reader. */
  readonly what: string;
  readonly clients: readonly Clients[];
  readonly bars: Bars;
  /** Longer ones have it, too. `quick`: its short form shows something. `long`: others show much of it, or it takes long. */
  readonly shortestRun: RunLength;
  /** Many sessions besides: those with streams are open before the fault, the others are opened by its disturbance. */
  readonly herd?: 'with streams' | 'with news' | 'idle';
  /** Disturbs until the time is over; resolves when everything serves again. */
  disturb(run: Run): Promise<readonly Disturbance[]>;
}

/** A group of clients of one template. */
interface Clients {
  readonly kind: Kind;
  readonly count: number;
  readonly pauseMs: number;
  readonly callsPerSession: number;
  /** Only this one; default: each template of the fault. */
  readonly template?: Template;
}

/** Three clients each: the first only reads, see `UNSAFE_SHARES`. */
const STEADY = {
  legacy: { kind: 'legacy', count: 3, pauseMs: 100, callsPerSession: Number.POSITIVE_INFINITY },
  modern: { kind: 'modern', count: 3, pauseMs: 100, callsPerSession: Number.POSITIVE_INFINITY },
} as const;
/** The first of them never calls the tool that asks. */
const ASKED = { ...STEADY.legacy, kind: 'asked', count: 2, template: 'far' } as const;
const OVER_SSE = { ...STEADY.legacy, kind: 'sse', count: 2 } as const;
const OVER_BARE_SSE = { ...OVER_SSE, kind: 'bare sse', count: 1 } as const;
/** Sessions that begin and end all the time, so that faults meet openings and first unsafe calls. */
const VISITORS = { kind: 'plain', count: 20, pauseMs: 500, callsPerSession: 5 } as const;

const ALL_CLIENTS: readonly Clients[] = [
  STEADY.legacy,
  STEADY.modern,
  ASKED,
  OVER_SSE,
  OVER_BARE_SSE,
  VISITORS,
];

export const FAULTS: readonly Fault[] = [
  {
    name: 'restart',
    what: 'one node on SQLite: kill -9 every few seconds, started again at once',
    nodes: 1,
    database: 'SQLite',
    templates: ['far'],
    clients: [STEADY.legacy, STEADY.modern, VISITORS],
    bars: { firstAnswerMs: [2_000, 5_000] },
    shortestRun: 'quick',
    disturb: (run) => repeatedly(run, 4_000, (one) => killed(one, 0)),
  },
  {
    name: 'streams',
    what: 'the same, with clients that are asked during a call, and clients over HTTP+SSE',
    nodes: 1,
    database: 'SQLite',
    templates: ['far'],
    clients: [ASKED, OVER_SSE, OVER_BARE_SSE],
    bars: { firstAnswerMs: [2_000, 5_000] },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 4_000, (one) => killed(one, 0)),
  },
  {
    name: 'program',
    what: 'the same, and the clients share a program that ignores the end of its input and SIGTERM',
    nodes: 1,
    database: 'SQLite',
    templates: ['near'],
    clients: [STEADY.legacy, STEADY.modern, VISITORS],
    bars: { firstAnswerMs: [2_000, 5_000], programBackMs: 15_000 },
    shortestRun: 'quick',
    disturb: (run) => repeatedly(run, 4_000, (one) => killed(one, 0)),
  },
  {
    name: 'workers',
    what: 'one node on SQLite with three workers: kill -9 of one, started again at once',
    nodes: 1,
    workers: 3,
    database: 'SQLite',
    templates: ['far'],
    clients: ALL_CLIENTS,
    bars: { firstAnswerMs: [2_000, 5_000] },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 8_000, killedWorker),
  },
  {
    name: 'none',
    what: 'three nodes on PostgreSQL, and no fault',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: [STEADY.legacy, STEADY.modern].map((group) => ({ ...group, pauseMs: 5 })),
    bars: { endsNoLife: true },
    shortestRun: 'quick',
    disturb: async ({ seconds }) => {
      await delay(seconds * 1_000);
      return [];
    },
  },
  {
    name: 'kill',
    what: 'three nodes on PostgreSQL: kill -9 of one, started again at once',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: ALL_CLIENTS,
    bars: { firstAnswerMs: [2_000, 5_000] },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 8_000, (one) => killed(one, Math.floor(one.random() * 3))),
  },
  {
    name: 'moves',
    what: 'three nodes on PostgreSQL and a program of any node: kill -9, or SIGSTOP for 15 s, of the node that runs it',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['near'],
    clients: [STEADY.legacy, STEADY.modern],
    bars: { programBackMs: 15_000 },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 5_000, moved),
  },
  {
    name: 'moments',
    what: 'three nodes on PostgreSQL: kill -9 of the node of a session within 50 ms of its initialize, or of its first unsafe call',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: [STEADY.legacy, STEADY.modern, { ...VISITORS, count: 30 }],
    bars: { firstAnswerMs: [2_000, 5_000] },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 2_000, killedInMoment),
  },
  {
    name: 'rolling',
    what: 'three nodes on PostgreSQL: each is taken out of the balancer, stopped and started again',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: ALL_CLIENTS,
    bars: { firstAnswerMs: [2_000, 5_000] },
    shortestRun: 'standard',
    disturb: rolling,
  },
  {
    name: 'freeze',
    what: 'three nodes on PostgreSQL: SIGSTOP of one for 15 s, then SIGCONT',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: ALL_CLIENTS,
    bars: { firstAnswerMs: [15_000, 15_000] },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 5_000, ({ deployment: { nodes } }) => frozen(nodes.at(-1), 15_000)),
  },
  {
    name: 'slow',
    what: 'three nodes on PostgreSQL: one stands still for 3 s every 10 s',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: ALL_CLIENTS,
    bars: { firstAnswerMs: [4_000, 5_000], endsNoLife: true },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 7_000, ({ deployment: { nodes } }) => frozen(nodes.at(-1), 3_000)),
  },
  {
    name: 'database',
    what: 'three nodes on PostgreSQL: the database refuses connections for 60 s',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: [STEADY.legacy, STEADY.modern],
    bars: { firstAnswerMs: [2_000, 5_000], endsNoLife: true },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 5_000, (one) => withoutDatabase(one, 60_000)),
  },
  {
    name: 'redis',
    what: 'three nodes on PostgreSQL and Redis: Redis refuses connections for 20 s',
    nodes: 3,
    database: 'PostgreSQL',
    hasRedis: true,
    templates: ['far'],
    clients: [STEADY.legacy, STEADY.modern, VISITORS],
    bars: { firstAnswerMs: [2_000, 5_000], endsNoLife: true },
    shortestRun: 'standard',
    disturb: (run) => repeatedly(run, 5_000, (one) => withoutRedis(one, 20_000)),
  },
  {
    name: 'latency',
    what: 'three nodes on PostgreSQL: all bytes between one and the others are 150 ms late in each direction, for 20 s',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: ALL_CLIENTS,
    bars: { firstAnswerMs: [2_000, 5_000], endsNoLife: true },
    shortestRun: 'long',
    disturb: (run) => repeatedly(run, 5_000, ({ deployment: { nodes } }) => late(nodes.at(-1), 150, 20_000)),
  },
  {
    name: 'cut off',
    what: 'three nodes on PostgreSQL: one gets no bytes from the database for 20 s',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: [STEADY.legacy, STEADY.modern],
    bars: { firstAnswerMs: [15_000, 15_000] },
    shortestRun: 'long',
    disturb: (run) => repeatedly(run, 5_000, ({ deployment: { nodes } }) => cutOff(nodes.at(-1), 20_000)),
  },
  {
    name: 'unreachable',
    what: 'three nodes on PostgreSQL: the others get no bytes from one for 20 s',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    clients: [STEADY.legacy, STEADY.modern],
    bars: { firstAnswerMs: [15_000, 15_000] },
    shortestRun: 'long',
    disturb: (run) =>
      repeatedly(run, 5_000, ({ deployment: { nodes } }) => unreachable(nodes.at(-1), 20_000)),
  },
  {
    name: 'herd',
    what: 'three nodes on PostgreSQL: kill -9 of one, while each of many sessions (--sessions) has a stream',
    ...MANY_STREAMS,
    clients: [STEADY.legacy],
    herd: 'with streams',
    disturb: herdOfOne,
  },
  {
    name: 'news',
    what: 'three nodes on PostgreSQL: kill -9 of one, while each of many sessions (--sessions) gets numbered messages on its stream',
    ...MANY_STREAMS,
    shortestRun: 'long',
    settings: { ...MANY_SESSIONS, ...PROFILED },
    hasNews: true,
    clients: [],
    herd: 'with news',
    disturb: newsOfOne,
  },
  {
    name: 'idle',
    what: 'three nodes on PostgreSQL, and no fault: the memory of many sessions (--sessions) that wait without a stream',
    nodes: 3,
    database: 'PostgreSQL',
    templates: ['far'],
    settings: { ...MANY_SESSIONS, ...PROFILED },
    isDirect: true,
    clients: [],
    herd: 'idle',
    bars: { idleBytes: 6_000 },
    shortestRun: 'long',
    disturb: idleSessions,
  },
  {
    name: 'partition',
    what: 'three nodes in networks of their own: cut for 20 s each: one from the database, one from the database and the others, two from each other',
    nodes: 3,
    database: 'PostgreSQL',
    hasNetworks: true,
    templates: ['far', 'near'],
    clients: [STEADY.legacy, STEADY.modern],
    bars: { firstAnswerMs: [15_000, 15_000], programBackMs: 15_000 },
    shortestRun: 'standard',
    disturb: partitions,
  },
];

/** Disturbs after a pause of about this time, and again, until the time is over. */
async function repeatedly(
  run: Run,
  pauseMs: number,
  once: (run: Run) => Promise<Disturbance>,
): Promise<readonly Disturbance[]> {
  const untilMs = nowMs() + run.seconds * 1_000;
  const disturbances: Disturbance[] = [];
  do {
    await delay(pauseMs * (0.75 + run.random() / 2));
    disturbances.push(await once(run));
  } while (nowMs() < untilMs);
  await delay(pauseMs);
  return disturbances;
}

async function killed({ deployment: { nodes } }: Run, index: number): Promise<Disturbance> {
  const node = present(nodes[index]);
  const fromMs = nowMs();
  await node.kill();
  const untilMs = nowMs();
  await node.start();
  const backMs = nowMs();
  const servedMs = nodes.length === 1 ? backMs : untilMs;
  return { what: `kill -9 of ${node.id}`, fromMs, untilMs, servedMs, backMs };
}

/** Its program moves to another node, which takes it when the row of its node has expired, or back to a node that starts at once. */
async function moved(run: Run): Promise<Disturbance> {
  const node = present(run.runner());
  const fault = await (run.random() < 0.5
    ? killed(run, run.deployment.nodes.indexOf(node))
    : frozen(node, 15_000));
  await delay(PROGRAM_MS);
  return { ...fault, endsProgram: true, lastsUntilMs: nowMs() };
}

/** Until a program runs again, its own start included, in ms. */
const PROGRAM_MS = 17_000;

/** The node that opens or opened the session of a request that is just being sent. */
async function killedInMoment(run: Run): Promise<Disturbance> {
  const { deployment, random } = run;
  const kind = MOMENTS[Math.floor(random() * MOMENTS.length)] ?? MOMENTS[0];
  const origin = await deployment.balancer.next(kind);
  const afterMs = Math.round(random() * MOMENT_MS);
  await delay(afterMs);
  const fault = await killed(
    run,
    deployment.nodes.findIndex((node) => node.origin === origin),
  );
  return { ...fault, what: `${fault.what}, ${afterMs} ms after ${kind}` };
}

const MOMENTS = ['initialize', 'first unsafe call'] as const;
const MOMENT_MS = 50;

async function frozen(node: Node | undefined, ms: number): Promise<Disturbance> {
  const one = present(node);
  const fromMs = nowMs();
  one.signal('SIGSTOP');
  await delay(ms);
  one.signal('SIGCONT');
  const untilMs = nowMs();
  return { what: `SIGSTOP of ${one.id}`, fromMs, untilMs, servedMs: untilMs, backMs: untilMs };
}

/** No call may fail: this fault has no length, so that it excuses nothing. */
async function withoutDatabase({ deployment: { nodes } }: Run, ms: number): Promise<Disturbance> {
  const relays = nodes.flatMap(({ database }) => database ?? []);
  for (const relay of relays) relay.refuse();
  await delay(ms);
  for (const relay of relays) await relay.pass();
  return momentary('the database refuses connections');
}

async function cutOff(node: Node | undefined, ms: number): Promise<Disturbance> {
  const { id, database } = present(node);
  database?.hold();
  const fault = momentary(`${id} is cut off from the database`);
  await delay(ms);
  await database?.pass();
  return { ...fault, lastsUntilMs: nowMs() + HEALED_MS, mayRefuse: true };
}

/** The other nodes get no bytes from it; it reaches them, its clients and the database. */
async function unreachable(node: Node | undefined, ms: number): Promise<Disturbance> {
  const { id, peers } = present(node);
  peers?.hold();
  const fault = momentary(`${id} is unreachable for the other nodes`);
  await delay(ms);
  await peers?.pass();
  return { ...fault, ...healed() };
}

/** One after the other, each healed before the next. The clients reach all nodes all the time. */
async function partitions({ deployment: { nodes } }: Run): Promise<readonly Disturbance[]> {
  const [a, b, c] = nodes.map(({ id, network }) => {
    if (network === undefined) throw new Error('the nodes have no networks of their own');
    return { id, ...network };
  });
  if (a === undefined || b === undefined || c === undefined) throw new Error('there are three nodes');
  const between = (one: typeof a, other: typeof a) => [one.cut([other.address]), other.cut([one.address])];
  const cuts = [
    { what: `${c.id} - database`, cut: () => [c.cut([HOST.database])], isolates: true },
    {
      what: `${a.id} - all`,
      cut: () => [a.cut([HOST.database]), ...between(a, b), ...between(a, c)],
      isolates: true,
    },
    { what: `${b.id} - ${c.id}`, cut: () => between(b, c), endsNoLife: true },
  ];
  const disturbances: Disturbance[] = [];
  for (const { what, cut, endsNoLife = false, isolates = false } of cuts) {
    await delay(5_000);
    await Promise.all(cut());
    const fault = momentary(`cut: ${what}`);
    await delay(20_000);
    await Promise.all([a, b, c].map((one) => one.heal()));
    disturbances.push({ ...fault, endsNoLife, isolates, ...healed() });
    await delay(HEALED_MS);
  }
  await delay(5_000);
  return disturbances;
}

/** Longest time from the end of a partition until each session is answered, and nothing is refused, in ms. */
const HEALED_MS = 15_000;

/** A cut ends now. No node can answer for a session whose owner it does not reach: the bars of answers begin here. */
function healed(): Pick<Disturbance, 'servedMs' | 'lastsUntilMs' | 'mayRefuse'> {
  const healedMs = nowMs();
  return { servedMs: healedMs, lastsUntilMs: healedMs + HEALED_MS, mayRefuse: true };
}

/** What Kubernetes does: no new requests to the pod, a pause, SIGTERM, a new one that is ready. No call may fail. */
async function rolling({ deployment: { nodes, balancer } }: Run): Promise<readonly Disturbance[]> {
  const disturbances: Disturbance[] = [];
  for (const node of nodes) {
    await delay(2_000);
    balancer.takeOut(node.origin);
    await delay(1_000);
    const fault = momentary(`restart of ${node.id}`);
    await node.stop(); // its sessions go on at the others before it has ended
    disturbances.push({ ...fault, lastsUntilMs: nowMs() });
    await node.start();
    balancer.putBack(node.origin);
  }
  await delay(2_000);
  return disturbances;
}
