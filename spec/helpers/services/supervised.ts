// The servers of one run: each is looked for once, by a supervisor process, and ends with the run. The runner owns those of all
// its spec files; a spec file that is started by hand owns its own.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

export const SERVICE_NAMES = ['postgresql', 'mariadb', 'redis'] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

/** In which the runner tells its processes what it found. */
export function answerVariable(name: ServiceName): string {
  return `STAGEDOOR_SPEC_${name.toUpperCase()}`;
}

/** What a supervisor says; `error` is for a server that was named but does not answer. */
export type ServiceAnswer = { readonly url: string } | { readonly skip: string } | { readonly error: string };

type Environment = Readonly<Record<string, string | undefined>>;

const supervisorModule = fileURLToPath(new URL('supervisor.ts', import.meta.url));
/** Longer than a start of a private server takes on the slowest machine; see private-server.ts. */
const answerWithinMs = 90_000;
const stopWithinMs = 30_000;

export class SupervisedServers {
  readonly #answers = new Map<ServiceName, Promise<ServiceAnswer>>();
  readonly #supervisors: ChildProcessByStdio<Writable, Readable, null>[] = [];

  /** Never rejects. What was found holds for the run, whatever the environment says later. */
  find(name: ServiceName, environment: Environment = process.env): Promise<ServiceAnswer> {
    const answer = this.#answers.get(name) ?? this.#look(name, environment);
    this.#answers.set(name, answer);
    return answer;
  }

  /** Ends what was started, and waits for it, at most 30 s. */
  async close(): Promise<void> {
    const endings = this.#supervisors.map(async (supervisor) => {
      if (supervisor.exitCode !== null || supervisor.signalCode !== null) return;
      const ended = once(supervisor, 'exit', { signal: AbortSignal.timeout(stopWithinMs) });
      supervisor.ref();
      supervisor.stdin.end();
      await ended.catch(() => undefined); // it takes longer: it goes on without us
    });
    await Promise.all(endings);
  }

  async #look(name: ServiceName, environment: Environment): Promise<ServiceAnswer> {
    const supervisor = spawn(process.execPath, [supervisorModule, name], {
      stdio: ['pipe', 'pipe', 'ignore'],
      // A group of its own: Ctrl-C and the runner end groups, and it has to end its server first.
      detached: true,
      windowsHide: true,
      env: { ...environment },
    });
    this.#supervisors.push(supervisor);
    try {
      const lines = createInterface({ input: supervisor.stdout });
      const [line] = await once(lines, 'line', { signal: AbortSignal.timeout(answerWithinMs) });
      return JSON.parse(line); // it writes an answer
    } catch (thrown) {
      return { error: `${name}: its supervisor does not answer: ${thrown}` };
    } finally {
      // From here on nothing of it keeps this process alive; with that it ends.
      supervisor.unref();
      for (const pipe of [supervisor.stdin, supervisor.stdout]) if ('unref' in pipe) Object(pipe).unref();
    }
  }
}
