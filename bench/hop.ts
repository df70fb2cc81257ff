// The cost of a hop between two nodes: the CPU time of both per call, for a session of the other node, and for a program of the other
// node. The same calls without a hop, in the same rounds, are what it is compared with.

import { setTimeout as delay } from 'node:timers/promises';
import { freshDatabase, postgresql } from '../spec/helpers/services/services.ts';
import type { Bench } from './bench.ts';
import type { Figure } from './figures.ts';
import { callsOf, PIPE_TEMPLATE } from './paths.ts';
import type { Case } from './rounds.ts';

const CONNECTIONS = 16;
const WITHIN_MS = 30_000;
const SECRET = 'a secret of the two nodes, 32 bytes or more';

/** Two nodes on PostgreSQL: a direct call, and one with a hop. */
export async function measureHop(bench: Bench): Promise<Figure[]> {
  const { url } = await postgresql();
  if (url === undefined) {
    bench.say('hop: not measured, because there is no PostgreSQL');
    return [];
  }
  const database = await freshDatabase({ url });
  try {
    return await measureOn(bench, database.url);
  } finally {
    await bench.stop();
    await database.drop();
  }
}

async function measureOn(bench: Bench, database: string): Promise<Figure[]> {
  const common = { GATEWAY_DATABASE_URL: database, GATEWAY_SECRET_KEY: SECRET };
  const instances = { http: { http: await bench.endpoints(3) }, stdio: PIPE_TEMPLATE, node: 'owner' };
  const owner = await bench.guarded(instances, { ...common, GATEWAY_NODE_ID: 'owner' });
  const entry = await bench.gateway(instances, {
    ...common,
    GATEWAY_NODE_ID: 'entry',
    GATEWAY_API_KEY_LIMIT: '1000000000',
  });
  const here = { ...owner, otherPid: entry.pid };
  const there = { ...entry, key: owner.key };
  const hop = (one: Case): Case => ({ ...one, otherPid: owner.pid });
  const session = callsOf('session', 'http', here, 'session, direct');
  const cases = [
    session,
    hop({ ...callsOf('session', 'http', there, 'session of another node'), sessionUrl: session.url }),
    callsOf('REST', 'pipe', here, 'program, direct'),
    hop(callsOf('REST', 'pipe', there, 'program of another node')),
  ];
  for (const one of cases) await answered(one);
  for (const one of cases) await bench.load(one, CONNECTIONS, 0.1, 4 * bench.options.warmUpSeconds);
  const rounds = await bench.rounds(cases, bench.options.repeats, CONNECTIONS);
  return ['session', 'program'].flatMap((what, index): Figure[] => {
    const values = rounds.map((results) => {
      const [direct, forwarded] = results.slice(2 * index, 2 * index + 2);
      if (direct?.failures !== 0 || forwarded?.failures !== 0) return [Number.NaN, Number.NaN, Number.NaN];
      const { cpuMicrosecondsPerCall: one } = direct;
      const { cpuMicrosecondsPerCall: atEntry, otherCpuMicrosecondsPerCall: atOwner } = forwarded;
      if (one === null || atEntry === null || atOwner === null) return [Number.NaN, Number.NaN, Number.NaN];
      return [(atEntry + atOwner) / one, atEntry, atOwner, one];
    });
    const of = (at: number): number[] => values.map((round) => round[at] ?? Number.NaN);
    return [
      { name: `hop to a ${what}: CPU of both nodes per call, to a direct call`, unit: ' x', values: of(0) },
      { name: `hop to a ${what}: CPU of the entry`, unit: ' us', values: of(1) },
      { name: `hop to a ${what}: CPU of the other node`, unit: ' us', values: of(2) },
      { name: `a direct call to a ${what}`, unit: ' us', values: of(3) },
    ];
  });
}

/** Waits until the node knows the instance. */
async function answered({ url, body, headers, sessionUrl }: Case): Promise<void> {
  if (sessionUrl !== undefined) return; // the other node knows its own
  const untilMs = performance.now() + WITHIN_MS;
  for (;;) {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
      },
      body,
    });
    const { status } = response;
    const text = await response.text();
    if (status !== 503 && status !== 404 && status !== 401) return;
    if (performance.now() > untilMs) throw new Error(`${url} still answers ${status}: ${text}`);
    await delay(100);
  }
}
