// Ends the programs of a gateway that died without ending them, by a shell that outlives it.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import type { Writable } from 'node:stream';
import { systemClock } from '../domain/time/clock.ts';
import { killGroup, ownsGroup, STDIN_END_MS, TERMINATE_MS, WATCHING_SHELL } from './process-group.ts';
import { ProcessTable } from './process-table.ts';
import { ReaperPipe, type ReaperPipeOptions } from './reaper-pipe.ts';

/**
 * Reads `+ 123` and `- 123`; one variable for each number, because a shell finds variables faster than words in a
 * text. At the end of its input it writes the groups to ReaperPipe and stops them in the steps of program-run.ts:
 * their input has ended, then SIGTERM, then SIGKILL, each after at most so many tenths of a second. It ends with
 * the last group, 1 s after SIGKILL at the latest.
 */
const SCRIPT = `
while read -r sign leader; do
  case $sign in
    +) eval "group_$leader=1" ;;
    -) unset "group_$leader" ;;
  esac
done
groups=$(set | sed -n 's/^group_\\([0-9]*\\)=.*/\\1/p')
[ -z "$groups" ] && exit
echo $groups >&3
signal() { for group in $groups; do kill -s "$1" -- "-$group"; done; }
pause() {
  tenths=$1
  while :; do
    rest=
    for group in $groups; do kill -s 0 -- "-$group" && rest="$rest $group"; done
    groups=$rest
    [ -z "$groups" ] && exit
    [ "$tenths" -le 0 ] && return
    tenths=$((tenths - 1))
    sleep 0.1 || sleep 1
  done
}
pause "$1"; signal TERM
pause "$2"; signal KILL
pause 10
`;

/** Wait before a lost shell is started again, in ms. */
const RESTART_MS = 1_000;

/** Follows the process groups of programs, to end them when the gateway does not. */
export interface GroupWatch {
  /** The process table that all programs share. Default: each reads it by itself. */
  readonly processes?: ProcessTable;
  watch(leader: number): void;
  forget(leader: number): void;
  /** Starts programs; throws when they must not run. Default: each may be started. */
  start?(command: string, args: readonly string[]): GatedProgram;
}

/** Another way to start a program: by this command, with `channel` as its file 3. */
export interface GatedProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly channel: Writable;
}

interface ReaperOptions {
  readonly waitsMs?: readonly [number, number];
  readonly pipe?: ReaperPipeOptions | undefined;
}

/**
 * Ends the children of a gateway that died without ending them, for instance by SIGKILL. A small shell reads the
 * ids of the process groups until the end of its input, which comes with the death of the gateway. It runs while
 * there are groups. On Windows, and without /bin/sh, there is no reaper: children only see the end of their own
 * input. One per gateway. It never throws, because children run without a reaper, too.
 */
export class Reaper implements GroupWatch {
  readonly processes = new ProcessTable();
  readonly #waits: readonly string[];
  readonly #pipe: ReaperPipe | undefined;
  readonly #groups = new Set<number>();
  #shell: ChildProcess | undefined;
  #cancelRestart: (() => void) | undefined;

  /**
   * `waitsMs`: before each of the two signals, rounded up to tenths of a second. `pipe`: of the node, see
   * `untilFree`. Default: the process is not a node, and waits for no former one.
   */
  constructor({ waitsMs = [STDIN_END_MS, TERMINATE_MS], pipe }: ReaperOptions = {}) {
    this.#waits = waitsMs.map((ms) => String(Math.ceil(ms / 100)));
    this.#pipe = ownsGroup && pipe !== undefined ? new ReaperPipe(pipe) : undefined;
  }

  /**
   * Resolves when the programs of the node's former process have ended, see ReaperPipe. To be awaited before a
   * program starts.
   */
  untilFree(): Promise<void> | undefined {
    return this.#pipe?.untilFree();
  }

  /** Whether `untilFree` has waited for them; without a pipe that is not known. */
  get knowsFormer(): boolean {
    return this.#pipe?.isKnown ?? false;
  }

  /** Closes the reaper of a gateway that has stopped its programs: remaining processes are left to the shell. */
  close(): void {
    this.#pipe?.close();
  }

  /** Process id of the shell; undefined while there are no groups. */
  get pid(): number | undefined {
    return this.#shell?.pid;
  }

  watch(leader: number): void {
    if (!ownsGroup) return;
    this.#groups.add(leader);
    if (this.#shell === undefined) this.#start();
    else this.#send('+', leader);
  }

  forget(leader: number): void {
    if (!this.#groups.delete(leader)) return;
    this.#send('-', leader);
    if (this.#groups.size > 0) return;
    this.#shell?.stdin?.end();
    this.#shell = undefined;
  }

  /**
   * Kills every group at once, for a process that ends right after; the shell stays for processes that escape that. On
   * Windows this process ends with its tree.
   */
  killAll(): void {
    if (!ownsGroup) spawnSync('taskkill', ['/pid', String(process.pid), '/T', '/F'], { windowsHide: true });
    for (const leader of this.#groups) killGroup(leader, 'SIGKILL');
  }

  #start(): void {
    let shell: ChildProcess;
    try {
      shell = spawn('/bin/sh', ['-c', SCRIPT, 'stagedoor-reaper', ...this.#waits], {
        ...WATCHING_SHELL,
        stdio: ['pipe', 'ignore', 'ignore', this.#pipe?.fd ?? 'ignore'],
      });
    } catch {
      this.#startLater();
      return;
    }
    const lost = (): void => {
      if (this.#shell !== shell) return; // it has nothing left to do
      this.#shell = undefined;
      this.#startLater();
    };
    shell.on('error', lost).on('exit', lost);
    shell.stdin?.on('error', () => {}); // its exit follows
    shell.unref();
    this.#shell = shell;
    for (const leader of this.#groups) this.#send('+', leader);
  }

  /**
   * Starts a child again later: it was killed, or the system had no process or file handle left. The next child
   * tries at once.
   */
  #startLater(): void {
    this.#cancelRestart ??= systemClock.background.alarm(RESTART_MS, () => {
      this.#cancelRestart = undefined;
      if (this.#shell === undefined && this.#groups.size > 0) this.#start();
    });
  }

  #send(sign: '+' | '-', leader: number): void {
    this.#shell?.stdin?.write(`${sign} ${leader}\n`);
  }
}
