// Loaded into a gateway before its own code: appends to the file LAG_FILE a line `<end, ms since 1970> <length in ms> <CPU of the thread in it, ms>`
// for each stretch of over 20 ms in which its event loop ran no timer, and `gc <end> <length>` for each collection of over 1 ms. In what is
// neither CPU nor a collection the thread waited: for a processor, or for the disk.

import { appendFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';

const EVERY_MS = 2;
const MIN_MS = 20;
const MIN_COLLECTION_MS = 1;

const file = process.env.LAG_FILE;
if (file === undefined) throw new Error('LAG_FILE is not set');
let last = performance.now();
let lastCpuMs = cpuMs();
setInterval(() => {
  const now = performance.now();
  const stretchMs = now - last;
  const stretch = `${stretchMs.toFixed(1)} ${(cpuMs() - lastCpuMs).toFixed(1)}`;
  if (stretchMs >= MIN_MS) appendFileSync(file, `${Date.now()} ${stretch}\n`);
  last = performance.now();
  lastCpuMs = cpuMs();
}, EVERY_MS).unref();

const collections = new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries())
    if (duration > MIN_COLLECTION_MS) {
      const endMs = Date.now() - performance.now() + startTime + duration;
      appendFileSync(file, `gc ${endMs.toFixed(1)} ${duration.toFixed(1)}\n`);
    }
});
collections.observe({ entryTypes: ['gc'] });

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
