import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { modernHarness, outcomeOf } from './modern-harness.ts';

const test = suite('modern cursors');

const page = { tools: [{ name: 'x' }], resultType: 'complete', ttlMs: 5, cacheScope: 'public' };

test('the next page comes from the instance that gave the cursor', async () => {
  for (const cursor of ['page-2', '', 'grüße']) {
    const harness = modernHarness();
    const { nextCursor, ...rest } = await harness.call(
      'tools/list',
      {},
      { ...page, nextCursor: cursor },
      'b',
    );
    assert.equal(rest, page);
    assert.match(String(nextCursor), /^sd1\./);
    await harness.send('tools/list', { cursor: nextCursor ?? '' });
    const found = [harness.backends.last.params.cursor, harness.backends.last.options.instanceId];
    assert.equal(found, [cursor, 'b']);
  }
});

test('every list has cursors, also that of a legacy backend', async () => {
  const harness = modernHarness();
  for (const method of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']) {
    const { nextCursor, resultType, ttlMs } = await harness.call(method, {}, { items: [], nextCursor: 'c' });
    assert.equal([resultType, ttlMs], ['complete', 0]);
    await harness.send(method, { cursor: nextCursor ?? '' });
    assert.is(harness.backends.last.params.cursor, 'c');
  }
});

test('a list without one stays as it is', async () => {
  const harness = modernHarness();
  for (const result of [page, { ...page, tools: [{ name: 'nextCursor' }] }, { ...page, nextCursor: null }]) {
    assert.equal(await harness.call('tools/list', {}, result), result);
  }
  const named = { ...page, tools: [{ name: 'x', nextCursor: 'inside' }] };
  assert.equal(await harness.call('tools/list', {}, named), named);
});

test('a cursor is refused for another list, owner or path, when it was changed, and after an hour', async () => {
  mock.timers.enable({ apis: ['Date'] });
  try {
    const harness = modernHarness();
    const { nextCursor } = await harness.call('tools/list', {}, { ...page, nextCursor: 'c' });
    const cursor = String(nextCursor);
    const replies = [
      harness.send('tools/list', { cursor: '' }),
      harness.send('tools/list', { cursor: 'c' }),
      harness.send('tools/list', { cursor: 7 }),
      harness.send('tools/list', { cursor: null }),
      harness.send('tools/list', { cursor: `${cursor}A` }),
      harness.send('prompts/list', { cursor }),
      harness.send('tools/list', { cursor }, { owner: 'bob' }),
      harness.send('tools/list', { cursor }, { template: 'u' }),
    ];
    for (const reply of await Promise.all(replies)) assert.is(outcomeOf(reply), '200 -32602');
    mock.timers.tick(60 * 60_000);
    assert.is(outcomeOf(await harness.send('tools/list', { cursor })), '200 -32602');
    assert.is(harness.backends.exchanges.length, 1);
  } finally {
    mock.timers.reset();
  }
});

test('a cursor that is too long to carry ends the list', async () => {
  const harness = modernHarness();
  for (const length of [70_000, 8 * 1024]) {
    const result = await harness.call('tools/list', {}, { ...page, nextCursor: 'x'.repeat(length) });
    assert.equal(result, page);
  }
  assert.is(outcomeOf(await harness.send('tools/list', { cursor: 'x'.repeat(8 * 1024 + 1) })), '200 -32602');
});

test.run();
