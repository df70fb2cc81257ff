// Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { alarm } from '../../src/gateway/alarm.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('alarm');

test('rings once when the time is over, and not when it was called off', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const rung: string[] = [];
  alarm(10, () => rung.push('first'));
  const callOff = alarm(10, () => rung.push('second'));
  mock.timers.tick(9);
  assert.equal(rung, []);
  callOff();
  mock.timers.tick(100);
  callOff();
  assert.equal(rung, ['first']);
  mock.timers.reset();
});

test.run();
