// Runs one program, as a process of this machine (child-process.ts) or in a container (`runInContainer`): stops it in steps, and
// keeps the last lines that it wrote. It knows nothing of MCP: stdio.ts speaks through it, and managed-http.ts runs the program
// behind an endpoint with it.

import { messageOf } from '../domain/errors/errors.ts';
import type { ProgramEnd } from '../domain/instances/found-instances.ts';
import { programSecrets } from '../domain/instances/hidden-secrets.ts';
import { NOT_STARTED } from '../domain/instances/start-failure.ts';
import { settlesWithin, systemClock } from '../domain/time/clock.ts';
import {
  LAST_WAIT_MS,
  type ProcessOptions,
  type Program,
  type ProgramOptions,
  type RunningProgram,
  startProcess,
} from './child-process.ts';
import { LineTail } from './line-tail.ts';
import { STDIN_END_MS, TERMINATE_MS } from './process-group.ts';

/** Waits of a stop, in ms: end of stdin, wait, SIGTERM, wait, SIGKILL. */
export interface KillLadder {
  /** The time between the end of stdin and SIGTERM. 0 for programs that do not read stdin. Default: STDIN_END_MS. */
  readonly stdinEndMs: number;
  /** The time between SIGTERM and SIGKILL. Default: TERMINATE_MS. */
  readonly terminateMs: number;
}

export interface ProgramRunOptions extends ProcessOptions, Pick<ProgramOptions, 'runInContainer'> {
  readonly onOutput?: (chunk: Buffer) => void;
  /** Called when the program closed its stdin or stdout but still runs; not in a container. */
  readonly onPipeClosed?: (pipe: 'input' | 'output') => void;
  readonly ladder?: KillLadder | undefined;
}

/**
 * A program that was started; `exited` tells when and why it ended, or that it could not be started. A stop reaches every
 * process that it started, except those of this machine that leave its group. When it exits by itself, the others are stopped,
 * too.
 */
export class ProgramRun {
  /**
   * Resolves when it has ended and all its output has been read, or when it could not be started, with the reason "could not
   * be started: ENOENT, there is no program ..."; when `stop` gives up, at the latest. Never rejects.
   */
  readonly exited: Promise<ProgramEnd>;
  /** The last lines of its stderr, and lines of stdout that are added: some programs write there why they do not run. */
  readonly tail = new LineTail(() => this.secrets);
  readonly #ladder: KillLadder;
  readonly #givenUp = Promise.withResolvers<ProgramEnd>();
  /** Ends the remaining pipes, or the remaining connections to the engine. */
  readonly #over = new AbortController();
  /** Resolves with the program once it runs, or with undefined when it could not be started. */
  readonly #started: Promise<RunningProgram | undefined>;
  #program: RunningProgram | undefined;
  readonly #env: Pick<Program, 'env' | 'secretEnv'>;
  #secrets: readonly string[] | undefined;
  #hasExited = false;
  #swept: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(program: Program, options: ProgramRunOptions = {}) {
    this.#ladder = options.ladder ?? { stdinEndMs: STDIN_END_MS, terminateMs: TERMINATE_MS };
    this.#env = program;
    const starting = this.#start(program, options);
    const follow = (running: RunningProgram) => this.#follow(running, options);
    // A process of this machine runs already, and must not run unwatched.
    const ended = starting instanceof Promise ? starting.then(follow) : follow(starting);
    this.#started = Promise.resolve(starting).catch(() => undefined);
    const failed = (thrown: unknown) => ({ reason: `${NOT_STARTED}: ${messageOf(thrown)}` });
    this.exited = Promise.race([ended.catch(failed), this.#givenUp.promise]);
  }

  /** Whether the program was started; final once it has exited. */
  get wasStarted(): boolean {
    return this.#program !== undefined;
  }

  /** Process id on this machine while it runs, else null; null where it is unknown. */
  get pid(): number | null {
    return this.#hasExited ? null : (this.#program?.pid ?? null);
  }

  /** The texts that its errors and its output must not show; made for the first of them. */
  get secrets(): readonly string[] {
    this.#secrets ??= programSecrets(this.#env);
    return this.#secrets;
  }

  /** Writes to stdin. `done` is called once: without an error when all of it was written. Never throws. */
  write(text: string, done: (error?: Error | null) => void): void {
    if (this.#program !== undefined) {
      this.#program.write(text, done);
      return;
    }
    void this.#started.then((program) => {
      if (program === undefined) done(new Error('the program was not started'));
      else program.write(text, done);
    });
  }

  /** Stops the program in the steps of KillLadder. Resolves when all it started has ended. Idempotent, never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopInSteps();
    return this.#stopping;
  }

  #start(program: Program, options: ProgramRunOptions): RunningProgram | Promise<RunningProgram> {
    const { onPipeClosed = () => {}, runInContainer } = options;
    const { container, command, args } = program;
    const onError = (chunk: Buffer): void => this.tail.write(chunk);
    const output = { onOutput: options.onOutput ?? onError, onError };
    const { signal } = this.#over;
    if (container === undefined) {
      const { terminateMs } = this.#ladder;
      return startProcess(program, { ...options, terminateMs }, { ...output, onPipeClosed }, signal);
    }
    if (runInContainer !== undefined) return runInContainer(container, [command, ...args], output, signal);
    return Promise.reject(new Error('this gateway runs no programs in containers'));
  }

  async #follow(program: RunningProgram, { reaper }: ProgramRunOptions): Promise<ProgramEnd> {
    const { pid, exited } = program;
    this.#program = program;
    // An engine gives each program its own session, and so its own group.
    if (pid !== undefined) reaper?.watch(pid);
    const swept = program.swept ?? exited.then(() => program.signal('KILL'));
    this.#swept = swept.then(() => {
      if (pid !== undefined) reaper?.forget(pid);
    });
    // `stop` may have been called during the start.
    if (this.#stopping !== undefined) {
      program.endInput();
      void program.signal('TERM');
    }
    const end = await exited;
    this.#hasExited = true;
    return end;
  }

  async #stopInSteps(): Promise<void> {
    const { stdinEndMs, terminateMs } = this.#ladder;
    this.#program?.endInput();
    if (!(await settlesWithin(this.exited, stdinEndMs, systemClock))) {
      await this.#program?.signal('TERM');
      if (!(await settlesWithin(this.exited, terminateMs, systemClock))) await this.#program?.signal('KILL');
    }
    // Bounded, because even SIGKILL does not end a process that hangs in the kernel, and an engine may not answer.
    const lastMs = this.#program?.swept === undefined ? LAST_WAIT_MS : 2 * terminateMs + LAST_WAIT_MS;
    await settlesWithin(Promise.all([this.exited, this.#swept]), lastMs, systemClock);
    this.#givenUp.resolve(NOT_STOPPED);
    // The remaining processes of a container are still being killed, through its engine.
    if (this.#hasExited) void this.#swept?.then(() => this.#over.abort());
    else this.#over.abort();
  }
}

/** The end of a program that SIGKILL does not end, such as one of another user. */
const NOT_STOPPED: ProgramEnd = { reason: 'could not be stopped' };
