// One answer for calls at the same time and shortly after.

import * as assert from 'uvu/assert';
import { sharedAnswer } from '../../../src/domain/time/shared-answer.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('shared answers');

test('calls before an answer, and in the second after it, share it', async () => {
  let [nowMs, asked] = [0, 0];
  const given = Promise.withResolvers<void>();
  const ask = async () => {
    asked += 1;
    await given.promise;
    return asked;
  };
  const shared = sharedAnswer(ask, () => nowMs);
  const first = shared();
  nowMs = 60_000; // however long it takes
  const second = shared();
  given.resolve();
  assert.equal([await first, await second], [1, 1]);
  nowMs += 999;
  assert.is(await shared(), 1);
  nowMs += 1;
  assert.is(await shared(), 2);
});

test('a failure is shared, too, and then asked for again', async () => {
  let nowMs = 0;
  const failures = [new Error('one'), new Error('two')];
  const shared = sharedAnswer(
    () => Promise.reject(failures.shift()),
    () => nowMs,
  );
  const messageOf = () => shared().catch(({ message }: Error) => message);
  assert.equal([await messageOf(), await messageOf()], ['one', 'one']);
  nowMs = 1_000;
  assert.is(await messageOf(), 'two');
});

test.run();
