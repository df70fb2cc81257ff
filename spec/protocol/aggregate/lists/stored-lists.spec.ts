// What is written of the lists of templates: one list after the other, and none again that did not change.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/domain/json/json.ts';
import { StoredLists } from '../../../../src/protocol/aggregate/lists/stored-lists.ts';
import { suite } from '../../../helpers/suite.ts';
import { pass, simulatedClock, simulateTime } from '../../../helpers/time/simulated-time.ts';
import { PROFILE } from '../../listing-backends.ts';

const test = suite('stored lists');
simulateTime(test);

function setUp(value?: string) {
  const saves: { readonly template: string; readonly end: PromiseWithResolvers<void> }[] = [];
  const kept = new StoredLists(
    {
      find: async (key) =>
        value === undefined ? undefined : { key, template: 't', value, readAt: new Date(0).toISOString() },
      save: ({ template }) => {
        const end = Promise.withResolvers<void>();
        saves.push({ template, end });
        return end.promise;
      },
    },
    simulatedClock,
    () => false,
  );
  const keep = (client: string, items: readonly JsonObject[], template = 't') =>
    kept.keep(template, 'tools', { ...PROFILE, capabilities: { experimental: { [client]: {} } } }, items);
  return { saves, keep, find: () => kept.find('t', 'tools', PROFILE) };
}

test('lists are written one after the other, and those of many kinds of clients when they are read again', async () => {
  const { saves, keep } = setUp();
  const items = [{ name: 'a' }];
  const written = () => saves.map(({ template }) => template);
  for (let client = 0; client < 100; client++) keep(`c${client}`, items);
  keep('c0', items, 'other');
  assert.equal(written(), ['t']);
  await pass(10);
  saves[0]?.end.resolve();
  await pass(39);
  assert.equal(written(), ['t'], 'no other one for four times as long as the first one took');
  keep('c1', items);
  await pass(1);
  assert.equal(written(), ['t', 'other']);
  saves[1]?.end.resolve();
  await pass(1);
  keep('c0', items);
  keep('c1', items);
  assert.equal(written(), ['t', 'other', 't']);
});

test('a list that could not be written is written at the next reading', async () => {
  const { saves, keep } = setUp();
  const items = [{ name: 'a' }];
  keep('c', items);
  saves[0]?.end.reject(new Error('away'));
  await pass(1);
  keep('c', items);
  assert.is(saves.length, 2);
});

test('a damaged list counts as none', async () => {
  for (const value of ['{"na', '"text"', 'null']) {
    const { find } = setUp(value);
    assert.is(await find(), undefined, value);
  }
});

test.run();
