// The clock of the process.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the clock');

test('a wait that is longer than the longest of Node does not end at once', () => {
  const rung: string[] = [];
  const cancels: (() => void)[] = [];
  mock.timers.enable({ apis: ['setTimeout'] });
  const { mock: warned } = mock.method(process, 'emitWarning', () => {});
  try {
    for (const ms of [3_000_000_000, 1e300, Number.POSITIVE_INFINITY])
      for (const { alarm } of [systemClock, systemClock.background])
        cancels.push(alarm(ms, () => rung.push(`${ms}`)));
    mock.timers.tick(86_400_000);
    assert.equal(rung, []);
  } finally {
    for (const cancel of cancels) cancel();
    mock.timers.reset();
    warned.restore();
  }
});

test('a wait that is already over ends at once, without a warning of Node', async () => {
  const { mock: setTimer } = mock.method(globalThis, 'setTimeout');
  const clocks = [systemClock, systemClock.background];
  try {
    await Promise.all(clocks.map(({ alarm }) => new Promise<void>((resolve) => void alarm(-5, resolve))));
    assert.equal(
      setTimer.calls.map(({ arguments: [, waitMs] }) => waitMs),
      [0, 0],
    );
  } finally {
    setTimer.restore();
  }
});

test.run();
