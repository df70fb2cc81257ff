// Starts the program as a user would, `node bin/stagedoor.mjs …`, and observes its output, its addresses, its exit and the
// processes it leaves behind. In the system tier it is the one that the runner has built. Each program has its own home folder. Its
// descendants inherit the variable, which is how they are found.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Outcome } from '../../cli/commands/against-gateway.ts';
import { PROGRAM_VARIABLE } from '../../runner/built-program.ts';
import type { MemoryLimit } from './memory-limit.ts';
import { canFindProcesses, killNow, processesWhere } from './processes.ts';

/** The entry point of the program that runs the sources. */
export const sourceBinPath = fileURLToPath(new URL('../../../bin/stagedoor.mjs', import.meta.url));

/** The entry point of the program. */
export const binPath = resolve(process.env[PROGRAM_VARIABLE] || sourceBinPath);

const builtWatchModule = join(dirname(binPath), '../dist/program/watch-program.js');
const watchModule = existsSync(builtWatchModule)
  ? pathToFileURL(builtWatchModule).href
  : new URL('../api/watch-program.ts', import.meta.url).href;

export interface ProgramOptions {
  /** Variables besides PATH, HOME and TMPDIR; they override `PLAIN`. An empty one counts as not set. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working folder. Default: the program's empty home folder. */
  readonly folder?: string;
  /** Its standard input. Default: empty. */
  readonly input?: string;
  /** The memory limit for it and its children. Default: none. */
  readonly memory?: MemoryLimit;
  /** Its entry point. Default: `binPath`. */
  readonly bin?: string;
  /** It leads a process group, which a terminal signals as a whole. Default: it is in the group of the specs. */
  readonly isGroup?: boolean;
}

/** The default settings of gateways in specs: local, with a store in memory and without authentication. */
export const PLAIN = {
  MCP_GATEWAY_HOST: '127.0.0.1',
  GATEWAY_HOST: '127.0.0.1',
  GATEWAY_AUTH_ENABLED: 'false',
  GATEWAY_DATABASE_URL: 'memory://',
} as const;

/** Resets the settings of `PLAIN` for authentication and the database to the gateway's defaults. */
export const AS_IT_COMES = { GATEWAY_AUTH_ENABLED: '', GATEWAY_DATABASE_URL: '' } as const;

/** The exit code of a program, or the signal that ended it. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The default timeout, long enough for a busy machine. */
const timeoutMs = 30_000;

/** The cache folder of the user who runs the specs, which makes each start faster. */
export const cacheFolder = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');

/** One running program. */
export class Program {
  readonly process: ChildProcess;
  /** Its home folder, also for its temporary files; `remove` deletes it. */
  readonly home: string;
  readonly #ended: Promise<ProgramEnd>;
  /** The file of answers that differ from the API description; see watch-program.ts. */
  readonly #strangeAnswers: string;
  #out = '';
  #err = '';
  #hasEnded = false;
  #listeners = new Set<() => void>();

