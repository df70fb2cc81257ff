// Starts stagedoor as users do: `stagedoor gateway start`, with a registry document of benchmark instances.
// It uses only the command line and the HTTP API, and imports nothing of src/.

import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Started, startNode } from './children.ts';

export interface StartedGateway extends Started {
  /** For example `http://127.0.0.1:4321`. */
  readonly origin: string;
}

/** The templates that a gateway has before the measurement, balanced round robin. */
export interface Instances {
  /** HTTP endpoints by template. */
  readonly http: Readonly<Record<string, readonly string[]>>;
  /** Node parameters of one stdio process, by template. */
  readonly stdio: Readonly<Record<string, readonly string[]>>;
}

/** The program, even if it does not exist yet. */
export const programPath = fileURLToPath(new URL('../bin/stagedoor.mjs', import.meta.url));

const announced = /https?:\/\/[\w.[\]-]+:\d+/;
const readyTimeoutMs = 20_000;

/**
 * Starts a gateway in a new empty folder and waits until it listens; with instances, until all are healthy.
 * Authentication is off unless `environment` turns it on; the database is the default one, in that folder. It
 * logs only errors and records no calls, unless `logLevel` and `environment` say otherwise.
 */
export async function startGateway(
  instances?: Instances,
  environment: Readonly<Record<string, string>> = { GATEWAY_AUTH_ENABLED: 'false' },
  logLevel = 'error',
): Promise<StartedGateway> {
  if (!existsSync(programPath)) throw new Error('bin/stagedoor.mjs does not exist');
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-bench-'));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const configPath = join(folder, 'gateway.yaml');
  const registryPath = join(folder, 'registry.json');
  await writeFile(configPath, 'host: 127.0.0.1\n');
  await writeFile(registryPath, JSON.stringify({ templates: instances ? templatesOf(instances) : {} }));
  const switches = ['--host', '127.0.0.1', '--port', '0', '--log-level', logLevel];
  try {
    const parameters = [programPath, 'gateway', 'start', ...switches, '--config', configPath];
    const started = await startNode(parameters, announced, {
      environment: { GATEWAY_AUDIT_CALLS: 'false', ...environment, MCP_GATEWAY_REGISTRY_FILE: registryPath },
      // The database is created in the working folder.
      workingFolder: folder,
    });
    const origin = started.announced[0];
    const stop = async (): Promise<void> => {
      await started.stop();
      await removeFolder();
    };
    try {
      await ready(origin, instances === undefined ? 0 : countOf(instances));
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

function templatesOf({ http, stdio }: Instances): unknown {
  const ofHttp = Object.entries(http).map(([template, endpoints]) => {
    const instances = endpoints.map((endpoint, index) => ({ id: `http-${index + 1}`, endpoint }));
    return [template, { instances, load_balancer: { strategy: 'round_robin' } }];
  });
  const ofStdio = Object.entries(stdio).map(([template, args]) => {
    return [template, { instances: [{ id: 'stdio-1', command: process.execPath, args }] }];
  });
  return Object.fromEntries([...ofHttp, ...ofStdio]);
}

function countOf({ http, stdio }: Instances): number {
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
