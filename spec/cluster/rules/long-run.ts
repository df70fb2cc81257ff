// `npm run simulate`: the rules of the cluster in many schedules, on all cores. A failure is printed with its seed, and makes the status 1.

import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { answerHelp } from '../../../bench/usage.ts';
import { againWith } from '../../helpers/dice.ts';
import { simulate } from './simulation.ts';

interface Part {
  readonly seed: number;
  readonly schedules: number;
}

/** Schedules that a thread gets at a time. */
const PART = 500;
const QUICK = 20_000;
const DAY_MS = 86_400_000;

if (isMainThread) process.exitCode = (await runAll()) === 0 ? 0 : 1;
else
  parentPort?.on('message', ({ seed, schedules }: Part) => {
    const failures: string[] = [];
    for (let one = seed; one < seed + schedules; one += 1) {
      const { failure } = simulate(one);
      if (failure !== undefined) failures.push(`${failure}; ${againWith(one)}`);
    }
    parentPort?.postMessage(failures);
  });

async function runAll(): Promise<number> {
  answerHelp(`npm run simulate -- [options]
  --schedules N  default 1,000,000, which took 5 ms of one core each
  --seed N       of the first one (default 1)
  --quick        20,000 others each day, as in .ci/run
Exits with 1 when a schedule fails.
`);
  const { values } = parseArgs({
    options: {
      schedules: { type: 'string' },
      seed: { type: 'string' },
      quick: { type: 'boolean', default: false },
    },
  });
  const schedules = Number(values.schedules ?? (values.quick ? QUICK : 1_000_000));
  const first = Number(values.seed ?? (values.quick ? Math.floor(Date.now() / DAY_MS) * QUICK : 1));
  let seed = first;
  const end = first + schedules;
  if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(end) || seed < 1)
    throw new Error('--schedules and --seed are positive integers');
  const startedAtMs = performance.now();
  let failed = 0;
  await Promise.all(
    Array.from({ length: availableParallelism() }, async () => {
      const worker = new Worker(new URL(import.meta.url));
      while (seed < end) {
        const part: Part = { seed, schedules: Math.min(PART, end - seed) };
        seed += part.schedules;
        for (const failure of await answerOf(worker, part)) {
          failed += 1;
          process.stdout.write(`FAIL ${failure}\n`);
        }
      }
      await worker.terminate();
    }),
  );
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
  process.stdout.write(`schedules from seed ${first} in ${seconds} s\n`);
  process.stdout.write(`${schedules - failed} passed, ${failed} failed, 0 skipped\n`);
  return failed;
}

function answerOf(worker: Worker, part: Part): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', (failures) => {
      worker.off('error', reject);
      resolve(failures);
    });
    worker.postMessage(part);
  });
}
