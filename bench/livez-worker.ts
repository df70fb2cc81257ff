// Asks a gateway for /livez every 20 ms, in a thread of its own: what the benchmark does meanwhile must not count as a delay of the
// gateway. Counts from the first answer on until a message arrives, and answers it. A gateway that has stopped is not asked again.

import { get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

export interface Probed {
  readonly firstAtMs: number;
  readonly slowestMs: number;
}

const origin = String(workerData);
let isOver = false;
parentPort?.once('message', () => {
  isOver = true;
});
parentPort?.postMessage('ready');
parentPort?.postMessage(await probed());

async function probed(): Promise<Probed> {
  let firstAtMs = Number.POSITIVE_INFINITY;
  let slowestMs = 0;
  let hasStopped = false;
  while (!isOver) {
    const beganMs = performance.now();
    const isUp = !hasStopped && (await answersLivez());
    if (isUp) {
      firstAtMs = Math.min(firstAtMs, Date.now());
      slowestMs = Math.max(slowestMs, performance.now() - beganMs);
    } else hasStopped = firstAtMs < Number.POSITIVE_INFINITY;
    await delay(20);
  }
  return { firstAtMs, slowestMs };
}

function answersLivez(): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = get(`${origin}/livez`, { agent: false }, (answer) =>
      answer.resume().on('close', () => resolve(true)),
    );
    asked.on('error', () => resolve(false));
  });
}
