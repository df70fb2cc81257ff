// The servers of one run: each is searched once, by a supervisor process, and ends with the run. The runner owns the servers
// of all its spec files; a spec file that is started by hand has its own.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

export const SERVICE_NAMES = ['postgresql', 'mariadb', 'redis'] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

/** The variable in which the runner passes the answer to its processes. */
export function answerVariable(name: ServiceName): string {
  return `STAGEDOOR_SPEC_${name.toUpperCase()}`;
}

/** The answer of a supervisor; `error` is for a configured server that does not answer. */
export type ServiceAnswer = { readonly url: string } | { readonly skip: string } | { readonly error: string };

type Environment = Readonly<Record<string, string | undefined>>;

const supervisorModule = fileURLToPath(new URL('supervisor.ts', import.meta.url));
/** Longer than the slowest start of a private server; see private-server.ts. */
const answerWithinMs = 90_000;
const stopWithinMs = 30_000;

export class SupervisedServers {
  readonly #answers = new Map<ServiceName, Promise<ServiceAnswer>>();
  readonly #supervisors: ChildProcessByStdio<Writable, Readable, null>[] = [];

  /** Never rejects. The answer holds for the whole run, even if the environment changes. */
  find(name: ServiceName, environment: Environment = process.env): Promise<ServiceAnswer> {
    const answer = this.#answers.get(name) ?? this.#look(name, environment);
    this.#answers.set(name, answer);
    return answer;
  }

  /** Ends the started servers and waits for them, at most 30 s. */
  async close(): Promise<void> {
    const endings = this.#supervisors.map(async (supervisor) => {
      if (supervisor.exitCode !== null || supervisor.signalCode !== null) return;
      const ended = once(supervisor, 'exit', { signal: AbortSignal.timeout(stopWithinMs) });
      supervisor.ref();
      supervisor.stdin.end();
      await ended.catch(() => undefined); // it takes longer: not waited for
    });
    await Promise.all(endings);
  }

  async #look(name: ServiceName, environment: Environment): Promise<ServiceAnswer> {
    const supervisor = spawn(process.execPath, [supervisorModule, name], {
      stdio: ['pipe', 'pipe', 'ignore'],
      // A separate process group: Ctrl-C and the runner end groups, and it has to stop its server first.
      detached: true,
      windowsHide: true,
      env: { ...environment },
    });
    this.#supervisors.push(supervisor);
    try {
      const lines = createInterface({ input: supervisor.stdout });
      const [line] = await once(lines, 'line', { signal: AbortSignal.timeout(answerWithinMs) });
      return JSON.parse(line); // a supervisor writes a ServiceAnswer
    } catch (thrown) {
      return { error: `${name}: its supervisor does not answer: ${thrown}` };
    } finally {
      // From here on it does not keep this process alive, and it ends with it.
      supervisor.unref();
      for (const pipe of [supervisor.stdin, supervisor.stdout]) if ('unref' in pipe) Object(pipe).unref();
    }
  }
}
