// Loaded into a gateway before its own code: appends to the file LAG_FILE a line `<end, ms since 1970> <length in ms>` for each
// stretch of over 20 ms in which its event loop ran no timer.

import { appendFileSync } from 'node:fs';

const EVERY_MS = 2;
const LEAST_MS = 20;

const file = process.env.LAG_FILE;
if (file === undefined) throw new Error('LAG_FILE is not set');
let last = performance.now();
setInterval(() => {
  const now = performance.now();
  const stretchMs = now - last;
  if (stretchMs >= LEAST_MS) appendFileSync(file, `${Date.now()} ${stretchMs.toFixed(1)}\n`);
  last = performance.now();
}, EVERY_MS).unref();
