// The clock of the process.

import { getEventListeners } from 'node:events';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { systemClock, unlessAborted } from '../../../src/domain/time/clock.ts';
import { thrownBy } from '../../helpers/outcome.ts';
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

test('work that ends before its signal aborts leaves no listener there', async () => {
  const { signal } = new AbortController();
  for (let number = 0; number < 20; number += 1)
    assert.is(await unlessAborted(signal, Promise.resolve(1)), 1);
  assert.match(String(await thrownBy(unlessAborted(signal, Promise.reject(new Error('no'))))), 'no');
  assert.is(getEventListeners(signal, 'abort').length, 0);
});

test('work is given up when its signal aborts, or has aborted, and may fail later', async () => {
  const stopped = new AbortController();
  const work = Promise.withResolvers<number>();
  const results = [
    unlessAborted(stopped.signal, work.promise),
    unlessAborted(stopped.signal, work.promise, () => new Error('too late')),
  ];
  stopped.abort(new Error('the reason'));
  results.push(unlessAborted(stopped.signal, work.promise));
  const found = await Promise.all(results.map((result) => thrownBy(result)));
  work.reject(new Error('later'));
  assert.equal(
    found.map((thrown) => Object(thrown).message),
    ['the reason', 'too late', 'the reason'],
  );
});

test.run();
