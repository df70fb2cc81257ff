// The parts of the benchmark besides the main case (paths.ts), by the names that `--only` takes.

import type { Bench } from './bench.ts';
import { openConsoles } from './consoles.ts';
import type { Figure } from './figures.ts';
import { ask } from './gateway.ts';
import { measureHop } from './hop.ts';
import { measureMemory } from './memory.ts';
import { initializeBody } from './open-session.ts';
import { callsOf, PIPE_TEMPLATE } from './paths.ts';
import { type Case, ratioOf } from './rounds.ts';

type Part = (bench: Bench) => Promise<Figure[]>;

export const PARTS = {
  instances: measureInstances,
  memory: measureMemory,
  'first-seconds': measureFirstSeconds,
  start: measureStart,
  'new-sessions': measureNewSessions,
  consoles: measureConsoles,
  hop: measureHop,
} satisfies Record<string, Part>;

const CONNECTIONS = 16;

/** CPU per call of REST-HTTP with 1,000 instances relative to 10, for each strategy that the gateway has. */
async function measureInstances(bench: Bench): Promise<Figure[]> {
  const { repeats, isQuick } = bench.options;
  const sizes = isQuick ? [10, 1_000] : [10, 1_000, 1, 100];
  const endpoints = await bench.endpoints(Math.max(...sizes));
  const gateways = [];
  for (const size of sizes)
    gateways.push({ size, ...(await bench.guarded({ http: { http: endpoints.slice(0, size) } })) });
  const strategies = await strategiesOf(gateways[0]);
  for (const gateway of gateways)
    await bench.load(
      callsOf('REST', 'http', gateway, `${gateway.size} instances, warm-up`),
      CONNECTIONS,
      0.1,
      2,
    );
  const figures: Figure[] = [];
  for (const strategy of strategies) {
    for (const { origin, admin } of gateways)
      await ask('PATCH', `${origin}/gateway/templates/http`, { strategy }, admin);
    const cases = gateways.map((one) =>
      callsOf('REST', 'http', one, `${strategy}, ${one.size.toLocaleString('en-US')} instances`),
    );
    const rounds = await bench.rounds(cases, repeats, CONNECTIONS);
    const values = rounds.map(([ten, thousand]) => ratioOf('cpuMicrosecondsPerCall', thousand, ten));
    figures.push({
      name: `${strategy}: CPU per call, 1,000 instances to 10`,
      unit: ' x',
      values,
      atMost: 1.15,
    });
  }
  figures.push(await measureBareInstances(bench, endpoints));
  return figures;
}

/** The same of the bare proxy, in turn: what more connections cost by themselves. */
async function measureBareInstances(bench: Bench, endpoints: readonly string[]): Promise<Figure> {
  const cases: Case[] = [];
  for (const size of [10, 1_000]) {
    const backends = endpoints.slice(0, size).join();
    const proxy = await bench.server('baseline/http-proxy.ts', `--backends=${backends}`);
    const title = `bare proxy, ${size.toLocaleString('en-US')} backends`;
    cases.push(callsOf('REST', 'http', proxy, title));
  }
  for (const one of cases) await bench.load(one, CONNECTIONS, 0.1, 2);
  const rounds = await bench.rounds(cases, bench.options.repeats, CONNECTIONS);
  const values = rounds.map(([ten, thousand]) => ratioOf('cpuMicrosecondsPerCall', thousand, ten));
  return { name: 'bare proxy: CPU per call, 1,000 backends to 10', unit: ' x', values };
}

/** The strategies are a setting with a schema: a new one is measured without a change here. */
async function strategiesOf(
  gateway: { readonly origin: string; readonly admin: Readonly<Record<string, string>> } | undefined,
): Promise<readonly string[]> {
  const answer = await fetch(`${gateway?.origin}/gateway/template-settings`, {
    headers: { ...gateway?.admin },
  });
  const { settings } = (await answer.json()) as {
    readonly settings: readonly {
      readonly name: string;
      readonly schema: { readonly enum?: readonly string[] };
    }[];
  };
  const strategies = settings.find(({ name }) => name === 'strategy')?.schema.enum;
  if (strategies === undefined) throw new Error('the gateway does not tell its strategies');
  return strategies;
}

/** CPU per call of the first 3 s of load after a start, relative to the same process ten seconds later. */
async function measureFirstSeconds(bench: Bench): Promise<Figure[]> {
  const values: number[] = [];
  for (let start = 0; start < bench.options.repeats; start += 1) {
    const gateway = await bench.guarded({ http: { http: await bench.endpoints(3) } });
    const calls = callsOf('REST', 'http', gateway, 'first 3 s after a start');
    const cold = await bench.load(calls, CONNECTIONS, 3, 0);
    const warm = await bench.load({ ...calls, title: 'the same process, warm' }, CONNECTIONS, 3, 7);
    values.push(ratioOf('cpuMicrosecondsPerCall', cold, warm));
    await bench.stop();
  }
  return [
    { name: 'first 3 s of load after a start: CPU per call, to warm', unit: ' x', values, atMost: 1.4 },
  ];
}

/** The time from the start of the process to the line with its port, in an empty folder, without instances. */
async function measureStart(bench: Bench): Promise<Figure[]> {
  const values: number[] = [];
  for (let start = 0; start < bench.options.repeats; start += 1) {
    values.push((await bench.gateway({})).startedMs);
    await bench.stop();
  }
  return [{ name: 'start to listening, without instances', unit: ' ms', values, atMost: 600 }];
}

/** The benchmark opens many more sessions than clients do; unused ones end soon. */
async function measureNewSessions(bench: Bench): Promise<Figure[]> {
  const environment = {
    MCP_GATEWAY_MAX_SESSIONS: '1000000',
    MCP_GATEWAY_SESSION_SHARE: '100',
    MCP_GATEWAY_SESSION_IDLE_SECONDS: '5',
  };
  const { origin, pid, key } = await bench.guarded({ stdio: PIPE_TEMPLATE }, environment);
  const title = 'new sessions on a stdio process';
  const opening = { title, url: `${origin}/mcp/pipe`, body: initializeBody, headers: key, pid };
  const rounds = await bench.rounds([opening], bench.options.repeats, CONNECTIONS);
  const values = rounds.map(([result]) => (result?.failures === 0 ? result.requestsPerSecond : Number.NaN));
  return [{ name: 'new sessions a second, one stdio process', unit: '', values, atLeast: 3_000 }];
}

/** Calls while 50 consoles are open, relative to none. */
async function measureConsoles(bench: Bench): Promise<Figure[]> {
  const gateway = await bench.guarded({ stdio: PIPE_TEMPLATE });
  const without = callsOf('REST', 'pipe', gateway, 'REST to a stdio process, no console');
  const prepare = (): Promise<() => void> => openConsoles(gateway.origin, gateway.admin);
  const withThem = { ...without, title: 'REST to a stdio process, 50 consoles', prepare };
  const rounds = await bench.rounds([without, withThem], bench.options.repeats, CONNECTIONS);
  const values = rounds.map(([none, fifty]) => ratioOf('requestsPerSecond', fifty, none));
  return [{ name: 'throughput with 50 open consoles, to none', unit: ' x', values, atLeast: 0.95 }];
}
