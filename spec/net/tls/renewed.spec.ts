// Values that are read again at intervals.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { readRenewed } from '../../../src/net/tls/renewed.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('renewed values');

test('a file is not read again while it is being read, as on a file system that does not answer', async () => {
  let ring = () => {};
  const background = {
    ...systemClock.background,
    every: (_: number, callback: () => void) => {
      ring = callback;
      return () => {};
    },
  };
  const readings: PromiseWithResolvers<string>[] = [];
  const read = (): Promise<string> => {
    const reading = Promise.withResolvers<string>();
    readings.push(reading);
    return reading.promise;
  };
  const options = {
    clock: { ...systemClock, background },
    everyMs: 1,
    isSame: Object.is,
    onWarning: () => {},
  };
  const opening = readRenewed(read, options);
  readings[0]?.resolve('first');
  const renewed = await opening;
  for (let times = 0; times < 3; times += 1) ring();
  assert.is(readings.length, 2);
  readings[1]?.resolve('second');
  await new Promise(setImmediate);
  assert.is(renewed.present(), 'second');
  ring();
  assert.is(readings.length, 3);
});

test.run();
