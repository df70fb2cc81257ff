// Statements on a new connection.

import * as assert from 'uvu/assert';
import { runOn } from '../../src/persistence/mikro-orm-patches.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('new connection');

test('runs the statement as it is, and fails with it', async () => {
  const queries: unknown[] = [];
  await runOn({ executeQuery: async (query: unknown) => queries.push(query) }, 'set x = 1');
  assert.equal(queries, [{ sql: 'set x = 1', parameters: [] }]);
  const refused = new Error('refused');
  const refusing = { executeQuery: () => Promise.reject(refused) };
  assert.is(await runOn(refusing, 'set x = 1').catch((thrown: unknown) => thrown), refused);
});

test('never takes silence for success', async () => {
  for (const nothing of [undefined, null, {}, { executeQuery: 1 }])
    assert.instance(await runOn(nothing, 'set x = 1').catch((thrown: unknown) => thrown), TypeError);
});

test.run();
