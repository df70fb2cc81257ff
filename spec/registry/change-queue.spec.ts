// Changes one after the other over a store that may not answer. Time is simulated.

import { setImmediate as turn } from 'node:timers/promises';
import { firstValueFrom, timer } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors.ts';
import { ChangeQueue } from '../../src/registry/change-queue.ts';
import { pass } from '../helpers/failing-backend.ts';
import { codeOf, errorOf } from '../helpers/outcome.ts';
import { simulateTime } from '../helpers/simulated-time.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('change queue');
const NEVER = new Promise<never>(() => {});
let turns = new ChangeQueue();

simulateTime(test, () => {
  turns = new ChangeQueue(() => Date.now());
});

test('ends a change whose store never answers after 10 s, and nothing of it runs any more', async () => {
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
  await pass(1);
  const next = codeOf(turns.take(async () => 'next'));
  await pass(9_998);
  assert.is(await Promise.race([stuck, turn('open')]), 'open');
  await pass(1);
  assert.equal([await stuck, await next], ['DATABASE_UNAVAILABLE', 'DATABASE_UNAVAILABLE']);
  assert.is(await turns.take(async () => 'later'), 'later');
  answer('too late');
  await turn();
  assert.is(hasGoneOn, false);
});

test('a change that timed out may have happened, and one that never began has not', async () => {
  const stuck = errorOf(turns.take(() => turns.within(NEVER, 'unknown')));
  const waiting = errorOf(turns.take(async () => 'begun'));
  await pass(10_000);
  assert.equal([(await stuck).delivered, (await waiting).delivered], ['unknown', 'no']);
  const reading = errorOf(turns.take(() => turns.within(NEVER)));
  await pass(10_000);
  assert.is((await reading).delivered, 'no');
});

test('a change in the queue of a silent database does not wait for all changes before it', async () => {
  const endedAtMs: number[] = [];
  let begun = 0;
  const change = async () => {
    const askedAtMs = Date.now();
    const code = await codeOf(
      turns.take(async () => {
        begun += 1;
        await passing(5_000); // the store gives up
        throw databaseUnavailable(undefined);
      }),
    );
    endedAtMs.push(Date.now() - askedAtMs);
    return code;
  };
  const codes: Promise<unknown>[] = [];
  for (let index = 0; index < 100; index += 1) {
    codes.push(change());
    await pass(200);
  }
  for (let left = 50; left > 0; left -= 1) await pass(200);
  assert.equal(new Set(await Promise.all(codes)), new Set(['DATABASE_UNAVAILABLE']));
  assert.ok(Math.max(...endedAtMs) <= 6_000, `${Math.max(...endedAtMs)} ms`);
  assert.ok(begun <= 6, `${begun} were tried`);
  assert.equal(await turns.take(async () => 'back'), 'back');
});

test.run();

function passing(ms: number): Promise<unknown> {
  return firstValueFrom(timer(ms));
}
