// The memory of a gateway: at rest, of each further HTTP instance, and of each idle session on a shared process.

import { setTimeout as delay } from 'node:timers/promises';
import type { Bench } from './bench.ts';
import type { Figure } from './figures.ts';
import type { GuardedGateway } from './gateway.ts';
import { openInspector } from './inspector.ts';
import { initializeBody, openSession } from './open-session.ts';
import { PIPE_TEMPLATE } from './paths.ts';
import { residentBytes } from './process-usage.ts';

/** Time of a gateway from its start until its memory at rest is read. */
const REST_MS = 14_000;
const SESSIONS_AT_ONCE = 16;
/** Until closed connections and the requests of the start are forgotten. */
const SETTLE_MS = 1_000;

export async function measureMemory(bench: Bench): Promise<Figure[]> {
  const found: { rest: number; instance: number; residentInstance: number; session: number }[] = [];
  for (let time = 0; time < Math.ceil(bench.options.repeats / 2); time += 1) {
    const rest = await atRest(bench);
    const few = await ofHeap(bench, 3, bench.options.many * 5);
    const many = await ofHeap(bench, 3 + bench.options.many, 0);
    found.push({
      rest: rest / 1e6,
      instance: (many.heap - few.heap) / bench.options.many / 1e3,
      residentInstance: (many.resident - few.resident) / bench.options.many / 1e3,
      session: few.perSession / 1e3,
    });
  }
  const figure = (name: string, field: keyof (typeof found)[0], unit: string): Figure => ({
    name,
    unit,
    values: found.map((one) => one[field]),
  });
  return [
    { ...figure('resident memory at rest, three HTTP instances', 'rest', ' MB'), atMost: 130 },
    { ...figure('live heap of each further HTTP instance', 'instance', ' kB'), atMost: 60 },
    figure('resident memory of each further HTTP instance', 'residentInstance', ' kB'),
    { ...figure('live heap of each idle session on a shared process', 'session', ' kB'), atMost: 3 },
  ];
}

/** As users start it: no inspector, no collection that the gateway does not make itself. */
async function atRest(bench: Bench): Promise<number> {
  const { pid } = await bench.gateway({ http: { http: await bench.endpoints(3) } });
  await delay(REST_MS);
  const resident = residentBytes(pid) ?? Number.NaN;
  await bench.stop();
  return resident;
}

/** Live heap and resident memory, both after a collection, and what each of `sessions` sessions adds to the heap. */
async function ofHeap(bench: Bench, instances: number, sessions: number) {
  const gateway = await bench.guarded(
    { http: { http: await bench.endpoints(instances) }, stdio: PIPE_TEMPLATE },
    {
      NODE_OPTIONS: '--inspect=127.0.0.1:0',
      GATEWAY_LOG_LEVEL: 'error', // the address of the inspector stays in the last output
      MCP_GATEWAY_MAX_SESSIONS: '100000',
    },
  );
  const inspector = await openInspector(gateway.output());
  await openSessions(gateway, 100); // warm-up
  await delay(SETTLE_MS);
  const heap = await inspector.heapBytes();
  const resident = residentBytes(gateway.pid) ?? Number.NaN;
  await openSessions(gateway, sessions);
  await delay(SETTLE_MS);
  const perSession = ((await inspector.heapBytes()) - heap) / sessions;
  inspector.close();
  await bench.stop();
  return { heap, resident, perSession };
}

async function openSessions({ origin, key }: GuardedGateway, count: number): Promise<void> {
  let left = count;
  const openSome = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await openSession(`${origin}/mcp/pipe`, initializeBody, key);
    }
  };
  await Promise.all(Array.from({ length: SESSIONS_AT_ONCE }, openSome));
}
