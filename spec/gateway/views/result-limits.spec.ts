// `result_bytes` of a view: a text is cut, and whatever else a server adds to its result counts, too.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { serving } from '../../helpers/backends/function-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('results of a view that are too large');
const MOST = 2_000;
let gateway: Gateway;
let result: object;

test.before(async () => {
  gateway = await createGateway();
  const handler = serving({ read: () => result as never });
  await gateway.register('t', { id: 'one', handler }, { waitMs: 5_000 });
  await gateway.views.put({
    id: 'desk',
    from: [{ template: 't' }],
    limits: { read: { result_bytes: MOST } },
  });
});
test.after(() => gateway.close({ graceMs: 0 }));

const text = (length: number, more: object = {}) => ({ type: 'text', text: 'x'.repeat(length), ...more });

async function answer(given: object): Promise<string> {
  result = given;
  return JSON.stringify((await gateway.call('desk', 'read')).result);
}

test('keep the beginning of their texts', async () => {
  const shown = await answer({ content: [text(1_500), text(1_500)], isError: false, _meta: { a: 1 } });
  assert.match(shown, '[1072 of 3000 bytes are left out]');
  assert.match(shown, '"_meta":{"a":1}');
});

test('keep less of their texts the more else they have', async () => {
  for (const more of [10, 1_000, 1_800]) {
    const shown = await answer({ content: [text(1_990)], _meta: { more: 'y'.repeat(more) } });
    assert.ok(shown.length < MOST + 100, `${shown.length} bytes`);
  }
});

test('say nothing about bytes that are left out where none are', async () => {
  const quotes = { type: 'text', text: '"'.repeat(1_500) }; // two bytes each in JSON
  assert.is(await answer({ content: [quotes] }), JSON.stringify({ content: [quotes] }));
});

test('keep few of many short texts, each of which takes more than its characters', async () => {
  const shown = await answer({ content: Array(10_000).fill(text(1)) });
  assert.match(shown, 'of 10000 bytes are left out]');
  assert.ok(shown.length < MOST + 100, `${shown.length} bytes`);
  assert.ok((await answer({ content: Array(10_000).fill(text(0)) })).length < 100);
});

test('are an error where something else takes the bytes', async () => {
  const large = { large: 'y'.repeat(100_000) };
  for (const given of [
    { content: [text(10)], _meta: large },
    { content: [text(10)], ...large },
    { content: [text(10, { _meta: large })] },
    { content: [text(10, { annotations: large })] },
    { content: Array(5_000).fill(text(1, { _meta: { n: 'y'.repeat(20) } })) },
  ])
    assert.match(await answer(given), 'larger than the 2000 bytes');
});

test.run();
