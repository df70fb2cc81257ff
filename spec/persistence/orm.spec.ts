// One pool of connections and its end.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { driverErrorOf } from '../../src/persistence/store-errors.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { connect } from './connect-options.ts';

const test = suite('ORM');

test('knows when its database last answered', async () => {
  const { connection, lastAnswerAt, close } = await connect('sqlite://');
  const heardAt = lastAnswerAt();
  await connection.execute('select nonsense').catch(() => undefined);
  assert.is(lastAnswerAt(), heardAt);
  const askedAt = performance.now();
  await connection.execute('select 1');
  assert.ok(lastAnswerAt() >= askedAt && lastAnswerAt() <= performance.now());
  await close();
});

for (const end of ['close', 'destroy'] as const) {
  test(`opens no connection for a statement after ${end}`, async () => {
    const { connection, ...orm } = await connect('sqlite://');
    await orm[end]();
    await turn();
    const refused = await thrownBy(connection.execute('select 1'));
    assert.is(driverErrorOf(refused)?.code, 'ECONNRESET', 'as if the database were away');
  });
}

test.run();
