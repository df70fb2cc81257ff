// Operations on a PostgreSQL server that is slow or silent. The rest: spec/persistence/orm/connection/orm-operations.spec.ts.

import * as assert from 'uvu/assert';
import { postgresql as postgresqlDatabase } from '../../../src/persistence/databases/postgresql.ts';
import { connectOrm } from '../../../src/persistence/orm/connection/orm.ts';
import { OrmOperations } from '../../../src/persistence/orm/connection/orm-operations.ts';
import { migrate } from '../../../src/persistence/orm/migrate.ts';
import { serverLine } from '../../helpers/network/server-line.ts';
import { errorSummary } from '../../helpers/outcome.ts';
import { freshDatabase, postgresql } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions } from '../../persistence/connect-options.ts';
import { reachable } from './server-stores.ts';

const test = suite('ORM session, on a server', { timeoutMs: 30_000 });

const service = await postgresql();
const needed = test.needs(service.url, service.skip);
const ends: (() => Promise<unknown>)[] = [];
test.after.each(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

needed(
  'keeps the pool while the server answers: a slow change affects no other, and is not made later',
  async () => {
    const { session } = await opened({ timeoutMs: 700 });
    let isOver = false;
    const insert = (lasts: () => boolean) =>
      session.write(async (em, { settings }) => {
        await em.insert(settings, { name: 'n', value: 'v' });
        while (lasts()) await em.execute('select 1');
      });
    const busy = errorSummary(insert(() => !isOver));
    const slowly = (seconds: number) =>
      session.run((em) => em.execute(`select pg_sleep(${seconds}), 1 as one`));
    const other = slowly(0.5).then(() => slowly(0.4));
    assert.equal(await busy, ['DATABASE_UNAVAILABLE', 'no', 5]);
    isOver = true;
    await insert(() => false);
    assert.is((await other)[0]?.one, 1);
  },
);

needed('reports whether a failed change may have been made, and `no` for a failed query', async () => {
  const { session, line } = await opened({ timeoutMs: 500 });
  const insert = (name: string, isLast: boolean) =>
    errorSummary(
      session.write(async (em, { settings }) => {
        await em.insert(settings, { name, value: 'v' });
        // The next statement is the commit, or a query.
        line.silence();
        if (!isLast) await em.count(settings);
      }),
    );
  assert.equal(await insert('before', false), ['DATABASE_UNAVAILABLE', 'no', 5]);
  await line.mend();
  assert.is(await session.run((em, { settings }) => em.count(settings)), 0);
  assert.equal(await insert('commit', true), ['DATABASE_UNAVAILABLE', 'unknown', undefined]);
  // The server is still silent, now also to new connections: nothing is sent.
  const change = session.write((em, { settings }) => em.nativeDelete(settings, { name: 'commit' }));
  const asked = session.run((em, { settings }) => em.count(settings));
  const found = await Promise.all([change, asked].map(errorSummary));
  assert.equal(found, Array(2).fill(['DATABASE_UNAVAILABLE', 'no', 5]));
  await line.mend();
});

needed('closes at once when a transaction has lost its connection', async () => {
  const { session, line } = await opened({ timeoutMs: 5_000 });
  const lost = session.write(async (em) => {
    await em.execute('select 1');
    await line.close();
    await em.execute('select 1');
  });
  assert.equal(await errorSummary(lost), ['DATABASE_UNAVAILABLE', 'no', 5]);
  const startedAt = performance.now();
  await session.close();
  const tookMs = performance.now() - startedAt;
  assert.ok(tookMs < 4_000, `took ${tookMs} ms`);
});

/** A session behind a connection that can be cut, until the test has ended. */
async function opened({ timeoutMs }: { readonly timeoutMs: number }) {
  const { url, drop } = await freshDatabase(reachable(service));
  ends.push(drop);
  const line = await serverLine(url);
  ends.push(() => line.close());
  const reconnect = () => connectOrm(postgresqlDatabase, connectOptions(line.url));
  const orm = await reconnect();
  await migrate(postgresqlDatabase, orm, 5_000);
  const session = new OrmOperations({ database: postgresqlDatabase, orm, timeoutMs, reconnect });
  ends.push(() => session.close());
  return { session, line };
}

test.run();
