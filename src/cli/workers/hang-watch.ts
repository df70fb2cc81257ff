// Ends a worker that outlives its supervisor and hangs. A small shell, whose input ends with the supervisor, kills
// the worker 10 s after that, unless the worker has said that it ends in order: then after the longest orderly
// stop. Not on Windows. Source: ADR 174.

import { type ChildProcess, spawn } from 'node:child_process';
import { WATCHING_SHELL } from '../../programs/process-group.ts';

/** The wait for a sign of a worker whose supervisor is gone, in ms. */
const HUNG_MS = 10_000;

/**
 * The script of the shell. Its arguments are a process id, and the two waits in seconds. A line before the end of the
 * input says that the worker has ended. On Linux the time at which its process began shows that no other process has
 * got its id.
 */
const SCRIPT = `
began() {
  read -r stat <"/proc/$1/stat" && set -- \${stat##*) } && echo "\${20}"
}
worker=$(began "$1")
left=$2
trap 'left=$3' USR1
read -r ended && exit
while kill -s 0 "$1" && [ "$(began "$1")" = "$worker" ]; do
  [ "$left" -le 0 ] && kill -s KILL "$1" && exit
  left=$((left - 1))
  sleep 1
done
`;

/**
 * Starts the watch of a worker; undefined without /bin/sh: a worker that hangs then stays. `orderlyMs`: the longest stop of a
 * worker. `pid`: the shell, to which the worker sends SIGUSR1 when it ends in order. `close` ends the watch: the worker has
 * ended.
 */
export function watchForHang(
  worker: number | undefined,
  orderlyMs: number,
): { readonly pid: number; close(): void } | undefined {
  if (worker === undefined || process.platform === 'win32') return undefined;
  const waits = [HUNG_MS, orderlyMs].map((ms) => String(Math.ceil(ms / 1_000)));
  let shell: ChildProcess;
  try {
    shell = spawn('/bin/sh', ['-c', SCRIPT, 'stagedoor-hang-watch', String(worker), ...waits], {
      ...WATCHING_SHELL,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
  } catch {
    return undefined;
  }
  const ignore = (): void => {
    // Without it a worker that hangs stays after a kill of its supervisor.
  };
  shell.on('error', ignore);
  shell.stdin?.on('error', ignore);
  shell.unref();
  const { pid } = shell;
  return pid === undefined ? undefined : { pid, close: () => shell.stdin?.end('ended\n') };
}

/** Tells the watch that its worker has seen that the supervisor is gone, and ends in order. */
export function endsInOrder(watch: number | undefined): void {
  try {
    if (watch !== undefined) process.kill(watch, 'SIGUSR1');
  } catch {
    // The watch has ended.
  }
}
