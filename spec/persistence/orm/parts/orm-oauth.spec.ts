// Which rows of sign-ins and connections are on the disk when a change of them is answered. What the rows are: the suite of stores.

import * as assert from 'uvu/assert';
import { sqlite } from '../../../../src/persistence/databases/sqlite.ts';
import type { OAuthKind } from '../../../../src/persistence/oauth-store.ts';
import { connectOrm } from '../../../../src/persistence/orm/connection/orm.ts';
import { OrmOperations } from '../../../../src/persistence/orm/connection/orm-operations.ts';
import { migrate } from '../../../../src/persistence/orm/migrate.ts';
import { ormOAuth } from '../../../../src/persistence/orm/parts/orm-oauth.ts';
import { folderOfEach } from '../../../helpers/folder.ts';
import { suite } from '../../../helpers/suite.ts';
import { connectOptions } from '../../connect-options.ts';

const test = suite('rows of sign-ins in a file', { timeoutMs: 30_000 });
const folder = folderOfEach(test);

test('a registered client and a connection are on the disk once they are answered, rows of one sign-in are not', async () => {
  const orm = await connectOrm(sqlite, connectOptions(`sqlite:////${folder('x.db')}`));
  await migrate(sqlite, orm, 5_000);
  let times = 0;
  const synchronize = async () => {
    times += 1;
  };
  const database = { ...sqlite, synchronize };
  const operations = new OrmOperations({ database, orm, timeoutMs: 5_000, file: folder('x.db') });
  const store = ormOAuth(operations, undefined);
  const timesOf = async (work: () => Promise<unknown>) => {
    const before = times;
    await work();
    return times - before;
  };
  const ofKind = async (kind: OAuthKind) => {
    const row = { kind, key: '0a', createdAt: '2026-11-30T00:00:00.000Z', value: '{}' };
    const save = () => store.save(row);
    return [await timesOf(save), await timesOf(save), await timesOf(() => store.delete(kind, ['0a']))];
  };
  for (const kind of ['client', 'identity', 'connection', 'backend', 'own-client', 'key'] as const)
    assert.equal(await ofKind(kind), [1, 1, 1], kind);
  for (const kind of ['grant', 'connecting', 'interaction'] as const)
    assert.equal(await ofKind(kind), [0, 0, 0], kind);
  await operations.close();
});

test.run();
