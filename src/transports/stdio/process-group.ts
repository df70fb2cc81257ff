// Ends a program and everything it started: by signals, for each platform, which child-process.ts sends, and by the reaper after the
// death of the process that should have sent them.

import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { LIMITS } from '../../domain/limits.ts';

/** POSIX: a detached child leads a group of its own that can be signalled as a whole. Windows has no such groups. */
export const ownsGroup = process.platform !== 'win32';

/** Signals a whole process group; 0 only asks. False when the group is empty. POSIX only. */
export function killGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    // EPERM: the group has a process that the gateway may not signal, or (macOS) a zombie.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * True when a group has a running member. On Linux zombies do not count: an orphan waits for the first process of the
 * machine to reap it, and in a container that may be a program that never does. POSIX only.
 */
export function groupRuns(leader: number): boolean {
  if (!killGroup(leader, 0)) return false;
  if (process.platform !== 'linux') return true;
  try {
    return readdirSync('/proc').some((name) => /^\d+$/.test(name) && isRunningMember(name, leader));
  } catch {
    return true; // Without /proc the answer to the signal is all there is.
  }
}

/** Ends a program and its descendants by force: Windows has no signal for programs without a window. */
export function killTree(root: number): void {
  const taskkill = spawn('taskkill', ['/pid', String(root), '/T', '/F'], {
    stdio: 'ignore',
    windowsHide: true,
  });
  taskkill.on('error', () => killAlone(root));
}

/** Reads `pid (name) state parent group …`; the name may hold anything, so that it is left out from its last bracket. */
function isRunningMember(pid: string, leader: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    return group === String(leader) && state !== 'Z' && state !== 'X';
  } catch {
    return false; // It went away between the listing and the reading.
  }
}

function killAlone(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has gone by itself in the meantime.
  }
}

/**
 * Reads `+ 123` and `- 123`, nothing but numbers; a shell finds its variables faster than words in a text. In the end it
 * goes down the same ladder as child-process.ts: children have seen the end of their input, then comes SIGTERM, then SIGKILL.
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
signal() { for group in $groups; do kill -s "$1" -- "-$group"; done 2>/dev/null; }
sleep "$1"; signal TERM
sleep "$2"; signal KILL
`;

/** A shell that was killed is started again after this time. */
const START_AGAIN_MS = 1_000;

/**
 * Ends the children of a process that died without ending them: killed, out of memory, broken. A small shell waits for the end of
 * its input, which comes with that death, however it came; until then it reads the ids of the process groups. It runs while there
 * are any. Windows has no groups, and a machine without /bin/sh no such shell: there, children only see the end of their own input.
 * One per gateway. It never throws: without a reaper, children run as well.
 */
export class Reaper {
  readonly #waits: readonly string[];
  readonly #groups = new Set<number>();
  #shell: ChildProcess | undefined;

  /** Waits before each of the two signals, in ms, rounded up to seconds. */
  constructor(waitsMs: readonly [number, number] = [LIMITS.stdinEndMs, LIMITS.terminateMs]) {
    this.#waits = waitsMs.map((ms) => String(Math.ceil(ms / 1_000)));
  }

  /** Process id of the shell; undefined while there is nothing to do. */
  get pid(): number | undefined {
    return this.#shell?.pid;
  }

  /** A child leads a group from now on. */
  watch(leader: number): void {
    if (!ownsGroup) return;
    this.#groups.add(leader);
    if (this.#shell === undefined) this.#start();
    else this.#send('+', leader);
  }

  /** Nothing is left of the group. */
  forget(leader: number): void {
    if (!this.#groups.delete(leader)) return;
    if (this.#groups.size > 0) {
      this.#send('-', leader);
    } else {
      this.#shell?.stdin?.end(line('-', leader));
      this.#shell = undefined;
    }
  }

  #start(): void {
    let shell: ChildProcess;
    try {
      shell = spawn('/bin/sh', ['-c', SCRIPT, 'stagedoor-reaper', ...this.#waits], {
        stdio: ['pipe', 'ignore', 'ignore'],
        // Out of reach of signals to the gateway: Ctrl-C, the end of its terminal, a signal to its group.
        detached: true,
        cwd: '/',
        env: { PATH: '/usr/bin:/bin' },
      });
    } catch {
      return; // some failures to start are thrown, others are events: the next child is the next attempt
    }
    const lost = (): void => {
      if (this.#shell === shell) this.#shell = undefined;
    };
    shell.on('error', lost);
    shell.on('exit', () => {
      if (this.#shell === shell) setTimeout(() => this.#startAgain(), START_AGAIN_MS).unref();
      lost();
    });
    shell.stdin?.on('error', () => {}); // its exit follows
    shell.unref();
    this.#shell = shell;
    for (const leader of this.#groups) this.#send('+', leader);
  }

  #startAgain(): void {
    if (this.#shell === undefined && this.#groups.size > 0) this.#start();
  }

  #send(sign: '+' | '-', leader: number): void {
    this.#shell?.stdin?.write(line(sign, leader));
  }
}

function line(sign: '+' | '-', leader: number): string {
  return `${sign} ${leader}\n`;
}
