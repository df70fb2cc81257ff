// A deployment as users start one: gateway processes with their own node ids and one secret on one database, behind the balancer, with
// two HTTP servers (template `far`) and one program (template `near`) that record their calls. Nodes can be killed, frozen and
// started again. It knows the processes of the program by sampling /proc.

import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freshDatabase, mariadb, postgresql, redis } from '../../spec/helpers/services/services.ts';
import { listening, type Started, startNode } from '../children.ts';
import { ask, programPath } from '../gateway.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { type CarriedOut, nowMs, type ProgramLife } from './history.ts';
import { HOST, type NodeNetwork, openNetwork } from './network.ts';
import { Relay } from './relay.ts';

type DatabaseName = 'SQLite' | 'PostgreSQL' | 'MariaDB';

/** The name of a template, and of its servers. */
export type Template = 'far' | 'near';

const recording = fileURLToPath(new URL('../backends/recording.ts', import.meta.url));
const news = fileURLToPath(new URL('../backends/news.ts', import.meta.url));
const SAMPLE_MS = 20;
/** So often the command line of a new process is read. */
const LOOKS = 50;
const READY_MS = 60_000;
const STOP_MS = 60_000;

export class Node {
  readonly id: string;
  readonly port: number;
  /** Between it and the database; undefined for a file. */
  readonly database: Relay | undefined;
  /** Between the other nodes and it; undefined for a single one, and in networks of their own. */
  readonly peers: Relay | undefined;
  readonly network: NodeNetwork | undefined;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #folder: string;
  #running: Started | undefined;

  constructor(
    id: string,
    port: number,
    folder: string,
    environment: Readonly<Record<string, string>>,
    { database, peers, network }: Pick<Node, 'database' | 'peers' | 'network'>,
  ) {
    this.id = id;
    this.port = port;
    this.database = database;
    this.peers = peers;
    this.network = network;
    this.#folder = folder;
    this.#environment = { ...environment, GATEWAY_NODE_ID: id };
  }

  get #host(): string {
    return this.network?.address ?? '127.0.0.1';
  }

  get origin(): string {
    return `http://${this.#host}:${this.port}`;
  }

  /** Resolves when /readyz answers 200. */
  async start(): Promise<void> {
    const words = ['gateway', 'start', '--host', this.#host, '--port', String(this.port)];
    this.#running = await startNode([programPath, ...words], /listening on/, {
      environment: this.#environment,
      workingFolder: this.#folder,
      ...(this.network && { under: this.network.under }),
      timeoutMs: READY_MS,
    });
    const giveUpAtMs = nowMs() + READY_MS;
    while (nowMs() < giveUpAtMs) {
      const answer = await fetch(`${this.origin}/readyz`).catch(() => undefined);
      await answer?.text();
      if (answer?.status === 200) return;
      await delay(20);
    }
    throw new Error(`node ${this.id} was not ready within ${READY_MS} ms: ${this.#running.output()}`);
  }

  /** SIGKILL; resolves when the process has ended. */
  async kill(): Promise<void> {
    await this.#running?.kill();
  }

  async stop(): Promise<void> {
    await this.#running?.stop(STOP_MS);
  }

  signal(name: NodeJS.Signals): void {
    if (this.#running !== undefined) process.kill(this.#running.pid, name);
  }

  /** Process ids of its workers. Linux only; elsewhere there are none. */
  get workers(): readonly number[] {
    const parent = this.#running?.pid;
    if (parent === undefined || process.platform !== 'linux') return [];
    return readdirSync('/proc')
      .map(Number)
      .filter(Number.isInteger)
      .filter((pid) => readProcess(pid, 'stat')?.split(') ')[1]?.split(' ')[1] === String(parent))
      .filter((pid) => readProcess(pid, 'cmdline')?.includes(programPath));
  }

  /** Resident memory. Linux only; elsewhere 0. */
  get memoryBytes(): number {
    const status = this.#running === undefined ? '' : (readProcess(this.#running.pid, 'status') ?? '');
    return 1_024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0);
  }

  /** Processor time of the process so far. Linux only; elsewhere 0. */
  get cpuMs(): number {
    const stat = this.#running === undefined ? '' : (readProcess(this.#running.pid, 'stat') ?? '');
    const [user = 0, system = 0] = stat.split(') ')[1]?.split(' ').slice(11, 13).map(Number) ?? [];
    return 10 * (user + system); // in hundredths of a second
  }

  /** The longest time in which its event loop did nothing else, since the last question. */
  async lagMs(admin: Readonly<Record<string, string>>): Promise<number> {
    const answer = await fetch(`${this.origin}/metrics`, { headers: admin });
    const text = await answer.text();
    return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds(?:\{.*\})? (\S+)$/m.exec(text)?.[1]);
  }

  /** The end of its output. */
  output(): string {
    return this.#running?.output() ?? '';
  }
}

