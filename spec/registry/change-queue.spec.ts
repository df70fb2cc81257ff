// Changes one after the other over a store that may not answer. Time is simulated.

import { firstValueFrom, timer } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { ChangeQueue } from '../../src/registry/change-queue.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { pass, simulateTime } from '../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../helpers/time/turns.ts';

const test = suite('change queue');
let turns = new ChangeQueue(untimedScheduler(), () => 0);

simulateTime(test, () => {
  turns = new ChangeQueue(untimedScheduler(), () => Date.now());
});

test('a change in the queue of a silent database does not wait for all changes before it', async () => {
  const endedAtMs: number[] = [];
  let begun = 0;
  const change = async () => {
    const askedAtMs = Date.now();
    const code = await codeOf(
      turns.take(async () => {
        begun += 1;
        await firstValueFrom(timer(5_000)); // the store gives up
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
