// The cases of the benchmark and their processes. rounds.ts decides how often and in which order they run.

import { fileURLToPath } from 'node:url';
import { listening, type Started, startNode } from './children.ts';
import { openConsoles } from './consoles.ts';
import { type StartedGateway, startGateway } from './gateway.ts';
import { type GuardedGateway, startGuardedGateway } from './guarded-gateway.ts';
import { initializeBody } from './open-session.ts';

export type Letter = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g' | 'h' | 'i' | 'j' | 'k' | 'l' | 'm' | 'n' | 'o';

/** One case to measure. */
export interface BenchmarkCase {
  readonly letter: Letter;
  readonly title: string;
  readonly url: string;
  readonly body: string;
  /** Credentials, or headers of the protocol. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Opens a session on each connection before the measurement: the body of that request. */
  readonly sessionBody?: string;
  /** Runs before each measurement; the returned function runs after it. */
  readonly prepare?: () => Promise<() => void>;
  /** The process whose CPU and memory are measured: the program between client and backend; none in (a). */
  readonly pid: number | undefined;
}

/** All cases that could be started, and the reasons why the others could not. */
export interface Harness {
  readonly cases: readonly BenchmarkCase[];
  readonly missing: readonly { readonly letters: string; readonly reason: string }[];
  stop(): Promise<void>;
}

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const parameters = { name: 'echo', arguments: { text: 'Is this the way to the stage?' } };
const call = JSON.stringify(parameters);
const rpcCall = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: parameters });
const callPath = '/mcp/everything/tools/call';
const pipePath = '/mcp/pipe/tools/call';

/** The benchmark opens many more sessions than clients do; unused sessions end soon. */
const SESSION_ENVIRONMENT: Readonly<Record<string, string>> = {
  GATEWAY_AUTH_ENABLED: 'false',
  MCP_GATEWAY_MAX_SESSIONS: '1000000',
  MCP_GATEWAY_SESSION_IDLE_SECONDS: '5',
};

const RECORDING_ENVIRONMENT = { GATEWAY_AUTH_ENABLED: 'false', GATEWAY_AUDIT_CALLS: 'true' };