  constructor(
    words: readonly string[],
    { env = {}, folder, input, memory, bin = binPath, isGroup }: ProgramOptions = {},
  ) {
    this.home = mkdtempSync(join(tmpdir(), 'stagedoor-home-'));
    this.#strangeAnswers = join(this.home, 'strange-answers');
    const [file, ...args] = [...entering(memory), process.execPath, bin, ...words];
    this.process = spawn(file ?? '', args, {
      cwd: folder ?? this.home,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: this.home,
        TMPDIR: this.home,
        XDG_CACHE_HOME: cacheFolder,
        NODE_OPTIONS: `--import=${watchModule}?${encodeURIComponent(this.#strangeAnswers)}`,
        ...PLAIN,
        ...env,
      },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: isGroup === true,
    });
    this.process.stdin?.on('error', () => {}); // it may end before it has read
    this.process.stdin?.end(input);
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#out += text;
      this.#notify();
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#err += text;
      this.#notify();
    });
    this.#ended = once(this.process, 'close').then(([code, signal]) => {
      this.#hasEnded = true;
      this.#notify();
      return { code, signal };
    });
  }

  /** Everything on standard output so far. */
  get out(): string {
    return this.#out;
  }

  /** Everything on standard error so far. */
  get err(): string {
    return this.#err;
  }

  /** Waits for the first URL it listens on. */
  async url(withinMs?: number): Promise<string> {
    const [, url = ''] = await this.sees(/listening on .*?(http[^\s)]+)/, withinMs);
    return url;
  }

  /** Waits until standard output matches. Fails when the program ends or the time limit is reached. */
  sees(pattern: RegExp, withinMs = timeoutMs): Promise<RegExpExecArray> {
    return this.#find(() => pattern.exec(this.#out), pattern, withinMs);
  }

  /** The same for standard error. */
  complains(pattern: RegExp, withinMs = timeoutMs): Promise<RegExpExecArray> {
    return this.#find(() => pattern.exec(this.#err), pattern, withinMs);
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name);
  }

  /** As a terminal does: to all processes of the group that it leads. */
  signalGroup(name: NodeJS.Signals): void {
    process.kill(-(this.process.pid ?? 0), name);
  }

  /** Waits for its end. Fails after the time limit. */
  async end(withinMs = timeoutMs): Promise<ProgramEnd> {
    await this.#until(() => this.#hasEnded || undefined, withinMs);
    if (!this.#hasEnded) throw new Error(`it did not end within ${withinMs} ms:\n${this.#out}\n${this.#err}`);
    return this.#ended;
  }

  /** Runs another command line against this gateway, in the process of the spec. */
  async run(...words: string[]): Promise<Outcome> {
    const { runAtTerminal } = await import('../../cli/commands/against-gateway.ts');
    const env = { ...PLAIN, STAGEDOOR_URL: await this.url() };
    return runAtTerminal(words, { env, folder: this.home });
  }

  /** The ids of its running descendants. Linux only. */
  descendants(): number[] {
    return processesWithHome(this.home).filter((pid) => pid !== this.process.pid);
  }

  /** Waits until all its descendants have ended; resolves with those that are left after the time limit. */
  async survivors(withinMs = timeoutMs): Promise<number[]> {
    await this.#until(() => this.descendants().length === 0 || undefined, withinMs);
    return this.descendants();
  }

  /** For the end of a test: kills what is left, removes the folder, and throws if an answer was not as documented. */
  async remove(): Promise<void> {
    if (!this.#hasEnded) this.process.kill('SIGKILL');
    await this.#ended;
    if (canFindProcesses) for (const pid of this.descendants()) killNow(pid);
    const strange = existsSync(this.#strangeAnswers) ? readFileSync(this.#strangeAnswers, 'utf8') : '';
    // Not `rmSync`, whose retries do not wait: a killed process may still be writing.
    await rm(this.home, { recursive: true, force: true, maxRetries: 10 });
    if (strange !== '') throw new Error(`not as the API description says:\n${strange.slice(0, 2_000)}`);
  }

  async #find(
    look: () => RegExpExecArray | null,
    pattern: RegExp,
    withinMs: number,
  ): Promise<RegExpExecArray> {
    const found = await this.#until(() => look() ?? (this.#hasEnded ? 'ended' : undefined), withinMs);
    if (found !== undefined && found !== 'ended') return found;
    const how = found === 'ended' ? 'ended' : `did not within ${withinMs} ms`;
    throw new Error(`it should have said ${pattern} but ${how}:\n${this.#out}\n${this.#err}`);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Looks again after each output, and every 20 ms. */
  #until<T>(look: () => T | undefined, withinMs: number): Promise<T | undefined> {
    return new Promise((resolve) => {
      const giveUpAtMs = performance.now() + withinMs;
      const again = (): void => {
        const seen = look();
        if (seen === undefined && performance.now() < giveUpAtMs) return;
        this.#listeners.delete(again);
        clearInterval(timer);
        resolve(seen);
      };
      const timer = setInterval(again, 20);
      this.#listeners.add(again);
      again();
    });
  }
}

/** The start of a command line that enters the limit and then executes the rest. */
function entering(memory: MemoryLimit | undefined): readonly string[] {
  return memory === undefined ? [] : ['/bin/sh', '-c', `echo $$ > "$0" && exec "$@"`, memory.processes];
}

/** Runs a command line to its end. */
export async function runProgram(
  words: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramEnd & { readonly out: string; readonly err: string }> {
  const program = new Program(words, options);
  try {
    return { ...(await program.end()), out: program.out, err: program.err };
  } finally {
    await program.remove();
  }
}

/** Running processes whose environment has this home folder. */
export function processesWithHome(home: string): number[] {
  return processesWhere('environ', (variables) => variables.split('\0').includes(`HOME=${home}`));
}
