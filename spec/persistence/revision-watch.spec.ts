// The watch over the revision, in simulated time.

import { mock } from 'node:test';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { watchRevision } from '../../src/persistence/revision-watch.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('revision watch');

test.before.each(() => mock.timers.enable({ apis: ['setInterval', 'setTimeout', 'Date'] }));
test.after.each(() => mock.timers.reset());

test('reads the revision at once and at every interval, and reports `changed` or `answered`', async () => {
  const { news, step, stop } = watch([4, 4, 5, 5, 3]);
  await step(0);
  assert.equal(news, ['answered']);
  for (let left = 4; left > 0; left -= 1) await step(2_000);
  assert.equal(news, ['answered', 'answered', 'changed', 'answered', 'changed']);
  stop();
});

test('reports `away` for every failed read, and compares with the revision before', async () => {
  const { news, step, stop } = watch(['fails', 1, 'fails', 'throws', 1, 'fails', 2]);
  await step(0);
  for (let left = 6; left > 0; left -= 1) await step(2_000);
  assert.equal(news, ['away', 'answered', 'away', 'away', 'answered', 'away', 'changed']);
  stop();
});

test('reports with `away` the cause of the failure', async () => {
  const failure = databaseUnavailable(new Error('no answer within 5000 ms'));
  const storeChanges$ = watchRevision({ revision: () => Promise.reject(failure) });
  const first = firstValueFrom(storeChanges$);
  mock.timers.tick(0);
  assert.equal(await first, { kind: 'away', reason: 'no answer within 5000 ms' });
});

test('starts no read while another is pending', async () => {
  const { news, step, stop, asked, release } = watch([1, 'hangs', 2]);
  await step(0);
  for (let left = 5; left > 0; left -= 1) await step(2_000);
  assert.equal([news, asked()], [['answered'], 2]);
  release(1);
  await step(0);
  await step(2_000);
  assert.equal([news, asked()], [['answered', 'answered', 'changed'], 3]);
  stop();
});

type Outcome = number | 'fails' | 'throws' | 'hangs';

function watch(outcomes: readonly Outcome[]) {
  let questions = 0;
  let release: (revision: number) => void = () => {};
  const revision = (): Promise<number> => {
    const outcome = outcomes[questions] ?? 0;
    questions += 1;
    if (outcome === 'throws') throw new Error('at once');
    if (outcome === 'fails') return Promise.reject(new Error('away'));
    if (outcome === 'hangs') return new Promise((resolve) => (release = resolve));
    return Promise.resolve(outcome);
  };
  const news: string[] = [];
  const subscription = watchRevision({ revision }).subscribe(({ kind }) => news.push(kind));
  return {
    news,
    asked: () => questions,
    release: (value: number) => release(value),
    step: async (ms: number) => {
      mock.timers.tick(ms);
      for (let turns = 10; turns > 0; turns -= 1) await Promise.resolve();
    },
    stop: () => subscription.unsubscribe(),
  };
}

test.run();
