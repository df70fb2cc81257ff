// Results in time are passed on, a timeout is an error with a code, and late results go to a callback.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { withTimeout } from '../../src/persistence/with-timeout.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('withTimeout');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('rejects with ETIMEDOUT after the time limit, and passes a late result to the callback', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const late: string[] = [];
  const ended = thrownBy(withTimeout(promise, 5, (value) => late.push(value)));
  mock.timers.tick(5);
  const error = await ended;
  assert.instance(error, Error);
  assert.equal([Reflect.get(Object(error), 'code'), late], ['ETIMEDOUT', []]);
  resolve('too late');
  await turn();
  assert.equal(late, ['too late']);
});

test.run();
