// What a running gateway holds: processes, open files, handles, and the heap after everything that nobody holds was
// collected, which its inspector is asked for.

import { readdirSync } from 'node:fs';
import { objectOr } from '../../fixtures/wire.ts';
import type { Program } from '../../helpers/program.ts';

/** The option of Node under which a program can be looked into; to be given in NODE_OPTIONS. */
export const INSPECTED = '--inspect=127.0.0.1:0';

/** Longest wait for an answer of the inspector. */
const patienceMs = 15_000;
const address = /ws:\/\/127\.0\.0\.1:\d+\/[\w-]+/;

export interface Footprint {
  /** That it started and that live. */
  readonly processes: number;
  readonly files: number;
  /** What keeps its event loop busy: sockets, pipes, timers, children. */
  readonly resources: number;
  readonly heapBytes: number;
}

/** Looks into one program. */
export class Inspector {
  readonly #program: Program;
  readonly #socket: WebSocket;
  #lastId = 0;

  private constructor(program: Program, socket: WebSocket) {
    this.#program = program;
    this.#socket = socket;
  }

  static async open(program: Program): Promise<Inspector> {
    const [url] = await program.complains(address);
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)), { once: true });
    });
    return new Inspector(program, socket);
  }

  async footprint(): Promise<Footprint> {
    // What a finalizer lets go of is collected the next time.
    for (let round = 0; round < 2; round += 1) await this.#ask('HeapProfiler.collectGarbage');
    const heap = await this.#ask('Runtime.getHeapUsage');
    const expression = 'process.getActiveResourcesInfo().length';
    const { result } = await this.#ask('Runtime.evaluate', { expression, returnByValue: true });
    return {
      processes: this.#program.descendants().length,
      files: readdirSync(`/proc/${this.#program.process.pid}/fd`).length,
      resources: Number(objectOr(result).value),
      heapBytes: Number(heap.usedSize),
    };
  }

  close(): void {
    this.#socket.close();
  }

  async #ask(method: string, params: object = {}) {
    this.#lastId += 1;
    const id = this.#lastId;
    const signal = AbortSignal.timeout(patienceMs);
    const answer = new Promise<unknown>((resolve, reject) => {
      const hear = ({ data }: MessageEvent): void => {
        const message = objectOr(JSON.parse(String(data)));
        if (message.id !== id) return;
        this.#socket.removeEventListener('message', hear);
        resolve(message.result);
      };
      this.#socket.addEventListener('message', hear);
      signal.addEventListener('abort', () => reject(new Error(`no answer to ${method}`)), { once: true });
    });
    this.#socket.send(JSON.stringify({ id, method, params }));
    return objectOr(await answer);
  }
}

/** True when nothing of it is more than so large a part above what was there before. */
export function isBack(now: Footprint, before: Footprint, part: number): boolean {
  const keys = ['processes', 'files', 'resources', 'heapBytes'] as const;
  return keys.every((key) => now[key] <= before[key] * (1 + part));
}
