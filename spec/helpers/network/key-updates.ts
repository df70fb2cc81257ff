// An end of TLS 1.3 that renews its keys: `openssl s_client` or `s_server`, which renew them for each line `k`.

import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/** The options follow `openssl`. */
export function renewingEnd(...options: readonly string[]): ChildProcess {
  const child = spawn('openssl', options, { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.on('error', () => {}); // it has ended
  child.stdout.resume();
  return child;
}

/** One line is read at a time: the next one is written a little later. */
export async function renew({ stdin }: ChildProcess, times: number): Promise<void> {
  for (let done = 0; done < times && stdin?.writable; done += 1) {
    stdin.write('k\n');
    await sleep(5);
  }
}
