// Sends the same body repeatedly over many connections, from a separate thread, so that the spec can measure what other
// clients see. Use `flood`, which runs this file as the thread.

import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export interface Flood {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** `repeated` is written `times` times with commas between, its `#` replaced by the index. */
  readonly body: readonly [head: string, repeated: string, times: number, tail: string];
  readonly connections: number;
  readonly lastsMs: number;
}

/** Resolves with the number of answers per status after the last answer; status 0 stands for a failed request. */
export function flood(work: Flood): Promise<ReadonlyMap<number, number>> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: work });
    worker.once('message', resolve).once('error', reject);
  });
}

async function run({ url, headers, body, connections, lastsMs }: Flood): Promise<Map<number, number>> {
  const [head, repeated, times, tail] = body;
  const counted = Array.from({ length: times }, (_, index) => repeated.replace('#', String(index)));
  const bytes = Buffer.from(head + counted.join() + tail);
  const statuses = new Map<number, number>();
  const endsAtMs = performance.now() + lastsMs;
  const repeat = async (): Promise<void> => {
    while (performance.now() < endsAtMs) {
      const status = await post(url, headers, bytes);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await sleep(250);
    }
  };
  await Promise.all(Array.from({ length: connections }, repeat));
  return statuses;
}

async function post(url: string, headers: Flood['headers'], body: Uint8Array<ArrayBuffer>): Promise<number> {
  try {
    const answer = await fetch(url, { method: 'POST', headers, body });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 0;
  }
}

if (!isMainThread) parentPort?.postMessage(await run(workerData));
