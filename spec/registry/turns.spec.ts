// Changes one after the other over a store that may not answer. Time is simulated.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { firstValueFrom, timer } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable, GatewayError } from '../../src/domain/errors.ts';
import { Turns } from '../../src/registry/turns.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: turns');
const NEVER = new Promise<never>(() => {});
let turns = new Turns();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  turns = new Turns(() => Date.now());
});
test.after.each(() => mock.timers.reset());

test('runs one change after the other and hands on what becomes of it', async () => {
  const told: string[] = [];
  const slow = turns.take(async () => {
    told.push('slow begins');
    await turn();
    told.push('slow ends');
    return 1;
  });
  const broken = codeOf(
    turns.take(async () => {
      told.push('broken');
      throw databaseUnavailable('a reason');
    }),
  );
  const quick = turns.take(async () => told.push('quick'));
  assert.equal([await slow, await broken], [1, 'DATABASE_UNAVAILABLE']);
  await quick;
  assert.equal(told, ['slow begins', 'slow ends', 'broken', 'quick']);
});

test('ends a change whose store never answers after 15 s, and nothing of it runs any more', async () => {
  let hasGoneOn = false;
  let answer = (_: string): void => {};
  const late = new Promise<string>((resolve) => {
    answer = resolve;
  });
  const stuck = codeOf(
    turns.take(async () => {
      await turns.within(late);
      hasGoneOn = true;
    }),
  );
  await tick(1);
  const next = turns.take(async () => 'next');
  await tick(14_998);
  assert.is(await Promise.race([stuck, turn('open')]), 'open');
  await tick(1);
  assert.equal([await stuck, await next], ['DATABASE_UNAVAILABLE', 'next']);
  answer('too late');
  await turn();
  assert.is(hasGoneOn, false);
});

test('says of a change whose time was over that it may have happened, and of one that never began that it has not', async () => {
  const stuck = fateOf(turns.take(() => turns.within(NEVER)));
  const waiting = fateOf(turns.take(async () => 'begun'));
  await tick(15_000);
  assert.equal([await stuck, await waiting], ['unknown', 'no']);
});

test('counts the time of a change, not of a question', async () => {
  const asked = codeOf(
    turns.take(async () => {
      await turns.within(passing(10_000));
      await turns.within(passing(10_000));
    }),
  );
  await tick(10_000);
  await tick(5_000);
  assert.is(await asked, 'DATABASE_UNAVAILABLE');
});

test('gives every change the same time', async () => {
  const all = [1, 2, 3].map((value) => turns.take(() => turns.within(passing(14_000)).then(() => value)));
  for (let left = 3; left > 0; left -= 1) await tick(14_000);
  assert.equal(await Promise.all(all), [1, 2, 3]);
});

test('does not try a whole line of changes one by one while the database is away', async () => {
  let begun = 0;
  const change = () =>
    codeOf(
      turns.take(async () => {
        begun += 1;
        await turns.within(NEVER);
      }),
    );
  const first = Array.from({ length: 50 }, change);
  await tick(10_000);
  const second = change();
  await tick(5_000);
  assert.is(begun, 2, 'the first in the line, and the one that has not waited long');
  assert.equal(new Set(await Promise.all(first)), new Set(['DATABASE_UNAVAILABLE']));
  await tick(15_000);
  assert.is(await second, 'DATABASE_UNAVAILABLE');
  assert.equal(await turns.take(async () => 'back'), 'back');
});

test('is idle when the last change has ended, however it did', async () => {
  let isDone = false;
  void turns
    .take(() => turns.within(passing(10)).then(() => Promise.reject(new Error('it broke'))))
    .catch(() => {
      isDone = true;
    });
  const idle = turns.idle();
  await tick(10);
  await idle;
  assert.is(isDone, true);
});

test.run();

async function fateOf(change: Promise<unknown>): Promise<unknown> {
  return change.catch((thrown: unknown) => (thrown instanceof GatewayError ? thrown.delivered : thrown));
}

function passing(ms: number): Promise<unknown> {
  return firstValueFrom(timer(ms));
}

async function tick(ms: number): Promise<void> {
  await turn();
  mock.timers.tick(ms);
  await turn();
}
