// The main case: the gateway as users start it against bare Node proxies, on the six ways of a call through it.

import { type Bench, pathOf } from './bench.ts';
import type { Figure } from './figures.ts';
import { initializeBody } from './open-session.ts';
import { type Case, ratioOf } from './rounds.ts';

interface Path {
  readonly title: string;
  readonly client: 'REST' | 'session' | 'modern';
  readonly backend: 'http' | 'stdio';
  /** The bars, relative to the bare proxy. */
  readonly cpu: number;
  readonly p99?: number;
}

const PATHS = {
  'rest-http': { title: 'REST to three HTTP instances', client: 'REST', backend: 'http', cpu: 1.6, p99: 1.7 },
  'session-http': { title: 'session to three HTTP instances', client: 'session', backend: 'http', cpu: 1.8 },
  'rest-stdio': { title: 'REST to a stdio process', client: 'REST', backend: 'stdio', cpu: 1.8 },
  'session-stdio': { title: 'session to a stdio process', client: 'session', backend: 'stdio', cpu: 2.2 },
  'modern-http': {
    title: 'modern client to three HTTP instances',
    client: 'modern',
    backend: 'http',
    cpu: 1.9,
  },
  'modern-stdio': { title: 'modern client to a stdio process', client: 'modern', backend: 'stdio', cpu: 2 },
} satisfies Record<string, Path>;

export type PathName = keyof typeof PATHS;

export const PATH_NAMES = Object.keys(PATHS) as readonly PathName[];

/** The bars hold at this number of connections. */
const AT = 16;
/** Rounds at other numbers of connections. */
export const OTHER_ROUNDS = 2;

const parameters = { name: 'echo', arguments: { text: 'Is this the way to the stage?' } };
const rpcCall = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
};
/** What each kind of client sends, and where below `/mcp/<template>`. */
const CLIENTS: Readonly<
  Record<Path['client'], Pick<Case, 'body' | 'headers' | 'sessionBody'> & { readonly path: string }>
> = {
  REST: { path: '/tools/call', body: JSON.stringify(parameters) },
  session: {
    path: '',
    body: JSON.stringify({ ...rpcCall, params: parameters }),
    sessionBody: initializeBody,
  },
  modern: {
    path: '',
    body: JSON.stringify({ ...rpcCall, params: { ...parameters, _meta: meta } }),
    headers: { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' },
  },
};

/** One stdio process. */
export const PIPE_TEMPLATE = { pipe: [pathOf('backends/stdio.ts')] };

/** A case of the template `http` or `pipe` on a server. */
export function callsOf(
  client: Path['client'],
  template: string,
  { origin, pid, key = {} }: { origin: string; pid: number; key?: Readonly<Record<string, string>> },
  title: string,
): Case {
  const { path, headers, ...rest } = CLIENTS[client];
  return { title, url: `${origin}/mcp/${template}${path}`, headers: { ...key, ...headers }, pid, ...rest };
}

/** The CPU time per call of each path relative to the bare proxy, at 16 connections, and its p99 where that has a bar. */
export async function measurePaths(bench: Bench, names: readonly PathName[]): Promise<Figure[]> {
  const { rounds, otherConnections, warmUpSeconds } = bench.options;
  const cases = await openCases(bench, names);
  for (const one of cases) await bench.load(one, AT, 0.1, 4 * warmUpSeconds);
  const results = await bench.rounds(cases, rounds, AT);
  for (const connections of otherConnections) await bench.rounds(cases, OTHER_ROUNDS, connections);
  return names.flatMap((name, index): Figure[] => {
    const { title, cpu, p99 }: Path = PATHS[name];
    const figure = (what: string, field: 'cpuMicrosecondsPerCall' | 'p99Ms', atMost: number): Figure => ({
      name: `${name}: ${what}, ${title}`,
      unit: ' x',
      values: results.map((round) => ratioOf(field, round[2 * index + 1], round[2 * index])),
      atMost,
    });
    const ofCpu = figure('CPU per call', 'cpuMicrosecondsPerCall', cpu);
    return p99 === undefined ? [ofCpu] : [ofCpu, figure('p99', 'p99Ms', p99)];
  });
}

/** For each path the bare proxy, then the gateway. They run for the whole measurement, idle while others are measured. */
async function openCases(bench: Bench, names: readonly PathName[]): Promise<Case[]> {
  const [http, modern] = [await bench.endpoints(3), await bench.endpoints(3, 'modern')];
  const stdio = { ...PIPE_TEMPLATE, 'modern-pipe': [...PIPE_TEMPLATE.pipe, '--era=modern'] };
  const gateway = await bench.guarded({ http: { http, modern }, stdio });
  const bareOf: Record<string, { origin: string; pid: number }> = {
    http: await bench.server('baseline/http-proxy.ts', `--backends=${http.join(',')}`),
    modern: await bench.server('baseline/http-proxy.ts', `--backends=${modern.join(',')}`),
    pipe: await bench.server('baseline/stdio-proxy.ts', '--era=legacy'),
    'modern-pipe': await bench.server('baseline/stdio-proxy.ts', '--era=modern'),
  };
  return names.flatMap((name) => {
    const { title, client, backend } = PATHS[name];
    const [ofHttp, ofStdio] = client === 'modern' ? ['modern', 'modern-pipe'] : ['http', 'pipe'];
    const template = backend === 'http' ? ofHttp : ofStdio;
    const bare = bareOf[template];
    if (bare === undefined) throw new Error(`no bare proxy for ${template}`);
    return [
      callsOf(client, template, bare, `bare: ${title}`),
      callsOf(client, template, gateway, `stagedoor: ${title}`),
    ];
  });
}
