// Opens one database from several processes at the same moment.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const child = fileURLToPath(new URL('open-in-process.ts', import.meta.url));

/** Resolves with `open` or the error of each process. All processes are loaded before the first one opens. */
export async function openInProcesses(url: string, count: number): Promise<string[]> {
  const processes = Array.from({ length: count }, () =>
    fork(child, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
  );
  try {
    await Promise.all(processes.map((each) => once(each, 'message')));
    const answers = processes.map((each) => once(each, 'message'));
    for (const each of processes) each.send(url);
    return (await Promise.all(answers)).map(([answer]) => String(answer));
  } finally {
    for (const each of processes) each.kill('SIGKILL');
  }
}
