// Opens connections without credentials and holds them, from a separate thread and from several addresses of this machine, so that the spec
// can measure what other clients see. Use `holdConnections`, which runs this file as the thread.

import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export interface Held {
  readonly port: number;
  readonly connections: number;
  /** 127.0.1.1 and the following ones. */
  readonly addresses: number;
  /** Written at once. `*` is 14,000 characters, `%` 200 short headers of about as much, `#` a body of 50,000. */
  readonly bytes: string;
  /** How often they are written, one after the other. Default: once. */
  readonly times?: number;
  /** Nothing of the answers is read. */
  readonly isSilent?: boolean;
  /** Written every 500 ms. */
  readonly drip?: string;
  /** After the last connection has been opened. */
  readonly lastsMs: number;
}

/** Resolves with the number of connections that were still open at the end. */
export function holdConnections(work: Held): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: work });
    worker.once('message', resolve).once('error', reject);
  });
}

/** Connections that are opened before the next turn of the event loop. */
const AT_ONCE = 200;

async function run({
  port,
  connections,
  addresses,
  bytes,
  times = 1,
  isSilent,
  drip,
  lastsMs,
}: Held): Promise<number> {
  const short = Array.from({ length: 200 }, (_, index) => `x-${index}: ${'y'.repeat(60)}\r\n`).join('');
  const written = Buffer.from(
    bytes.replace('*', 'x'.repeat(14_000)).replace('%', short).replace('#', 'x'.repeat(50_000)).repeat(times),
  );
  const open = new Set<Socket>();
  for (let made = 0; made < connections; made += 1) {
    const localAddress = `127.0.1.${1 + (made % addresses)}`;
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    if (isSilent !== true) socket.resume();
    socket.write(written);
    if (made % AT_ONCE === 0) await sleep(5);
  }
  const drops = drip === undefined ? undefined : setInterval(() => drop(open, drip), 500);
  await sleep(lastsMs);
  clearInterval(drops);
  const held = open.size;
  for (const socket of open) socket.destroy();
  return held;
}

function drop(sockets: Iterable<Socket>, text: string): void {
  for (const socket of sockets) socket.write(text);
}

if (!isMainThread) parentPort?.postMessage(await run(workerData));
