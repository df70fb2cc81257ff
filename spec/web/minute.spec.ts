// The sums of the last minute that the console shows.

import * as assert from 'uvu/assert';
import { LastMinute } from '../../web/src/minute.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the last minute of the console');

test('sums by key, and forgets what is older than a minute', () => {
  const minute = new LastMinute();
  minute.add([
    ['a', { requests: 5, failures: 1 }],
    ['b', { requests: 0, failures: 0 }],
  ]);
  for (let second = 1; second < 60; second += 1) minute.add([['a', { requests: 1, failures: 0 }]]);
  assert.equal(minute.of('a'), { requests: 64, failures: 1 });
  assert.equal(minute.of('b'), { requests: 0, failures: 0 });
  minute.add([['a', { requests: 2, failures: 0 }]]);
  assert.equal(minute.of('a'), { requests: 61, failures: 0 });
  for (let second = 0; second < 60; second += 1) minute.add([]);
  assert.equal(minute.of('a'), { requests: 0, failures: 0 });
});

test.run();
