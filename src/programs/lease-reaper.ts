// Ends the programs that any node may run when the lease of this node ends, whatever this process does then: a
// shell of its own, which does not freeze with the gateway, kills their process groups. They start through it, so
// that none starts later. Source: ADR 146, 169.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { systemClock } from '../domain/time/clock.ts';
import { killGroup, ownsGroup, WATCHING_SHELL } from './process-group.ts';
import type { GatedProgram, GroupWatch, Reaper } from './reaper.ts';

/** `12345.67 …`: seconds since the start of the machine, those in which it was suspended included. Not on every system. */
const UPTIME = '/proc/uptime';

/** Sets `up` to hundredths of a second; fails without UPTIME. */
const READ_UPTIME = `read -r up rest 2>/dev/null <"$uptime" && up="\${up%.*}\${up#*.}"`;

/**
 * Reads `+ 123`, `- 123` and `= deadline left`: a time by UPTIME in hundredths of a second, and tenths of a second
 * that were left when it was written, which count where there is no UPTIME. A `t` comes every half second. After
 * the deadline it kills all groups, and later ones. It ends when its input has ended, and the deadline has passed
 * or no group is left.
 */
const SCRIPT = `
uptime=$1 deadline=0 left=0 groups= over=
expired() { if ${READ_UPTIME}; then [ "$up" -ge "$deadline" ]; else [ "$left" -le 0 ]; fi; }
alive() { for group in $groups; do kill -s 0 -- "-$group" && return; done; return 1; }
check() {
  if expired; then
    for group in $groups; do kill -s KILL -- "-$group"; done
    [ -z "$over" ] || exit 0
  fi
  [ -z "$over" ] || alive || exit 0
}
exec 4<&0
{ (cat <&4; echo end) & while sleep 0.5; do echo t || exit; done; } | while read -r sign number tenths; do
  case $sign in
    +) groups="$groups $number"; check ;;
    -) rest=; for group in $groups; do [ "$group" = "$number" ] || rest="$rest $group"; done; groups=$rest ;;
    =) deadline=$number left=$tenths ;;
    t) left=$((left - 5)); check ;;
    end) over=1; check ;;
  esac
done
`;

/** Tells the shell its process group, and becomes the program, unless the deadline has passed. */
const GATE = `
uptime=$1 deadline=$2; shift 2
echo "+ $$" >&3 || exit 1
if ${READ_UPTIME} && [ "$up" -ge "$deadline" ]; then exit 1; fi
exec "$@" 3>&-
`;

/** Wait before a lost shell is started again, in ms. */
const REOPEN_MS = 100;
/**
 * The time after the start of a node, in ms, by which the programs of an unknown former process of it have ended, as its leases
 * have (7 s).
 */
const UNKNOWN_FORMER_MS = 10_000;

/** The shell of this node, and the groups of the programs that it watches. It runs while there are any. */
export class LeaseReaper {
  /** Ends the programs with their gateway. */
  readonly #reaper: Reaper;
  readonly #uptime: string;
  /** The process groups by program. */
  readonly #groups = new Map<string, Set<number>>();
  #shell: ChildProcess | undefined;
  #untilMs = Number.NEGATIVE_INFINITY;
  readonly #madeAtMs = systemClock.now();

  constructor(reaper: Reaper, uptime = UPTIME) {
    this.#reaper = reaper;
    this.#uptime = uptime;
  }

  /** True while programs of the node's former process may still run. */
  get isWaiting(): boolean {
    if (this.#reaper.untilFree() !== undefined) return true;
    return !this.#reaper.knowsFormer && systemClock.now() - this.#madeAtMs < UNKNOWN_FORMER_MS;
  }

  /** The watch over the processes of one program, which is named by its server id. */
  of(program: string): GroupWatch {
    return {
      processes: this.#reaper.processes,
      start: (command, args): GatedProgram => {
        if (!ownsGroup || systemClock.now() >= this.#untilMs)
          throw new Error('this node may not run it any more');
        const { stdin } = this.#shell ?? this.#open();
        // The program is spawned and watched in this turn, or was not started.
        queueMicrotask(() => this.#endUnused());
        if (!stdin?.writable) throw new Error('the shell that ends it with this node cannot be started');
        const gate = ['-c', GATE, 'stagedoor-start', this.#uptime, String(this.#deadline.uptime)];
        return { command: '/bin/sh', args: [...gate, command, ...args], channel: stdin };
      },
      watch: (leader): void => {
        this.#reaper.watch(leader);
        const groups = this.#groups.get(program) ?? new Set();
        this.#groups.set(program, groups.add(leader));
      },
      forget: (leader): void => {
        this.#reaper.forget(leader);
        const groups = this.#groups.get(program);
        if (groups?.delete(leader) && groups.size === 0) this.#groups.delete(program);
        this.#send(`- ${leader}`);
        this.#endUnused();
      },
    };
  }

  /** Ends the shell when no program is left. */
  #endUnused(): void {
    if (this.#groups.size > 0) return;
    this.#shell?.stdin?.end();
    this.#shell = undefined;
  }

  /** The programs may run until then, by the monotonic clock in ms. */
  lease(untilMs: number): void {
    this.#untilMs = untilMs;
    this.#sendDeadline();
  }

  /** All processes of the program, at once. */
  kill(program: string): void {
    for (const leader of this.#groups.get(program) ?? []) killGroup(leader, 'SIGKILL');
  }

  /** A process that is frozen between the two readings makes the deadline earlier, not later. */
  get #deadline(): { readonly uptime: number; readonly leftMs: number } {
    const uptimeMs = uptimeMsIn(this.#uptime);
    const leftMs = Math.max(0, this.#untilMs - systemClock.now());
    return { uptime: Math.floor((uptimeMs + leftMs) / 10), leftMs };
  }

  #open(): ChildProcess {
    const shell = spawn('/bin/sh', ['-c', SCRIPT, 'stagedoor-lease', this.#uptime], {
      ...WATCHING_SHELL,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const lost = (): void => {
      if (this.#shell !== shell) return;
      this.#shell = undefined;
      this.#openLater();
    };
    shell.on('error', lost).on('exit', lost);
    shell.stdin?.on('error', () => {}); // its exit follows
    shell.unref();
    this.#shell = shell;
    this.#sendDeadline();
    for (const leader of [...this.#groups.values()].flatMap((groups) => [...groups]))
      this.#send(`+ ${leader}`);
    return shell;
  }

  #openLater(): void {
    systemClock.background.alarm(REOPEN_MS, () => {
      if (this.#shell !== undefined || this.#groups.size === 0) return;
      try {
        this.#open();
      } catch {
        this.#openLater(); // the system has no memory for it now
      }
    });
  }

  #sendDeadline(): void {
    if (this.#shell === undefined) return;
    const { uptime, leftMs } = this.#deadline;
    this.#send(`= ${uptime} ${Math.floor(leftMs / 100)}`);
  }

  #send(line: string): void {
    this.#shell?.stdin?.write(`${line}\n`);
  }
}

/** The uptime in ms; 0 without UPTIME, where the shell counts the rest. */
function uptimeMsIn(path: string): number {
  try {
    return Number.parseFloat(readFileSync(path, 'latin1')) * 1_000;
  } catch {
    return 0;
  }
}
