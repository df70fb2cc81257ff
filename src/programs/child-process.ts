// A program as a process of this machine: its environment, its pipes, its exit, and the end of all processes it
// started. program-run.ts decides when it is stopped. Reasons name variables, never their values. Source: ADR 52.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { codeOf, messageOf } from '../domain/errors/errors.ts';
import { childEnvironment, type ProgramUser } from '../domain/instances/command.ts';
import {
  type ContainerProgram,
  exitedWith,
  type ProgramEnd,
  type ProgramOutput,
  type RunInContainer,
} from '../domain/instances/found-instances.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import { settlesWithin, sleep, systemClock } from '../domain/time/clock.ts';
import { MUCH_WORK_MS, type Timing } from '../domain/time/task-scheduler.ts';
import { killGroup, killTree, ownsGroup } from './process-group.ts';
import { ProcessTable } from './process-table.ts';
import type { GroupWatch } from './reaper.ts';

/** A program to run. Arguments are passed unchanged: there is no shell. `env`: see childEnvironment. */
export type Program = Pick<InstanceDefinition, 'args' | 'workingDir' | 'container' | 'env' | 'secretEnv'> & {
  readonly command: string;
};

/** A program that was started, here or in a container. */
export interface RunningProgram extends ContainerProgram {
  /**
   * Resolves after the exit, when the processes that it left have ended or cannot be stopped. Default: they are killed by a
   * signal.
   */
  readonly swept?: Promise<void>;
}

/** The options of programs, besides what the definition of their instance says. */
export interface ProgramOptions {
  /** Stops the programs if the gateway dies. Default: they are not stopped then. */
  readonly reaper?: GroupWatch | undefined;
  /** The names of variables of the gateway that programs get. Default: PASS_ENV. */
  readonly passEnv?: readonly string[] | undefined;
  /** The user that runs programs outside of containers. Default: that of the gateway. */
  readonly user?: ProgramUser | undefined;
  /** Starts programs in containers. Default: no program can run in a container. */
  readonly runInContainer?: RunInContainer | undefined;
}

export type ProcessOptions = Omit<ProgramOptions, 'runInContainer'> & Partial<Pick<Timing, 'scheduler'>>;

interface StartOptions extends ProcessOptions {
  /** See KillLadder. */
  readonly terminateMs: number;
}

/**
 * Starts a process. On POSIX it leads its own group, so that signals reach every process that it started, except
 * those that leave the group. When it exits, the rest of its group gets SIGTERM, and SIGKILL after `terminateMs`.
 * Aborting `over` closes its pipes. Throws when it could not be started.
 */
export function startProcess(
  program: Program,
  options: StartOptions,
  { onOutput, onError, onPipeClosed }: ProgramOutput & { onPipeClosed(pipe: 'input' | 'output'): void },
  over: AbortSignal,
): RunningProgram | Promise<never> {
  let child: ChildProcess;
  try {
    child = spawnProgram(program, options);
  } catch (error) {
    // Node throws for arguments that never reach the operating system, such as one with a NUL character, and for ENOTDIR.
    return Promise.reject(startFailure(error, program));
  }
  const { pid, stdin, stdout, stderr } = child;
  // A broken pipe (EPIPE, ECONNRESET) is reported by `done` of the write, and the exit follows.
  for (const pipe of [stdin, stdout, stderr]) pipe?.on('error', () => {});
  if (pid === undefined) {
    return new Promise((_, reject) => {
      child.once('error', (error) => reject(startFailure(error, program)));
    });
  }
  child.on('error', () => {}); // a signal could not be sent
  const died = exitOf(child, options.scheduler);
  const closePipes = (): void => {
    for (const pipe of [stdin, stdout, stderr]) pipe?.destroy();
  };
  /** Waits until all output was read, but not for a process that left the group and still holds the pipes. */
  const drained = async (end: ProgramEnd): Promise<ProgramEnd> => {
    const outputs = [stdout, stderr].filter((pipe) => pipe !== null);
    await settlesWithin(Promise.all(outputs.map(closing)), DRAIN_MS, systemClock);
    closePipes();
    return end;
  };
  /** Pipes of a program that exits close shortly before its exit is known. */
  const closed = async (pipe: 'input' | 'output'): Promise<void> => {
    if (!(await settlesWithin(died, DRAIN_MS, systemClock))) onPipeClosed(pipe);
  };
  if (stderr !== null) follow(stderr, onError);
  if (stdout !== null) follow(stdout, onOutput).once('close', () => closed('output'));
  stdin?.once('close', () => closed('input'));
  over.addEventListener('abort', closePipes);
  return {
    pid,
    exited: died.then(drained),
    swept: died.then(() => sweep(pid, options)),
    write: (text, done) => stdin?.write(text, done),
    endInput: () => stdin?.end(),
    signal: async (name) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      if (ownsGroup) killGroup(pid, `SIG${name}`);
      else killTree(pid);
    },
  };
}

