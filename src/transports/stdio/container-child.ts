// Runs one program in a container, with the interface of child-process.ts. `runInContainer` speaks with the engine.

import { settlesWithin } from '../../domain/clock.ts';
import type { ContainerProgram, RunInContainer } from '../../domain/deployment.ts';
import { messageOf } from '../../domain/errors.ts';
import type { ContainerRef } from '../../domain/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  type ChildOptions,
  type KillLadder,
  LAST_WAIT_MS,
  LineTail,
  NOT_STOPPED,
  type Program,
} from './child-process.ts';
import type { Reaper } from './process-group.ts';

export interface ContainerChildOptions extends Pick<ChildOptions, 'onOutput' | 'ladder' | 'reaper'> {
  readonly runInContainer: RunInContainer | undefined;
}

export class ContainerChild {
  /** As in Child. */
  readonly exited: Promise<string>;
  readonly #givenUp = Promise.withResolvers<string>();
  readonly #ladder: KillLadder;
  readonly #tail = new LineTail();
  /** Ends what is left of the connections to the engine. */
  readonly #over = new AbortController();
  readonly #started: Promise<ContainerProgram | undefined>;
  #program: ContainerProgram | undefined;
  #hasExited = false;
  /** All processes that it started have ended. */
  #swept: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(container: ContainerRef, { command, args }: Program, options: ContainerChildOptions) {
    const { runInContainer, reaper, onOutput } = options;
    this.#ladder = options.ladder ?? { stdinEndMs: LIMITS.stdinEndMs, terminateMs: LIMITS.terminateMs };
    const onError = (chunk: Buffer): void => this.#tail.write(chunk);
    const output = { onOutput: onOutput ?? onError, onError };
    const starting =
      runInContainer?.(container, [command, ...args], output, this.#over.signal) ??
      Promise.reject(new Error('this gateway runs no programs in containers'));
    this.#started = starting.catch(() => undefined);
    const ended = starting.then(
      async (program) => {
        this.#program = program;
        // An engine gives each program its own session, and so its own group.
        if (program.pid !== undefined) reaper?.watch(program.pid);
        // `stop` may have been called during the start.
        if (this.#stopping !== undefined) {
          program.endInput();
          void program.signal('TERM');
        }
        const reason = await program.exited;
        this.#hasExited = true;
        this.#swept = sweep(program, reaper);
        return reason;
      },
      (thrown) => `could not be started: ${messageOf(thrown)}`,
    );
    this.exited = Promise.race([ended, this.#givenUp.promise]);
  }

  /** As in Child. */
  get wasStarted(): boolean {
    return this.#program !== undefined;
  }

  /** Process id on this machine while it runs; null where it is unknown. */
  get pid(): number | null {
    return this.#hasExited ? null : (this.#program?.pid ?? null);
  }

  get lastLines(): readonly string[] {
    return this.#tail.lines;
  }

  addLine(line: Buffer): void {
    this.#tail.add(line);
  }

  write(text: string, done: (error?: Error | null) => void): void {
    void this.#started.then((program) => {
      if (program === undefined) done(new Error('the program was not started'));
      else program.write(text, done);
    });
  }

  /** As in Child. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopInSteps();
    return this.#stopping;
  }

  async #stopInSteps(): Promise<void> {
    const { stdinEndMs, terminateMs } = this.#ladder;
    this.#program?.endInput();
    if (!(await settlesWithin(this.exited, stdinEndMs))) {
      await this.#program?.signal('TERM');
      if (!(await settlesWithin(this.exited, terminateMs))) await this.#program?.signal('KILL');
      await settlesWithin(this.exited, LAST_WAIT_MS);
    }
    await settlesWithin(this.#swept, LAST_WAIT_MS);
    this.#givenUp.resolve(NOT_STOPPED);
    void this.#swept.then(() => this.#over.abort());
  }
}

/** Ends the processes that it started and that still run. */
async function sweep(program: ContainerProgram, reaper: Reaper | undefined): Promise<void> {
  await program.signal('KILL');
  if (program.pid !== undefined) reaper?.forget(program.pid);
}
