import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { invalidCredentials } from '../../src/domain/error-catalogue.ts';
import type { Refusal } from '../../src/http/caller-check.ts';
import { CallerWatch } from '../../src/http/caller-check.ts';
import { suite } from '../helpers/suite.ts';
import { steadyPace, Turns } from '../helpers/turns.ts';

const test = suite('watch over callers');
test.before.each(() => mock.timers.enable({ apis: ['setInterval'] }));
test.after.each(() => mock.timers.reset());

const ROUND_MS = 1_000;
/** Streams that may be ended in one turn of the event loop. */
const PER_TURN = 5;

function watching() {
  const watch = new CallerWatch(ROUND_MS, steadyPace(PER_TURN));
  const log: string[] = [];
  const barred = new Turns();
  const add = (name: string, check: () => Refusal | Promise<Refusal> = () => undefined) => {
    const release = watch.watch({
      check: () => {
        log.push(name);
        return check();
      },
      revoke: ({ code }) => {
        log.push(`${name}: ${code}`);
        barred.note();
        release();
      },
    });
    return release;
  };
  return { add, log, barred };
}

test('asks about everybody once a round', () => {
  const { add, log } = watching();
  for (const name of ['a', 'b', 'c']) add(name);
  mock.timers.tick(ROUND_MS);
  assert.equal(log, ['a', 'b', 'c']);
  mock.timers.tick(ROUND_MS);
  assert.equal(log, ['a', 'b', 'c', 'a', 'b', 'c']);
});

test('asks about a part of many at a time', () => {
  const { add, log } = watching();
  for (let count = 0; count < 1_000; count += 1) add(`${count}`);
  mock.timers.tick(ROUND_MS / 10);
  assert.is(log.length, 100);
  mock.timers.tick((ROUND_MS * 9) / 10);
  assert.equal([log.length, new Set(log).size], [1_000, 1_000]);
});

test('ends what a caller may not have any longer, and asks no more', () => {
  const { add, log } = watching();
  add('a', () => invalidCredentials());
  mock.timers.tick(ROUND_MS * 3);
  assert.equal(log, ['a', 'a: INVALID_CREDENTIALS']);
});

test('waits for one answer at a time', async () => {
  const { add, log } = watching();
  const answer = Promise.withResolvers<Refusal>();
  add('a', () => answer.promise);
  mock.timers.tick(ROUND_MS * 3);
  assert.equal(log, ['a']);
  answer.resolve(undefined);
  await turn();
  mock.timers.tick(ROUND_MS);
  assert.equal(log, ['a', 'a']);
});

test('leaves alone what was let go meanwhile', async () => {
  const { add, log } = watching();
  const answer = Promise.withResolvers<Refusal>();
  const release = add('a', () => answer.promise);
  mock.timers.tick(ROUND_MS);
  release();
  answer.resolve(invalidCredentials());
  await turn();
  mock.timers.tick(ROUND_MS * 2);
  assert.equal(log, ['a']);
});

test('begins anew after nobody was left', () => {
  const { add, log } = watching();
  add('a')();
  mock.timers.tick(ROUND_MS * 2);
  add('b');
  mock.timers.tick(ROUND_MS);
  assert.equal(log, ['b']);
});

test('ends thousands of somebody a few in a turn, each once', async () => {
  const { add, barred } = watching();
  for (let count = 0; count < 500; count += 1) add(`${count}`, () => invalidCredentials());
  mock.timers.tick(ROUND_MS * 2);
  await barred.pass(200);
  assert.equal([barred.all, barred.fullest], [500, PER_TURN]);
});

test.run();