/** Starts the process. Throws for faults that never reach the operating system. */
function spawnProgram(program: Program, { passEnv, user, reaper }: ProcessOptions): ChildProcess {
  const gated = reaper?.start?.(program.command, program.args);
  const { command, args } = gated ?? program;
  return spawn(command, args, {
    cwd: program.workingDir ?? user?.home,
    uid: user?.uid,
    gid: user?.gid,
    env: childEnvironment(program.env, programEnvironment(user), process.platform, passEnv),
    stdio: ['pipe', 'pipe', 'pipe', gated?.channel],
    shell: false,
    windowsHide: true,
    // `detached` would open a console window on Windows, where a group would be useless.
    detached: ownsGroup,
  });
}

function exitOf(child: ChildProcess, scheduler: ProcessOptions['scheduler']): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      const end = () => resolve(code === null ? { reason: `killed by ${signal}` } : exitedWith(code));
      // Thousands may end at once.
      if (scheduler === undefined) end();
      else scheduler.run(end);
    });
  });
}

/**
 * Calls `take` with each piece. After one that was much work the rest of the pipe waits for the next turn of the event loop: Node
 * reads up to 32 pieces of one pipe in a turn.
 */
function follow(pipe: Readable, take: (piece: Buffer) => void): Readable {
  return pipe.on('data', (piece: Buffer) => {
    const beganAtMs = systemClock.now();
    take(piece);
    if (systemClock.now() - beganAtMs < MUCH_WORK_MS) return;
    pipe.pause();
    setImmediate(() => pipe.resume());
  });
}

/** The longest wait for the effect of SIGKILL. */
export const LAST_WAIT_MS = 1_000;
/** The longest time between the exit and the end of the pipes. */
const DRAIN_MS = 500;
/** The first of the growing intervals at which the process table is polled, since no event reports the end of a group. */
const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 320;

/** Stops the rest of the group. Not on Windows, where processes cannot be found after the exit of their parent. */
async function sweep(leader: number, { terminateMs, reaper }: StartOptions): Promise<void> {
  const processes = reaper?.processes ?? new ProcessTable();
  if (!ownsGroup || !killGroup(leader, 'SIGTERM') || (await groupEmpties(leader, terminateMs, processes)))
    return;
  killGroup(leader, 'SIGKILL');
  await groupEmpties(leader, LAST_WAIT_MS, processes);
}

/** The environment of the gateway, with the home folder of the user that programs run as. */
export function programEnvironment(user: ProgramUser | undefined): NodeJS.ProcessEnv {
  return user === undefined ? process.env : { ...process.env, HOME: user.home };
}

/** Node names the program, also when the fault is the folder's: it is missing, no folder, or closed to the gateway. */
function startFailure(error: unknown, { command, workingDir }: Program): Error {
  const code = codeOf(error);
  if (workingDir !== undefined && !existsSync(`${workingDir}/.`))
    return new Error(`${code}, "${workingDir}" is not a folder that can be entered`);
  return new Error(code === 'ENOENT' ? `ENOENT, there is no program "${command}"` : messageOf(error));
}

async function groupEmpties(leader: number, withinMs: number, processes: ProcessTable): Promise<boolean> {
  const giveUpAt = systemClock.now() + withinMs;
  // Nearly all groups are empty at the first poll.
  for (
    let waitMs = FIRST_POLL_MS;
    await processes.isRunning(leader);
    waitMs = Math.min(waitMs * 2, MAX_POLL_MS)
  ) {
    if (systemClock.now() >= giveUpAt) return false;
    await sleep(systemClock, waitMs);
  }
  return true;
}

function closing(pipe: Readable): Promise<void> {
  return pipe.closed ? Promise.resolve() : new Promise((resolve) => pipe.once('close', () => resolve()));
}
