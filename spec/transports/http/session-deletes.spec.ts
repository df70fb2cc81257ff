// Deletes of many sessions at one backend: a limited number at a time, in order, and none after waiting too long.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { sessionDeletes } from '../../../src/transports/http/sessions/http-openings.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('session deletes');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('drops deletes that would wait too long, a few per turn', async () => {
  const deleteSession = sessionDeletes(untimedScheduler(5), systemClock);
  const answers: (() => void)[] = [];
  const end = () => new Promise<void>((resolve) => answers.push(resolve));
  const turns = new TurnCounter();
  const all = Array.from({ length: 200 }, () => deleteSession({ end }).then(turns.note));
  mock.timers.tick(LIMITS.backgroundMs);
  await turns.pass(60);
  assert.equal([turns.all, turns.fullest], [200 - 64, 5]);
  for (const answer of answers) answer();
  await Promise.all(all);
  assert.is(answers.length, 64);
});

test.run();