/** Starts backends, baselines and, if wanted, the gateway; they run for the whole benchmark, idle while others are measured. */
export async function openHarness(withGateway: boolean): Promise<Harness> {
  const running: Pick<Started, 'stop'>[] = [];
  const start = async (name: string, ...flags: string[]): Promise<Started & { ports: string[] }> => {
    const started = await startNode([pathOf(name), ...flags], listening);
    running.push(started);
    return { ...started, ports: (started.announced[1] ?? '').split(' ') };
  };
  const stop = async (): Promise<void> => {
    for (const started of running.reverse()) await started.stop();
  };
  try {
    const urlsOf = ({ ports }: { ports: string[] }) => ports.map((port) => `http://127.0.0.1:${port}/mcp`);
    const endpoints = urlsOf(await start('backends/http.ts', '--ports=3'));
    const httpProxy = await start('baseline/http-proxy.ts', `--backends=${endpoints.join(',')}`);
    const stdioProxy = await start('baseline/stdio-proxy.ts');
    const cases: BenchmarkCase[] = [
      { letter: 'a', title: 'backend direct', url: endpoints[0] ?? '', body: rpcCall, pid: undefined },
      {
        letter: 'b',
        title: 'bare Node http -> undici, three HTTP instances',
        url: `http://127.0.0.1:${httpProxy.ports[0]}${callPath}`,
        body: call,
        pid: httpProxy.pid,
      },
      {
        letter: 'e',
        title: 'bare Node http -> one stdio process',
        url: `http://127.0.0.1:${stdioProxy.ports[0]}${callPath}`,
        body: call,
        pid: stdioProxy.pid,
      },
    ];
    const missing: { letters: string; reason: string }[] = [];
    if (withGateway) {
      const pipe = pathOf('backends/stdio.ts');
      const instances = { http: { everything: endpoints }, stdio: { pipe: [pipe] } };
      try {
        const gateway = await startGateway(instances);
        running.push(gateway);
        cases.push(...gatewayCases(gateway));
      } catch (error) {
        missing.push({ letters: 'c, d', reason: reasonOf(error) });
      }
      try {
        const guarded = await startGuardedGateway(instances);
        running.push(guarded);
        cases.push(...guardedCases(guarded));
      } catch (error) {
        missing.push({ letters: 'f, g, h', reason: reasonOf(error) });
      }
      try {
        const modern = urlsOf(await start('backends/http.ts', '--ports=3', '--era=modern'));
        const both = {
          http: { ...instances.http, modern },
          stdio: { ...instances.stdio, 'modern-pipe': [pipe, '--era=modern'] },
        };
        const sessions = await startGateway(both, SESSION_ENVIRONMENT);
        running.push(sessions);
        cases.push(...sessionCases(sessions, parameters));
      } catch (error) {
        missing.push({ letters: 'i, j, k, l, m', reason: reasonOf(error) });
      }
      try {
        const recording = await startGateway(instances, RECORDING_ENVIRONMENT, 'info');
        running.push(recording);
        cases.push(...recordingCases(recording));
      } catch (error) {
        missing.push({ letters: 'n, o', reason: reasonOf(error) });
      }
    }
    return { cases: cases.toSorted((one, other) => (one.letter < other.letter ? -1 : 1)), missing, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function gatewayCases({ origin, pid }: StartedGateway): BenchmarkCase[] {
  const http = 'stagedoor, three HTTP instances';
  const stdio = 'stagedoor, one stdio process';
  return [
    { letter: 'c', title: http, url: `${origin}${callPath}`, body: call, pid },
    { letter: 'd', title: stdio, url: `${origin}${pipePath}`, body: call, pid },
  ];
}

/** The calls of (c) and (d), by callers with credentials and a rate limit. */
function guardedCases({ origin, pid, apiKey, token }: GuardedGateway): BenchmarkCase[] {
  const withKey = { 'X-API-Key': apiKey };
  const withToken = { Authorization: `Bearer ${token}` };
  const common = { body: call, pid };
  return [
    { letter: 'f', title: '(c) with an API key', url: `${origin}${callPath}`, headers: withKey, ...common },
    { letter: 'g', title: '(d) with an API key', url: `${origin}${pipePath}`, headers: withKey, ...common },
    { letter: 'h', title: '(c) with a token', url: `${origin}${callPath}`, headers: withToken, ...common },
  ];
}

/** The calls of (d), with one recording gateway: two such processes could differ by chance. */
function recordingCases({ origin, pid }: StartedGateway): BenchmarkCase[] {
  const common = { url: `${origin}${pipePath}`, body: call, pid };
  return [
    { letter: 'n', title: '(d) with the audit of calls and the log', ...common },
    { letter: 'o', title: '(n) with 50 open consoles', prepare: () => openConsoles(origin), ...common },
  ];
}

/** Calls in sessions of legacy clients, calls of modern clients, and new sessions. `parameters` are those of the tool call. */
function sessionCases(
  { origin, pid }: StartedGateway,
  parameters: { readonly name: string },
): BenchmarkCase[] {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
  const legacy = { body: JSON.stringify({ ...call, params: parameters }), sessionBody: initializeBody, pid };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  };
  const modern = {
    body: JSON.stringify({ ...call, params: { ...parameters, _meta: meta } }),
    headers: {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': parameters.name,
    },
    pid,
  };
  return [
    {
      letter: 'i',
      title: 'legacy sessions, three HTTP instances',
      url: `${origin}/mcp/everything`,
      ...legacy,
    },
    { letter: 'j', title: 'legacy sessions, one stdio process', url: `${origin}/mcp/pipe`, ...legacy },
    { letter: 'k', title: 'modern clients, three HTTP instances', url: `${origin}/mcp/modern`, ...modern },
    { letter: 'l', title: 'modern clients, one stdio process', url: `${origin}/mcp/modern-pipe`, ...modern },
    {
      letter: 'm',
      title: 'new legacy sessions, one stdio process',
      url: `${origin}/mcp/pipe`,
      body: initializeBody,
      pid,
    },
  ];
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