export interface Deployment {
  readonly nodes: readonly Node[];
  /** Between the nodes and Redis; undefined without it. */
  readonly redis: Relay | undefined;
  readonly balancer: Balancer;
  /** The database, also while nodes do not reach it. */
  readonly databaseUrl: string;
  /** An HTTP server of the template `far`. */
  readonly backend: string;
  /** Headers of an API key. */
  readonly key: Readonly<Record<string, string>>;
  /** Logs in; resolves with the headers of the administrator. */
  admin(): Promise<Readonly<Record<string, string>>>;
  readonly programs: readonly ProgramLife[];
  carriedOut(): Promise<readonly CarriedOut[]>;
  /** Ends everything; resolves with the number of processes of the program that were left 5 s after the nodes had ended. */
  close(): Promise<number>;
}

export interface DeploymentOptions {
  readonly nodes: number;
  readonly database: DatabaseName;
  readonly templates: readonly Template[];
  /** Further settings of each node. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** No relays between nodes and database, nor between nodes: each would need two files for each connection. */
  readonly isDirect?: boolean | undefined;
  /** The HTTP servers are those of backends/news.ts, and record nothing. */
  readonly hasNews?: boolean;
  /** The nodes count limits in Redis. */
  readonly hasRedis?: boolean;
  /** Of the nodes. Default: a random one. */
  readonly firstPort?: number;
  /** Of each node. Default: one process. */
  readonly workers?: number;
  /** Each node has a network of its own, in which it can be cut off; the program is one of any node. */
  readonly hasNetworks?: boolean;
}

