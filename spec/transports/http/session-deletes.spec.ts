// Deletes of many sessions at one backend: a limited number at a time, in order, and none after waiting too long.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { sessionDeletes } from '../../../src/transports/http/http-openings.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns, TurnCounter, untimedScheduler } from '../../helpers/turns.ts';

const test = suite('session deletes');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

function harness(perTurn?: number) {
  const deleted: number[] = [];
  const open: (() => void)[] = [];
  const deleteSession = sessionDeletes(untimedScheduler(perTurn));
  const end = (number: number) => () => {
    deleted.push(number);
    return new Promise<void>((resolve) => open.push(resolve));
  };
  return {
    deleted,
    deleteAll: (count: number, done = () => {}) =>
      Promise.all(
        Array.from({ length: count }, (_, number) => deleteSession({ end: end(number) }).then(done)),
      ),
    answer: async (count: number) => {
      for (const resolve of open.splice(0, count)) resolve();
      await passTurns(20);
    },
  };
}

test('drops deletes that would wait too long, a few per turn', async () => {
  const { deleted, deleteAll, answer } = harness(5);
  const turns = new TurnCounter();
  const all = deleteAll(200, turns.note);
  mock.timers.tick(LIMITS.backgroundMs);
  await turns.pass(60);
  assert.equal([turns.all, turns.fullest], [200 - 64, 5]);
  await answer(64);
  await all;
  assert.is(deleted.length, 64);
});

test.run();
