// The section `stalls` of `npm run chaos`: what a gateway cannot do meanwhile, while thousands of instances start, change or leave,
// and when a template falls on which thousands of calls wait. Measures the turns of the event loop from inside (lag.ts), and the
// answers of /livez from outside.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { freePort } from '../spec/helpers/network/free-port.ts';
import { SickServer } from './backends/sick.ts';
import { listening, type Started, startNode } from './children.ts';
import { programPath } from './gateway.ts';
import type { Probed } from './livez-worker.ts';

export interface StallRow {
  readonly fleet: string;
  readonly phase: string;
  readonly seconds: number;
  readonly longestTurnMs: number;
  /** In that turn: CPU of the thread of the event loop, and collections of garbage, in which other threads help. */
  readonly turnCpuMs: number;
  readonly turnCollectionsMs: number;
  readonly slowestLivezMs: number;
  readonly missed: readonly string[];
}

type Instance = Readonly<Record<string, unknown>>;

interface Bars {
  readonly turnMs: number;
  readonly livezMs: number;
  readonly seconds?: number;
}

const LAG = new URL('lag.ts', import.meta.url).href;
const SMALL_PROGRAM = fileURLToPath(new URL('backends/small.sh', import.meta.url));
const HTTP_BACKEND = fileURLToPath(new URL('backends/http.ts', import.meta.url));
const PORTS = 50;
const MAX_PHASE_MS = 180_000;
const MASS: Bars = { turnMs: 100, livezMs: 1_000 };
const FALL: Bars = { turnMs: 50, livezMs: 1_000, seconds: 1 };
/** Instances that fall, with all their slots in use, and the calls that wait. */
const FALLING = 8;
const IN_FLIGHT = 256;
const WAITING = 1_950;

export async function stallRows(): Promise<StallRow[]> {
  const programs = Array.from({ length: 1_000 }, (_, index) => ({
    id: `program-${index}`,
    command: '/bin/sh',
    args: [SMALL_PROGRAM],
  }));
  const rows = await massRows('1,000 programs', programs);
  const backend = await startNode([HTTP_BACKEND, `--ports=${PORTS}`], listening);
  try {
    const ports = backend.announced[1]?.split(' ') ?? [];
    const instances = Array.from({ length: 5_000 }, (_, index) => ({
      id: `http-${index}`,
      endpoint: `http://127.0.0.1:${ports[index % PORTS]}/${index}`,
    }));
    rows.push(...(await massRows('5,000 HTTP instances', instances)));
  } finally {
    await backend.stop();
  }
  return [...rows, await fallRow()];
}

