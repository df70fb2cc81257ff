// Many requests of one network do not hold up the sign-ins of others.

import * as assert from 'uvu/assert';
import { StoreTurns } from '../../src/authorization-server/store-turns.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the turns of sign-ins at the store');

test('are given to one network after the other, and to each in the order in which it asked', async () => {
  const done: string[] = [];
  let network = '';
  const store = new StoreTurns(() => network).spread({
    find: async (what: string) => void done.push(what),
  });
  const ask = (from: string, count: number) => {
    network = from;
    return Array.from({ length: count }, (_, index) => store.find(`${from} ${index}`));
  };
  const work = [ask('many', 100), ask('few', 2), ask('one', 1)].flat();
  await Promise.all(work);
  assert.is(done.length, 103, 'all are answered');
  assert.equal(done.slice(0, 6), ['many 0', 'many 1', 'few 0', 'one 0', 'many 2', 'few 1']);
  assert.equal(
    done.filter((each) => each.startsWith('many')),
    Array.from({ length: 100 }, (_, index) => `many ${index}`),
  );
});

test.run();
