// Runs one program as a child: its environment, its pipes, its exit, and the end of all processes it started. It knows nothing of
// MCP: stdio.ts speaks through it, and managed-http.ts runs the program behind an endpoint with it. Reasons name variables, never
// their values. Source: ADR 52.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { settlesWithin } from '../../domain/clock.ts';
import { PASS_ENV, type ProgramUser } from '../../domain/command.ts';
import { messageOf } from '../../domain/errors.ts';
import type { ContainerRef } from '../../domain/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import { groupRuns, killGroup, killTree, ownsGroup, type Reaper } from './process-group.ts';

/** A program to run. Arguments are passed unchanged: there is no shell. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly workingDir?: string | undefined;
  readonly container?: ContainerRef | undefined;
  /** Added to the variables that every program gets; see childEnvironment. */
  readonly env: Readonly<Record<string, string>>;
}

/** Waits of a stop, in ms: end of stdin, wait, SIGTERM, wait, SIGKILL. */
export interface KillLadder {
  /** Between the end of stdin and SIGTERM. 0 for programs that do not read stdin. Default LIMITS.stdinEndMs. */
  readonly stdinEndMs: number;
  /** Between SIGTERM and SIGKILL. Default LIMITS.terminateMs. */
  readonly terminateMs: number;
}

export interface ChildOptions {
  readonly onOutput?: (chunk: Buffer) => void;
  /** Called when the program closed its stdin or stdout but still runs. */
  readonly onPipeClosed?: (pipe: 'input' | 'output') => void;
  readonly ladder?: KillLadder | undefined;
  /** Stops the program's group if this process dies first. Default: none. */
  readonly reaper?: Reaper | undefined;
  readonly passEnv?: readonly string[] | undefined;
  /** Default: the user of this process. */
  readonly user?: ProgramUser | undefined;
  readonly environment?: NodeJS.ProcessEnv;
}

/**
 * A program that runs, or could not be started: `exited` says which. On POSIX it leads its own process group, so that a stop
 * reaches every process it started, except those that leave the group. When it exits, the rest of its group is stopped, too.
 */
export class Child {
  /**
   * Resolves with the reason of its end, as a clause: "exited with code 7", "killed by SIGKILL", "could not be started: ENOENT,
   * there is no program ...". By then all its output has been read. It resolves when `stop` gives up, at the latest. Never rejects.
   */
  readonly exited: Promise<string>;
  readonly #process: ChildProcess | undefined;
  readonly #ladder: KillLadder;
  readonly #reaper: Reaper | undefined;
  readonly #tail = new LineTail();
  /** The program has exited; its pipes and its group may be left. */
  readonly #died: Promise<string>;
  /** Its group has ended, or cannot be stopped. */
  readonly #swept: Promise<void>;
  readonly #givenUp = Promise.withResolvers<string>();
  #alive = true;
  #stopping: Promise<void> | undefined;