export async function startDeployment(options: DeploymentOptions): Promise<Deployment> {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-cluster-'));
  const closing: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })];
  const closeAll = async (): Promise<void> => {
    for (const close of closing.splice(0).reverse()) await close();
  };
  try {
    const database = await openDatabase(options.database, folder);
    closing.push(database.drop);
    const record = join(folder, 'carried-out');
    await writeFile(record, '');
    const network = options.hasNetworks ? await openNetwork(options.nodes) : undefined;
    if (network !== undefined) closing.push(network.close);
    const host = network === undefined ? '127.0.0.1' : HOST.clients;
    const words = ['--name=far', '--ports=2', `--host=${host}`];
    const far = await startNode(
      options.hasNews ? [news, ...words] : [recording, ...words, `--record=${record}`],
      listening,
    );
    closing.push(() => far.stop());

    const counter = options.hasRedis ? await openRedis() : undefined;
    if (counter !== undefined) closing.push(() => counter.refuse());
    const password = randomBytes(12).toString('hex');
    const environment = {
      GATEWAY_DATABASE_URL: database.url,
      GATEWAY_SECRET_KEY: randomBytes(32).toString('hex'),
      GATEWAY_ADMIN_PASSWORD: password,
      GATEWAY_API_KEY_LIMIT: '1000000000',
      GATEWAY_STATE_DIR: folder,
      GATEWAY_LOG_LEVEL: 'warn',
      ...(counter && { GATEWAY_REDIS_URL: `redis://${counter.host}:${counter.port}` }),
      ...(options.workers && { GATEWAY_WORKERS: String(options.workers) }),
      ...options.settings,
    };
    const names = Array.from({ length: options.nodes }, (_, index) => 'abcdefgh'[index] ?? `node-${index}`);
    const nodes: Node[] = [];
    const freePort = keptPorts(options.firstPort);
    for (const [index, name] of names.entries()) {
      const relays = await relaysOf(options, database.url, freePort, network?.nodes[index]);
      const own = { ...environment, ...relays.environment };
      nodes.push(new Node(name, await freePort(), folder, own, relays));
      closing.push(() => {
        relays.database?.refuse();
        relays.peers?.refuse();
      });
    }
    for (const node of nodes) closing.push(() => node.stop());
    for (const node of nodes) await node.start();

    const [first] = nodes;
    if (first === undefined) throw new Error('a deployment has at least one node');
    const logIn = async () => {
      const own = { username: 'admin', password };
      const { access_token: token } = await ask('POST', `${first.origin}/auth/login`, own);
      return { Authorization: `Bearer ${token}` };
    };
    const admin = await logIn();
    const wanted = { name: 'clients', permissions: ['tools:call'] };
    const { key } = await ask('POST', `${first.origin}/auth/api-keys`, wanted, admin);
    const [, ports = ''] = far.announced;
    const program = [process.execPath, recording, '--name=near', `--record=${record}`, '--deaf'];
    const instances = {
      far: ports
        .split(' ')
        .map((port, index) => ({ id: `far-${index + 1}`, endpoint: `http://${host}:${port}/mcp` })),
      near: [{ id: 'near-1', command: program[0], args: program.slice(1), ...(network && { node: 'any' }) }],
    };
    for (const template of options.templates)
      for (const instance of instances[template]) {
        const body = { template_name: template, instance };
        await ask('POST', `${first.origin}/gateway/register?wait=30`, body, admin);
      }
    // Registrations apply on the other nodes, or workers, within some seconds.
    if (nodes.length > 1 || options.workers !== undefined) await delay(4_000);

    const balancer = await startBalancer(nodes.map(({ origin }) => origin));
    closing.push(() => balancer.close());
    const sampled = sample(`--record=${record}`, '--name=near');
    closing.push(sampled.stop);
    return {
      nodes,
      redis: counter,
      balancer,
      databaseUrl: database.url,
      backend: instances.far[0]?.endpoint ?? '',
      key: { 'X-API-Key': String(key) },
      admin: logIn,
      programs: sampled.programs,
      carriedOut: async () => {
        const lines = (await readFile(record, 'utf8')).split('\n').filter((line) => line !== '');
        return lines.map((line) => JSON.parse(line));
      },
      close: async () => {
        await Promise.all(nodes.map((node) => node.stop()));
        const giveUpAtMs = nowMs() + 5_000;
        while (sampled.running() > 0 && nowMs() < giveUpAtMs) await delay(SAMPLE_MS);
        const leftOver = sampled.running();
        await closeAll();
        return leftOver;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function openDatabase(
  name: DatabaseName,
  folder: string,
): Promise<{ url: string; drop: () => Promise<void> }> {
  if (name === 'SQLite') return { url: `sqlite:///${join(folder, 'gateway.db')}`, drop: async () => {} };
  const server = await (name === 'MariaDB' ? mariadb() : postgresql());
  if (server.url === undefined) throw new Error(`no ${name}: ${server.skip}`);
  return freshDatabase(server);
}

async function openRedis(): Promise<Relay> {
  const server = await redis();
  if (server.url === undefined) throw new Error(`no Redis: ${server.skip}`);
  const { hostname, port } = new URL(server.url);
  const relay = new Relay({ host: hostname, port: Number(port || 6379) });
  await relay.pass();
  return relay;
}

/** What is between a node, the database and the other nodes, with the settings that use it. */
async function relaysOf(
  { database: name, isDirect }: DeploymentOptions,
  url: string,
  freePort: () => Promise<number>,
  network?: NodeNetwork,
) {
  if (isDirect ?? name === 'SQLite')
    return { database: undefined, peers: undefined, network, environment: {} };
  const database = await relayTo(url, network && HOST.database);
  const environment = { GATEWAY_DATABASE_URL: throughRelay(url, database) };
  if (network !== undefined) {
    const listen = { GATEWAY_CLUSTER_LISTEN: `${network.address}:8090` };
    return { database, peers: undefined, network, environment: { ...environment, ...listen } };
  }
  const listen = await freePort();
  const peers = new Relay({ host: '127.0.0.1', port: listen });
  await peers.pass();
  const listener = {
    GATEWAY_CLUSTER_LISTEN: `127.0.0.1:${listen}`,
    GATEWAY_CLUSTER_ADVERTISE: `127.0.0.1:${peers.port}`,
  };
  return { database, peers, network, environment: { ...environment, ...listener } };
}

async function relayTo(url: string, host: string | undefined): Promise<Relay> {
  const { protocol, hostname, port } = new URL(url);
  const usual = protocol.startsWith('postgres') ? 5432 : 3306;
  const relay = new Relay({ host: hostname || '127.0.0.1', port: Number(port || usual) }, host);
  await relay.pass();
  return relay;
}

function throughRelay(url: string, { host, port }: Relay): string {
  const own = new URL(url);
  own.host = `${host}:${port}`;
  return own.href;
}

/** Ports that nodes keep through their restarts: below those that systems give to connections, which would take them meanwhile. */
function keptPorts(first = 20_000 + randomInt(10_000)): () => Promise<number> {
  let next = first;
  return async () => {
    while (!(await isFree(next))) next += 1;
    next += 1;
    return next - 1;
  };
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return true;
  } catch {
    return false; // in use
  } finally {
    server.close();
  }
}

/** Samples the processes whose command line has all these words; none where there is no /proc. */
function sample(...words: readonly string[]) {
  const programs: ProgramLife[] = [];
  if (process.platform !== 'linux') return { programs, running: () => 0, stop: () => undefined };
  const wanted = new Map<number, ProgramLife>();
  /** How often the command line of another process was read: it is that of its parent until the program is executed. */
  const others = new Map<number, number>();
  let running = 0;
  const look = (): void => {
    const atMs = nowMs();
    const pids = new Set(readdirSync('/proc').map(Number).filter(Number.isInteger));
    for (const known of [wanted, others])
      for (const pid of known.keys()) if (!pids.has(pid)) known.delete(pid);
    running = 0;
    for (const pid of pids) {
      const looks = others.get(pid) ?? 0;
      if (looks === LOOKS) continue;
      let life = wanted.get(pid);
      if (life === undefined) {
        const line = readProcess(pid, 'cmdline') ?? '';
        if (!words.every((word) => line.includes(word))) {
          others.set(pid, looks + 1);
          continue;
        }
        life = { pid, firstSeenMs: atMs, lastSeenMs: atMs };
        wanted.set(pid, life);
        programs.push(life);
      }
      if (/\) [ZX] /.test(readProcess(pid, 'stat') ?? ') Z ')) continue;
      life.lastSeenMs = atMs;
      running += 1;
    }
  };
  const timer = setInterval(look, SAMPLE_MS);
  return { programs, running: () => running, stop: () => clearInterval(timer) };
}

function readProcess(pid: number, file: 'cmdline' | 'stat' | 'status'): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return undefined; // it has ended
  }
}
