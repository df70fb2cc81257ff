import * as assert from 'uvu/assert';
import { HashQueue } from '../../src/auth/passwords.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the line before the hashes');

test('runs two at a time in order, lets three wait and refuses the next', async () => {
  const queue = new HashQueue({ atOnce: 2, waitingAtMost: 3, refusal: () => new Error('full') });
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const jobs = [0, 1, 2, 3, 4].map((job) =>
    queue.run(async () => {
      started.push(job);
      await new Promise<void>((resolve) => ends.push(resolve));
      return job;
    }),
  );
  await turns();
  assert.equal(started, [0, 1]);
  const refused = await queue.run(async () => 5).catch((error: Error) => error.message);
  assert.is(refused, 'full');
  for (let job = 0; job < 5; job += 1) {
    ends[job]?.();
    await turns();
    assert.equal(started.length, Math.min(5, job + 3));
  }
  assert.equal(await Promise.all(jobs), [0, 1, 2, 3, 4]);
  assert.equal(started, [0, 1, 2, 3, 4]);
});

test('who comes while others wait is last, and never one too many', async () => {
  const queue = new HashQueue({ atOnce: 2, waitingAtMost: 100, refusal: () => new Error('full') });
  let running = 0;
  let most = 0;
  const order: number[] = [];
  const work = (job: number) => async (): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    order.push(job);
    await turns();
    running -= 1;
  };
  const jobs: Promise<void>[] = [];
  for (let job = 0; job < 30; job += 1) {
    jobs.push(queue.run(work(job)));
    if (job > 5) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(jobs);
  assert.is(most, 2);
  assert.equal(
    order,
    order.toSorted((one, other) => one - other),
  );
});

test('a job that fails gives its place back', async () => {
  const queue = new HashQueue({ atOnce: 1, waitingAtMost: 1, refusal: () => new Error('full') });
  for (let round = 0; round < 3; round += 1) {
    const failed = queue
      .run(() => Promise.reject(new Error('broken')))
      .catch((error: Error) => error.message);
    assert.equal(await Promise.all([failed, queue.run(async () => 'done')]), ['broken', 'done']);
  }
});

async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test.run();