  constructor(program: Program, options: ChildOptions = {}) {
    this.#reaper = options.reaper;
    this.#ladder = options.ladder ?? { stdinEndMs: LIMITS.stdinEndMs, terminateMs: LIMITS.terminateMs };
    try {
      this.#process = start(program, options);
      if (this.#process.pid !== undefined) this.#reaper?.watch(this.#process.pid);
      this.#died = death(this.#process, program);
    } catch (error) {
      // Node throws for arguments that never reach the operating system, such as one with a NUL character.
      this.#died = Promise.resolve(`could not be started: ${messageOf(error)}`);
    }
    this.#swept = this.#died.then(() => this.#sweep());
    this.exited = Promise.race([this.#died, this.#givenUp.promise]).then((reason) => this.#drain(reason));
    this.#connect(options);
  }

  /** Final once it has exited. */
  get wasStarted(): boolean {
    return this.#process?.pid !== undefined;
  }

  /** Process id while it runs, else null. */
  get pid(): number | null {
    return this.#alive ? (this.#process?.pid ?? null) : null;
  }

  /** The last lines of its stderr, and those of `addLine`, oldest first; bounded by LIMITS. */
  get lastLines(): readonly string[] {
    return this.#tail.lines;
  }

  /** Adds a line of stdout to `lastLines`: some programs write there why they do not run. */
  addLine(line: Buffer): void {
    this.#tail.add(line);
  }

  /** Writes to stdin. `done` is called once: without an error when all of it was written. Never throws. */
  write(text: string, done: (error?: Error | null) => void): void {
    const stdin = this.#process?.stdin;
    if (stdin) stdin.write(text, done);
    else queueMicrotask(() => done(new Error('the program was not started')));
  }

  /** Stops the program in the steps of KillLadder. Resolves when its group has ended. Idempotent, never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopInSteps();
    return this.#stopping;
  }

  async #stopInSteps(): Promise<void> {
    const { stdinEndMs, terminateMs } = this.#ladder;
    this.#process?.stdin?.end();
    if (!(await settlesWithin(this.#died, stdinEndMs))) {
      this.#kill('SIGTERM');
      if (!(await settlesWithin(this.#died, terminateMs))) this.#kill('SIGKILL');
    }
    // Bounded, because even SIGKILL does not end a process that hangs in the kernel.
    await settlesWithin(this.#swept, 2 * terminateMs + LAST_WAIT_MS);
    this.#givenUp.resolve(NOT_STOPPED);
  }

  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const pid = this.pid;
    if (pid === null) return;
    if (ownsGroup) killGroup(pid, signal);
    else killTree(pid);
  }

  /** Stops the rest of the group. Not on Windows, where processes cannot be found after the exit of their parent. */
  async #sweep(): Promise<void> {
    const pid = this.pid;
    this.#alive = false;
    if (pid === null || !ownsGroup) return;
    if (killGroup(pid, 'SIGTERM') && !(await groupEmpties(pid, this.#ladder.terminateMs))) {
      killGroup(pid, 'SIGKILL');
      await groupEmpties(pid, LAST_WAIT_MS);
    }
    this.#reaper?.forget(pid);
  }

  /** Waits until all output was read, but not for a process that left the group and still holds the pipes. */
  async #drain(reason: string): Promise<string> {
    const child = this.#process;
    if (child?.pid === undefined) return reason;
    const pipes = [child.stdout, child.stderr].filter((pipe) => pipe !== null);
    await settlesWithin(Promise.all(pipes.map(closing)), DRAIN_MS);
    for (const pipe of [...pipes, child.stdin]) pipe?.destroy();
    return reason;
  }

  #connect({ onOutput, onPipeClosed }: ChildOptions): void {
    const child = this.#process;
    const log = (chunk: Buffer): void => this.#tail.write(chunk);
    // A broken pipe (EPIPE, ECONNRESET) is reported by `done` of the write, and the exit follows.
    for (const pipe of [child?.stdin, child?.stdout, child?.stderr]) pipe?.on('error', () => {});
    child?.stderr?.on('data', log);
    child?.stdout?.on('data', onOutput ?? log);
    if (onPipeClosed === undefined) return;
    child?.stdin?.once('close', () => this.#unlessItExits(() => onPipeClosed('input')));
    child?.stdout?.once('close', () => this.#unlessItExits(() => onPipeClosed('output')));
  }

  /** Pipes of a program that exits close shortly before its exit is known. */
  async #unlessItExits(report: () => void): Promise<void> {
    const exits = await settlesWithin(this.#died, DRAIN_MS);
    if (!exits && this.#stopping === undefined) report();
  }
}

/** Longest wait for the effect of SIGKILL. */
export const LAST_WAIT_MS = 1_000;
/** The end of a program that SIGKILL does not end, such as one of another user. */
export const NOT_STOPPED = 'could not be stopped';
/** Longest time between the exit and the end of the pipes. */
const DRAIN_MS = 500;
/** No event reports the end of a group: the process table is polled, at growing intervals. */
const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 320;

/** The environment of the gateway, with the home folder of the user that programs run as. */
export function environmentOf(user: ProgramUser | undefined, environment = process.env): NodeJS.ProcessEnv {
  return user === undefined ? environment : { ...environment, HOME: user.home };
}

function start(
  { command, args, workingDir, env }: Program,
  { environment = process.env, passEnv, user }: ChildOptions,
): ChildProcess {
  return spawn(command, args, {
    cwd: workingDir ?? user?.home,
    uid: user?.uid,
    gid: user?.gid,
    env: childEnvironment(env, environmentOf(user, environment), process.platform, passEnv),
    stdio: 'pipe',
    shell: false,
    windowsHide: true,
    // On Windows `detached` would open a console window, and a group would be useless.
    detached: ownsGroup,
  });
}

function death(child: ChildProcess, program: Program): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) =>
      resolve(signal === null ? `exited with code ${code}` : `killed by ${signal}`),
    );
    // Also emitted when a signal could not be sent; only a program without a pid was not started.
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(`could not be started: ${startFailure(error, program)}`);
    });
  });
}

