// So many at a time, in order, and none that waited too long.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { SessionDeletes } from '../../../src/transports/http/http-session.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace, Turns } from '../../helpers/turns.ts';

const test = suite('goodbyes');

function harness(perTurn?: number) {
  let nowMs = 0;
  const told: number[] = [];
  const open: (() => void)[] = [];
  const deletes = new SessionDeletes(steadyPace(perTurn), () => nowMs);
  const say = (number: number): Promise<void> =>
    deletes.say({
      end: () => {
        told.push(number);
        return new Promise((resolve) => open.push(resolve));
      },
    });
  return {
    told,
    all: (count: number, said = () => {}) =>
      Promise.all(Array.from({ length: count }, (_, number) => say(number).then(said))),
    answer: async (count: number) => {
      for (const resolve of open.splice(0, count)) resolve();
      for (let turns = 0; turns < 20; turns += 1) await turn();
    },
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('tells 64 at a time, the others in their order', async () => {
  const { told, all, answer } = harness();
  const saying = all(200);
  assert.is(told.length, 64);
  await answer(1);
  assert.is(told.length, 65);
  for (let round = 0; round < 4; round += 1) await answer(64);
  await saying;
  assert.equal(
    told,
    Array.from({ length: 200 }, (_, number) => number),
  );
});

test('lets those go that would have to wait too long', async () => {
  const { told, all, answer, wait } = harness();
  const saying = all(200);
  wait(LIMITS.courtesyMs);
  await answer(64);
  await saying;
  assert.is(told.length, 64);
});

test('lets those go that waited too long a few in a turn', async () => {
  const { all, answer, wait } = harness(5);
  const turns = new Turns();
  const saying = all(200, turns.note);
  wait(LIMITS.courtesyMs);
  await answer(1);
  assert.is(turns.fullest, 1 + 5, 'the one that was answered, and those of one turn');
  await answer(63);
  await saying;
  assert.is(turns.all, 200);
});

test.run();
