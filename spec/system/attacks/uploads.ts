// Uploads that stay incomplete, from a separate thread, as `flood`: sending some hundred MB keeps a thread busy for seconds.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export interface Uploads {
  readonly port: number;
  readonly head: string;
  /** Bytes of each body that are sent; its end never comes. */
  readonly bodyBytes: number;
  readonly connections: number;
  readonly lastsMs: number;
}

/** Resolves when the time is over and the connections are closed. */
export function holdUploads(work: Uploads): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: work });
    worker.once('message', () => resolve()).once('error', reject);
  });
}

async function run({ port, head, bodyBytes, connections, lastsMs }: Uploads): Promise<void> {
  const body = Buffer.alloc(bodyBytes, ' ');
  const sockets = Array.from({ length: connections }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write(head);
    socket.write(body);
    return socket.resume();
  });
  await sleep(lastsMs);
  for (const socket of sockets) socket.destroy();
}

if (!isMainThread) {
  await run(workerData);
  parentPort?.postMessage(undefined);
}