/** One template with all these instances: it is started, changed, emptied, filled, stopped, and started from its database. */
async function massRows(fleet: string, instances: readonly Instance[]): Promise<StallRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-stalls-'));
  const bench = new StallBench(folder, fleet, await freePort());
  try {
    await bench.write(instances);
    await bench.phase('first start', MASS, () => bench.start(instances.length));
    await bench.write(instances.map((instance) => ({ ...instance, weight: 2 })));
    await bench.phase('change', MASS, () => bench.sync());
    await bench.write([]);
    await bench.phase('removal', MASS, () => bench.sync());
    await bench.write(instances);
    await bench.phase('registration', MASS, async () => {
      await bench.sync();
      await bench.healthy(instances.length);
    });
    await bench.phase('stop', { ...MASS, livezMs: Number.POSITIVE_INFINITY }, () => bench.stop());
    await bench.phase('start', MASS, () => bench.start(instances.length));
    return bench.rows;
  } finally {
    await bench.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** All instances of a template end while their slots are in use and calls wait. Every call must be answered. */
async function fallRow(): Promise<StallRow> {
  const servers = Array.from({ length: FALLING }, () => new SickServer());
  const endpoints = await Promise.all(servers.map((server) => server.start()));
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-stalls-'));
  const bench = new StallBench(folder, `${WAITING.toLocaleString('en-US')} waiting calls`, await freePort());
  try {
    await bench.write(endpoints.map((endpoint, index) => ({ id: `http-${index}`, endpoint })));
    await bench.start(FALLING);
    for (const server of servers) server.fault = 'hang on calls';
    const total = FALLING * IN_FLIGHT + WAITING;
    const calls = Array.from({ length: total }, () => bench.call());
    await bench.waiting(WAITING);
    const row = await bench.phase('fall', FALL, async () => {
      for (const server of servers) server.stop();
      await Promise.all(calls.map(({ answered }) => answered));
    });
    for (const { socket } of calls) socket.destroy();
    return row;
  } finally {
    await bench.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

class StallBench {
  readonly rows: StallRow[] = [];
  readonly #fleet: string;
  readonly #folder: string;
  readonly #port: number;
  readonly #origin: string;
  #gateway: Started | undefined;

  constructor(folder: string, fleet: string, port: number) {
    this.#folder = folder;
    this.#fleet = fleet;
    this.#port = port;
    this.#origin = `http://127.0.0.1:${port}`;
  }

  write(instances: readonly Instance[]): Promise<void> {
    return writeFile(this.#path('registry.json'), JSON.stringify({ templates: { t: { instances } } }));
  }

  /** Resolves when the instances are healthy. The gateway answers /livez long before. */
  async start(instances: number): Promise<void> {
    await writeFile(this.#path('gateway.yaml'), 'host: 127.0.0.1\n');
    const switches = ['--host', '127.0.0.1', '--port', String(this.#port), '--log-level', 'error'];
    const parameters = ['--import', LAG, programPath, 'gateway', 'start', ...switches];
    this.#gateway = await startNode(
      [...parameters, '--config', this.#path('gateway.yaml')],
      /https?:\/\/[\w.[\]-]+:\d+/,
      {
        environment: {
          GATEWAY_AUTH_ENABLED: 'false',
          GATEWAY_AUDIT_CALLS: 'false',
          GATEWAY_MAX_CONNECTIONS_PER_ADDRESS: '10000',
          LAG_FILE: this.#path('lag'),
          MCP_GATEWAY_REGISTRY_FILE: this.#path('registry.json'),
        },
        workingFolder: this.#folder,
        timeoutMs: MAX_PHASE_MS,
      },
    );
    await this.healthy(instances);
  }

  async stop(): Promise<void> {
    await this.#gateway?.stop(MAX_PHASE_MS);
    this.#gateway = undefined;
  }

  /** Measures what happens until `work` is done, and adds a row. */
  async phase(phase: string, bars: Bars, work: () => Promise<void>): Promise<StallRow> {
    const endProbe = await startProbe(this.#origin);
    const beganAtMs = Date.now();
    await work();
    const seconds = (Date.now() - beganAtMs) / 1_000;
    const { firstAtMs, slowestMs: slowestLivezMs } = await endProbe();
    const turn = await this.#longestTurn(firstAtMs);
    const { longestTurnMs } = turn;
    const missed = [
      ...(longestTurnMs <= bars.turnMs ? [] : [`a turn over ${bars.turnMs} ms`]),
      ...(slowestLivezMs <= bars.livezMs ? [] : [`/livez over ${bars.livezMs} ms`]),
      ...(seconds <= (bars.seconds ?? Number.POSITIVE_INFINITY) ? [] : [`over ${bars.seconds} s`]),
    ];
    const row = { fleet: this.#fleet, phase, seconds, ...turn, slowestLivezMs, missed };
    this.rows.push(row);
    process.stderr.write(`${this.#fleet}, ${phase}: ${seconds.toFixed(1)} s\n`);
    return row;
  }

  healthy(count: number): Promise<void> {
    return this.#until(`${count} healthy instances`, async () => {
      const health: unknown = await (await fetch(`${this.#origin}/gateway/health`)).json();
      return numberAt(health, 'instances', 'healthy') === count;
    });
  }

  waiting(count: number): Promise<void> {
    return this.#until(`${count} waiting calls`, async () => {
      const metrics = await (await fetch(`${this.#origin}/metrics`)).text();
      return Number(/^stagedoor_queue_length\{template="t"\} (\d+)$/m.exec(metrics)?.[1] ?? 0) >= count;
    });
  }

  async sync(): Promise<void> {
    const response = await fetch(`${this.#origin}/gateway/sync`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{}',
    });
    if (!response.ok)
      throw new Error(`POST /gateway/sync answered ${response.status}: ${await response.text()}`);
    await response.text();
  }

  /** One call on a bare socket, which costs the machine less than a client of HTTP. `answered` resolves with any answer. */
  call(): { readonly socket: Socket; readonly answered: Promise<unknown> } {
    const body = JSON.stringify({ name: 'write', arguments: {} });
    const lines = [`Host: 127.0.0.1:${this.#port}`, 'Content-Type: application/json'];
    const head = ['POST /mcp/t/tools/call HTTP/1.1', ...lines, `Content-Length: ${body.length}`, '', ''];
    const socket = connect(this.#port, '127.0.0.1');
    socket.write(head.join('\r\n') + body);
    return { socket, answered: once(socket, 'data') };
  }

  async #until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
    const deadlineMs = performance.now() + MAX_PHASE_MS;
    while (!(await isTrue())) {
      if (performance.now() > deadlineMs) throw new Error(`no ${what} within ${MAX_PHASE_MS / 1_000} s`);
      await delay(50);
    }
  }

  async #longestTurn(sinceMs: number) {
    const longest = { longestTurnMs: 0, turnCpuMs: 0, turnCollectionsMs: 0 };
    if (!existsSync(this.#path('lag'))) return longest;
    const lines = (await readFile(this.#path('lag'), 'utf8')).trim().split('\n');
    const isCollection = (line: string) => line.startsWith('gc ');
    const collections = lines.filter(isCollection).map((line) => line.split(' ').slice(1).map(Number));
    for (const line of lines.filter((each) => !isCollection(each))) {
      const [endMs = 0, lengthMs = 0, cpuMs = 0] = line.split(' ').map(Number);
      const beganMs = endMs - lengthMs;
      if (beganMs < sinceMs || lengthMs <= longest.longestTurnMs) continue;
      const within = collections.filter(([at = 0]) => at > beganMs && at <= endMs + 1);
      const collectionsMs = within.reduce((sum, [, tookMs = 0]) => sum + tookMs, 0);
      Object.assign(longest, { longestTurnMs: lengthMs, turnCpuMs: cpuMs, turnCollectionsMs: collectionsMs });
    }
    return longest;
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }
}

/** Asks for /livez from now on, until the returned function is called. */
async function startProbe(origin: string): Promise<() => Promise<Probed>> {
  const worker = new Worker(new URL('livez-worker.ts', import.meta.url), { workerData: origin });
  await once(worker, 'message');
  return async () => {
    const probed = once(worker, 'message');
    worker.postMessage('over');
    const [result] = await probed;
    return result;
  };
}

function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  let at = value;
  for (const key of path) at = new Map<string, unknown>(Object.entries(at ?? {})).get(key);
  return typeof at === 'number' ? at : undefined;
}
