// One pool of connections and its end.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { connectOrm } from '../../../../src/persistence/orm/connection/orm.ts';
import { driverErrorOf } from '../../../../src/persistence/store-errors.ts';
import { thrownBy } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';
import { connect, connectOptions, parsed } from '../../connect-options.ts';

const test = suite('ORM');

for (const end of ['close', 'destroy'] as const) {
  test(`opens no connection for a statement after ${end}`, async () => {
    const { connection, ...orm } = await connect('sqlite://');
    await orm[end]();
    await turn();
    const refused = await thrownBy(connection.execute('select 1'));
    assert.is(driverErrorOf(refused)?.code, 'ECONNRESET', 'as if the database were away');
  });
}

test('opens nothing for a signal that has aborted while it began', async () => {
  const stop = new AbortController();
  const reason = new Error('the start was cancelled');
  stop.abort(reason);
  const { database } = parsed('sqlite://');
  const opening = connectOrm(database, { ...connectOptions('sqlite://'), signal: stop.signal });
  assert.is(await thrownBy(opening), reason);
});

test.run();
