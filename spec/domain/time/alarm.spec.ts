// Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { spreadClock, systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('alarm');

test('alarms for the same moment ring a few per turn, and none that is cancelled meanwhile', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const alarm = spreadClock(untimedScheduler(5), systemClock).alarm;
  const rung = new TurnCounter();
  const callOffs = Array.from({ length: 40 }, () => alarm(10, () => rung.note()));
  mock.timers.tick(10);
  assert.is(rung.all, 5);
  for (const callOff of callOffs.slice(30)) callOff();
  await rung.pass(20);
  assert.equal([rung.all, rung.fullest], [30, 5]);
  mock.timers.reset();
});

test.run();
