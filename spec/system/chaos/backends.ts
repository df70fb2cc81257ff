// The backends of the chaos journey: programs that the gateway runs, and HTTP servers in separate processes, which can be
// killed, suspended, and started again on the same port.

import { setTimeout as delay } from 'node:timers/promises';
import { listening, type Started, startNode } from '../../../bench/children.ts';
import { httpServerPath, stdioServerPath } from '../../fixtures/programs.ts';
import { type SseFixture, startSseServer } from '../../fixtures/sse-server.ts';
import type { InstanceBody } from '../../helpers/programs/mcp-program.ts';
import { isRunning } from '../../helpers/programs/processes.ts';

/** Attempts to start an HTTP server, and the pause between them. */
const attempts = 20;
const againMs = 250;

/** An HTTP server of the fixture. The caller stops it. */
class ChaosServer {
  readonly name: string;
  readonly #era: string;
  #port = '0';
  #running: Started | undefined;
  #starting: Promise<void> | undefined;

  private constructor(name: string, era: string) {
    this.name = name;
    this.#era = era;
  }

  static async start(name: string, era: 'legacy' | 'modern'): Promise<ChaosServer> {
    const server = new ChaosServer(name, era);
    await server.revive();
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}/mcp`;
  }

  /** Starts it on its port, unless it runs; repeats that while its port is still in use. */
  async revive(): Promise<void> {
    if (this.#running !== undefined && isRunning(this.#running.pid)) return;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    await this.#starting;
  }

  kill(): void {
    this.#signal('SIGKILL');
  }

  /** Suspends it for `ms`; its sockets stay open. */
  async freeze(ms: number): Promise<void> {
    this.#signal('SIGSTOP');
    await delay(ms);
    this.#signal('SIGCONT');
  }

  async stop(): Promise<void> {
    this.kill();
    await this.#running?.stop();
  }

  /** Does nothing when it has ended. */
  #signal(name: NodeJS.Signals): void {
    if (this.#running !== undefined && isRunning(this.#running.pid)) process.kill(this.#running.pid, name);
  }

  async #start(): Promise<void> {
    const words = [`--name=${this.name}`, `--era=${this.#era}`, '--answers=sse', `--port=${this.#port}`];
    for (let left = attempts; ; left -= 1) {
      try {
        this.#running = await startNode([httpServerPath, ...words], listening);
        this.#port = this.#running.announced[1] ?? '';
        return;
      } catch (error) {
        if (left === 0) throw error;
        await delay(againMs);
      }
    }
  }
}

/** Everything behind the gateway, by template. The caller closes it. */
export interface ChaosBackends {
  readonly servers: readonly ChaosServer[];
  /** A server of HTTP+SSE; it runs in the process of the spec. */
  readonly far: SseFixture;
  /** The registration of every instance. */
  readonly instances: readonly {
    readonly template: string;
    readonly body: InstanceBody & { transport?: 'sse' };
  }[];
  close(): Promise<void>;
}

/** The names of the templates, and the settings of some of them. */
export const TEMPLATES = ['pipes', 'alone', 'old', 'new', 'far'] as const;
export const SETTINGS: Readonly<Record<string, object>> = {
  alone: { session: 'isolated' },
  old: { session_failover: 'always' },
};

export async function startBackends(): Promise<ChaosBackends> {
  const [first, second, third, fourth] = await Promise.all([
    ChaosServer.start('old-a', 'legacy'),
    ChaosServer.start('old-b', 'legacy'),
    ChaosServer.start('new-a', 'modern'),
    ChaosServer.start('new-b', 'modern'),
  ]);
  const servers = [first, second, third, fourth];
  const far = await startSseServer({ name: 'far-a' });
  const program = (id: string) => ({
    id,
    command: process.execPath,
    args: [stdioServerPath, `--name=${id}`],
  });
  return {
    servers,
    far,
    instances: [
      { template: 'pipes', body: program('pipes-a') },
      { template: 'pipes', body: program('pipes-b') },
      { template: 'alone', body: program('alone-a') },
      ...servers.map(({ name, endpoint }) => ({ template: name.slice(0, 3), body: { id: name, endpoint } })),
      { template: 'far', body: { id: 'far-a', endpoint: far.url, transport: 'sse' } },
    ],
    close: async () => {
      await Promise.all([...servers.map((server) => server.stop()), far.close()]);
    },
  };
}
