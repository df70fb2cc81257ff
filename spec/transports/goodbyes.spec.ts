// So many at a time, in order, and none that waited too long.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import { Goodbyes } from '../../src/transports/goodbyes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('goodbyes');

function stage() {
  let nowMs = 0;
  const told: number[] = [];
  const open: (() => void)[] = [];
  const goodbyes = new Goodbyes(() => nowMs);
  const say = (number: number): Promise<void> =>
    goodbyes.say({
      end: () => {
        told.push(number);
        return new Promise((resolve) => open.push(resolve));
      },
    });
  return {
    told,
    all: (count: number) => Promise.all(Array.from({ length: count }, (_, number) => say(number))),
    answer: async (count: number) => {
      for (const resolve of open.splice(0, count)) resolve();
      for (let turn = 0; turn < 1_000; turn += 1) await undefined;
    },
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('tells 64 at a time, the others in their order', async () => {
  const { told, all, answer } = stage();
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
  const { told, all, answer, wait } = stage();
  const saying = all(200);
  wait(LIMITS.courtesyMs);
  await answer(64);
  await saying;
  assert.is(told.length, 64);
});

test.run();
