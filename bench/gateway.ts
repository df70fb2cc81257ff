// Starts stagedoor as users do: `stagedoor gateway start`, with a registry document of benchmark instances.
// It uses only the command line and the HTTP API, and imports nothing of src/.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Started, startNode } from './children.ts';
import type { Installed } from './installed.ts';

export interface StartedGateway extends Started {
  /** For example `http://127.0.0.1:4321`. */
  readonly origin: string;
}

/** A gateway with authentication, and the credentials of two callers as headers. */
export interface GuardedGateway extends StartedGateway {
  /** An API key with the scope `tools:call`. Its requests are counted; the benchmark does not reach the limit. */
  readonly key: Readonly<Record<string, string>>;
  readonly admin: Readonly<Record<string, string>>;
}

/** The templates that a gateway has before the measurement. */
export interface Instances {
  /** HTTP endpoints by template. */
  readonly http?: Readonly<Record<string, readonly string[]>>;
  /** The node that runs the processes. Default: any. */
  readonly node?: string;
  /** Node parameters of one stdio process, by template. */
  readonly stdio?: Readonly<Record<string, readonly string[]>>;
}

/** The program that runs the sources. */
export const programPath = fileURLToPath(new URL('../bin/stagedoor.mjs', import.meta.url));

const announced = /listening on (https?:\/\/[\w.[\]-]+:\d+)/;
const readyTimeoutMs = 60_000;

/**
 * Starts a gateway in a new empty folder and waits until it listens and all its instances are healthy. Everything is at its default
 * unless `environment` changes it; the database is in that folder, and the log goes to a pipe.
 */
export async function startGateway(
  instances: Instances,
  environment: Readonly<Record<string, string>> = {},
  program: Installed = { programPath, environment: {} },
): Promise<StartedGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-bench-'));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const registryPath = join(folder, 'registry.json');
  await writeFile(registryPath, JSON.stringify({ templates: templatesOf(instances) }));
  const switches = ['--host', '127.0.0.1', '--port', '0'];
  try {
    const started = await startNode([program.programPath, 'gateway', 'start', ...switches], announced, {
      environment: { ...program.environment, ...environment, MCP_GATEWAY_REGISTRY_FILE: registryPath },
      // The database is created in the working folder.
      workingFolder: folder,
    });
    const [, origin = ''] = started.announced;
    const stop = async (): Promise<void> => {
      await started.stop();
      await removeFolder();
    };
    try {
      await ready(origin, countOf(instances));
    } catch (error) {
      await stop();
      throw error;
    }
    return { ...started, origin, stop };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** The gateway of the main case: as users start it, with a rate limit that is not reached and an API key. */
export async function startGuarded(
  instances: Instances,
  program: Installed,
  environment: Readonly<Record<string, string>> = {},
): Promise<GuardedGateway> {
  const password = randomBytes(12).toString('hex');
  const gateway = await startGateway(
    instances,
    { GATEWAY_ADMIN_PASSWORD: password, GATEWAY_API_KEY_LIMIT: '1000000000', ...environment },
    program,
  );
  try {
    const login = { username: 'admin', password };
    const { access_token: token } = await ask('POST', `${gateway.origin}/auth/login`, login);
    const admin = { Authorization: `Bearer ${token}` };
    const wanted = { name: 'bench', permissions: ['tools:call'] };
    const { key } = await ask('POST', `${gateway.origin}/auth/api-keys`, wanted, admin);
    return { ...gateway, key: { 'X-API-Key': String(key) }, admin };
  } catch (error) {
    await gateway.stop();
    throw error;
  }
}

/** One request with a JSON body to the API of a gateway. */
export async function ask(
  method: string,
  url: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return Object.fromEntries(Object.entries((await response.json()) ?? {}));
}

function templatesOf({ http = {}, stdio = {}, node }: Instances): unknown {
  const ofHttp = Object.entries(http).map(([template, endpoints]) => {
    const instances = endpoints.map((endpoint, index) => ({ id: `http-${index + 1}`, endpoint }));
    return [template, { instances }];
  });
  const ofStdio = Object.entries(stdio).map(([template, args]) => {
    return [template, { instances: [{ id: 'stdio-1', command: process.execPath, args, node }] }];
  });
  return Object.fromEntries([...ofHttp, ...ofStdio]);
}

function countOf({ http = {}, stdio = {} }: Instances): number {
  return Object.values(http).flat().length + Object.keys(stdio).length;
}

async function ready(origin: string, healthyInstances: number): Promise<void> {
  const deadlineMs = performance.now() + readyTimeoutMs;
  let last = 'nothing was answered';
  while (performance.now() < deadlineMs) {
    try {
      const readiness = await fetch(`${origin}/readyz`);
      const health = await (await fetch(`${origin}/gateway/health`)).text();
      last = `readyz ${readiness.status}, health ${health}`;
      if (readiness.status === 200 && healthyIn(JSON.parse(health)) >= healthyInstances) return;
    } catch (error) {
      last = String(error);
    }
    await delay(50);
  }
  throw new Error(`the gateway did not become ready within ${readyTimeoutMs} ms: ${last}`);
}

/** Reads `instances.healthy` of GET /gateway/health. */
function healthyIn(health: { readonly instances?: { readonly healthy?: number } }): number {
  return health.instances?.healthy ?? 0;
}
