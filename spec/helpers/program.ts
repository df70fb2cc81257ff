// Starts the program as a user would, `node bin/stagedoor.mjs …`, and follows it: what it prints, where it listens, how
// it ends, and which processes it leaves behind. Each program has a home folder of its own, which its descendants
// inherit: that is how they are found, however deep they are.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Outcome } from '../cli/commands/against-gateway.ts';
import type { MemoryLimit } from './memory-limit.ts';
import { canFindProcesses, killNow, processesWhere } from './processes.ts';

/** The program's front door. */
export const binPath = fileURLToPath(new URL('../../bin/stagedoor.mjs', import.meta.url));

const watchModule = new URL('watch-program.ts', import.meta.url).href;

export interface ProgramOptions {
  /** Variables besides PATH, HOME and TMPDIR, over those of `PLAIN`. An empty one counts as not set. */
  readonly env?: Readonly<Record<string, string>>;
  /** Working folder. Default: the program's own empty home. */
  readonly folder?: string;
  /** What it reads from standard input. Default: nothing. */
  readonly input?: string;
  /** The memory that it and its children may use. Default: all there is. */
  readonly memory?: MemoryLimit;
}

/** What a gateway is here unless a spec says otherwise: on this machine, in memory, and nobody has to log in. */
export const PLAIN = {
  MCP_GATEWAY_HOST: '127.0.0.1',
  GATEWAY_HOST: '127.0.0.1',
  GATEWAY_AUTH_ENABLED: 'false',
  GATEWAY_DATABASE_URL: 'memory://',
} as const;

/** Takes back what `PLAIN` says about accounts and the database: the gateway as it comes. */
export const AS_IT_COMES = { GATEWAY_AUTH_ENABLED: '', GATEWAY_DATABASE_URL: '' } as const;

/** How a program ended: its exit code, or the signal that ended it. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** How long to wait for what always comes, on a machine that has other things to do. */
const patienceMs = 30_000;

/** Where programs of this user keep what they can make again. */
const cacheFolder = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');

/** One running program. */
export class Program {
  readonly process: ChildProcess;
  /** Its own folder, also for its temporary files; removed with `remove`. */
  readonly home: string;
  readonly #ended: Promise<ProgramEnd>;
  /** What its answers were, and the API description does not say; see watch-program.ts. */
  readonly #strangeAnswers: string;
  #out = '';
  #err = '';
  #hasEnded = false;
  #listeners = new Set<() => void>();

  constructor(words: readonly string[], { env = {}, folder, input, memory }: ProgramOptions = {}) {
    this.home = mkdtempSync(join(tmpdir(), 'stagedoor-home-'));
    this.#strangeAnswers = join(this.home, 'strange-answers');
    const [file, ...args] = [...entering(memory), process.execPath, binPath, ...words];
    this.process = spawn(file ?? '', args, {
      cwd: folder ?? this.home,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: this.home,
        TMPDIR: this.home,
        // Of whoever runs the specs, as for a program that was started before: each start is faster.
        XDG_CACHE_HOME: cacheFolder,
        NODE_OPTIONS: `--import=${watchModule}?${encodeURIComponent(this.#strangeAnswers)}`,
        ...PLAIN,
        ...env,
      },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    this.process.stdin?.on('error', () => {}); // it may end without having read
    this.process.stdin?.end(input);
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#out += text;
      this.#tell();
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#err += text;
      this.#tell();
    });
    this.#ended = once(this.process, 'close').then(([code, signal]) => {
      this.#hasEnded = true;
      this.#tell();
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

  /** The first URL it listens on; waits for it. */
  async url(withinMs?: number): Promise<string> {
    const [, url = ''] = await this.sees(/listening on .*?(http[^\s)]+)/, withinMs);
    return url;
  }

  /** Waits until standard output matches. Fails when the program ends or the time is over. */
  sees(pattern: RegExp, withinMs = patienceMs): Promise<RegExpExecArray> {
    return this.#find(() => pattern.exec(this.#out), pattern, withinMs);
  }

  /** The same for standard error. */
  complains(pattern: RegExp, withinMs = patienceMs): Promise<RegExpExecArray> {
    return this.#find(() => pattern.exec(this.#err), pattern, withinMs);
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name);
  }

  /** How it ended; waits for it. Fails when it does not within the time. */
  async end(withinMs = patienceMs): Promise<ProgramEnd> {
    await this.#until(() => this.#hasEnded || undefined, withinMs);
    if (!this.#hasEnded) throw new Error(`it did not end within ${withinMs} ms:\n${this.#out}\n${this.#err}`);
    return this.#ended;
  }

  /** Runs another command line against this gateway, in the process of the spec: that programs do the same is shown elsewhere. */
  async run(...words: string[]): Promise<Outcome> {
    const { runAtTerminal } = await import('../cli/commands/against-gateway.ts');
    const env = { ...PLAIN, STAGEDOOR_URL: await this.url() };
    return runAtTerminal(words, { env, folder: this.home });
  }

  /** Process ids of everything it started that still lives, itself left out. Linux only. */
  descendants(): number[] {
    return processesWithHome(this.home).filter((pid) => pid !== this.process.pid);
  }

  /** Waits until nothing it started is left; resolves with what is left when the time is over. */
  async survivors(withinMs = patienceMs): Promise<number[]> {
    await this.#until(() => this.descendants().length === 0 || undefined, withinMs);
    return this.descendants();
  }

  /** For the end of a test: kills whatever is left, removes its folder, and throws for answers that are not documented. */
  async remove(): Promise<void> {
    if (!this.#hasEnded) this.process.kill('SIGKILL');
    await this.#ended;
    if (canFindProcesses) for (const pid of this.descendants()) killNow(pid);
    const strange = existsSync(this.#strangeAnswers) ? readFileSync(this.#strangeAnswers, 'utf8') : '';
    // Not `rmSync`, whose retries do not wait: what was killed may still be writing.
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

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Looks again whenever it says something, and every 20 ms for what says nothing. */
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

/** What starts the rest of the command line inside the limit; it replaces itself by it. */
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

/** Living processes whose environment names this home folder. */
export function processesWithHome(home: string): number[] {
  return processesWhere('environ', (variables) => variables.split('\0').includes(`HOME=${home}`));
}