/** ENOENT means that the folder or the program is missing; Node names the program in both cases. */
function startFailure(error: NodeJS.ErrnoException, { command, workingDir }: Program): string {
  if (error.code !== 'ENOENT') return error.message;
  if (workingDir !== undefined && !existsSync(workingDir))
    return `ENOENT, there is no folder "${workingDir}"`;
  return `ENOENT, there is no program "${command}"`;
}

async function groupEmpties(pid: number, withinMs: number): Promise<boolean> {
  const giveUpAt = performance.now() + withinMs;
  // The process table may be long; nearly all groups are empty at the first poll.
  for (let waitMs = FIRST_POLL_MS; groupRuns(pid); waitMs = Math.min(waitMs * 2, LONGEST_POLL_MS)) {
    if (performance.now() >= giveUpAt) return false;
    await delay(waitMs);
  }
  return true;
}

function closing(pipe: Readable): Promise<void> {
  return pipe.closed ? Promise.resolve() : new Promise((resolve) => pipe.once('close', () => resolve()));
}

/** The last lines of a text stream, bounded by LIMITS, without empty ones: for operators, no decision depends on them. */
export class LineTail {
  readonly #decoder = new StringDecoder('utf8');
  #finished: string[] = [];
  #unfinished = '';

  write(chunk: Buffer): void {
    const lines = (this.#unfinished + this.#decoder.write(chunk)).split('\n');
    this.#unfinished = cut(lines.pop() ?? '');
    this.#keep(lines);
  }

  /** Takes a whole line of another stream, which comes before an incomplete line of this one. */
  add(line: Buffer): void {
    this.#keep([line.toString('utf8', 0, LIMITS.stderrLineCharacters * LONGEST_CHARACTER)]);
  }

  #keep(lines: readonly string[]): void {
    const kept = lines.map((line) => readable(cut(line))).filter((line) => line !== '');
    this.#finished = [...this.#finished, ...kept].slice(-LIMITS.stderrLines);
  }

  /** Oldest first, including an incomplete last line. */
  get lines(): readonly string[] {
    const last = readable(this.#unfinished);
    return last === '' ? this.#finished : [...this.#finished, last].slice(-LIMITS.stderrLines);
  }
}

/** Most bytes of a character in UTF-8. */
const LONGEST_CHARACTER = 4;

function cut(line: string): string {
  return line.slice(0, LIMITS.stderrLineCharacters);
}

/** Removes colours, which some programs write without a terminal, and half a character at the cut. */
function readable(line: string): string {
  return stripVTControlCharacters(line).trimEnd().toWellFormed();
}

type Variables = Readonly<Record<string, string | undefined>>;

const COMMON_VARIABLES = ['PATH', 'HOME', 'LANG'];
const WINDOWS_VARIABLES = 'SystemRoot ComSpec PATHEXT TEMP TMP USERPROFILE APPDATA LOCALAPPDATA'.split(' ');

/** `user:password@`, perhaps after a scheme. */
const CREDENTIALS = /^(?:[a-z][a-z0-9+.-]*:\/\/)?[^/\\]*@/i;

/**
 * The environment of a program: PATH, HOME and LANG (on Windows some more), the variables that `passEnv` names, and its own
 * variables. Default of `passEnv`: PASS_ENV, without URLs that have credentials. No other variable of the gateway is passed.
 */
export function childEnvironment(
  own: Readonly<Record<string, string>>,
  source: Variables = process.env,
  platform: NodeJS.Platform = process.platform,
  passEnv?: readonly string[],
): Record<string, string> {
  const environment: Record<string, string> = {};
  const always = platform === 'win32' ? [...COMMON_VARIABLES, ...WINDOWS_VARIABLES] : COMMON_VARIABLES;
  for (const name of [...always, ...(passEnv ?? PASS_ENV)]) {
    const value = source[name];
    if (value === undefined) continue;
    if (always.includes(name) || passEnv !== undefined || !CREDENTIALS.test(value)) environment[name] = value;
  }
  return { ...environment, ...own };
}

/** Names of PASS_ENV that the gateway has and a program with these variables does not get, ignoring case. */
export function missingVariables(
  own: Readonly<Record<string, string>>,
  passEnv?: readonly string[],
  source: Variables = process.env,
): string[] {
  const given = Object.keys(childEnvironment(own, source, process.platform, passEnv));
  const names = new Set(given.map((name) => name.toUpperCase()));
  return PASS_ENV.filter((name) => source[name] && !names.has(name.toUpperCase()));
}
