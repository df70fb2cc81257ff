// What is written of the lists of templates: each list of a template for one kind of client at a time, and none again that did not change.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/domain/json.ts';
import { keptLists } from '../../src/gateway/kept-lists.ts';
import { settled } from '../helpers/failing-backend.ts';
import { simulatedClock } from '../helpers/simulated-time.ts';
import { suite } from '../helpers/suite.ts';
import { PROFILE } from '../protocol/listing-backends.ts';

const test = suite('kept lists');

function setUp() {
  const saves: { readonly template: string; readonly end: PromiseWithResolvers<void> }[] = [];
  const kept = keptLists({
    clock: simulatedClock,
    hasUserLists: () => false,
    store: {
      find: async () => undefined,
      save: ({ template }) => {
        const end = Promise.withResolvers<void>();
        saves.push({ template, end });
        return end.promise;
      },
    },
  });
  const keep = (client: string, items: readonly JsonObject[], template = 't') =>
    kept.keep(template, 'tools', { ...PROFILE, capabilities: { experimental: { [client]: {} } } }, items);
  return { saves, keep };
}

test('many kinds of clients at the same time write a list of a template once, and later the others', async () => {
  const { saves, keep } = setUp();
  const items = [{ name: 'a' }];
  for (let client = 0; client < 100; client++) keep(`c${client}`, items);
  keep('c0', items, 'other');
  assert.equal(
    saves.map(({ template }) => template),
    ['t', 'other'],
  );
  saves[0]?.end.resolve();
  await settled();
  keep('c0', items);
  keep('c1', items);
  assert.is(saves.length, 3);
});

test('a list that could not be written is written at the next reading', async () => {
  const { saves, keep } = setUp();
  const items = [{ name: 'a' }];
  keep('c', items);
  saves[0]?.end.reject(new Error('away'));
  await settled();
  keep('c', items);
  assert.is(saves.length, 2);
});

test.run();
