// The store on a real PostgreSQL server.

import { inspect } from 'node:util';
import * as assert from 'uvu/assert';
import { openStore, StoreOpenError } from '../../../src/persistence/open-store.ts';
import { ada } from '../../conformance/accounts.ts';
import { serverLine } from '../../helpers/network/server-line.ts';
import { thrownBy } from '../../helpers/outcome.ts';
import { postgresql } from '../../helpers/services/services.ts';
import { executeSql } from '../../helpers/services/sql.ts';
import { suite } from '../../helpers/suite.ts';
import { everyConformance } from '../../persistence/every-conformance.ts';
import { serverBehaviour } from './server-behaviour.ts';
import { codesOf, fatesOfChanges, freshStore, reachable, UNDONE } from './server-stores.ts';

const service = await postgresql();
const test = suite('store on PostgreSQL', { timeoutMs: 60_000 });
everyConformance(Object.assign(test.needs(service.url, service.skip), test), () => freshStore(service));
serverBehaviour(test, service, {
  endSessions: (database) =>
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}' and pid <> pg_backend_pid()`,
});

const needed = test.needs(service.url, service.skip);

needed('reports DATABASE_UNAVAILABLE while the database accepts no connections, and recovers', async () => {
  const store = await freshStore(service);
  const name = new URL(store.url).pathname.slice(1);
  const { url } = reachable(service);
  const end = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`;
  try {
    await executeSql(url, `alter database ${name} allow_connections false`);
    await executeSql(url, end);
    // One call for every connection of the pool, and for those that have to be opened.
    const codes = await codesOf(() => store.templates.list(), 15);
    assert.equal([...new Set(codes)], ['DATABASE_UNAVAILABLE']);
    assert.equal(await fatesOfChanges(store), UNDONE);
    await executeSql(url, `alter database ${name} allow_connections true`);
    assert.equal(await store.templates.list(), []);
  } finally {
    await store.close();
  }
});

needed('fails to open within a bounded time, at whatever moment the server goes silent', async () => {
  const store = await freshStore(service);
  // From before the first byte to long after the last one.
  const moments = [0, 40, 80, 120, 160, 240, 320, 500, 5_000];
  const outcomes = await Promise.all(
    moments.map(async (silentInMs) => {
      const line = await serverLine(store.url, { delayMs: 15 });
      const timer = setTimeout(line.silence, silentInMs);
      try {
        const opened = await openStore(line.url, { cwd: '.', migrations: 'require' });
        await opened.close();
        return 'opened';
      } catch (error) {
        return error instanceof StoreOpenError ? 'refused' : error;
      } finally {
        clearTimeout(timer);
        await line.close();
      }
    }),
  );
  await store.close();
  const found = outcomes.filter((outcome) => outcome !== 'opened' && outcome !== 'refused');
  assert.equal(found, []);
  assert.equal([outcomes[0], outcomes.at(-1)], ['refused', 'opened']);
});

needed('reports no value of a row that the database refuses', async () => {
  const store = await freshStore(service);
  try {
    await executeSql(
      store.url,
      `alter table users add constraint planted check (email <> 'planted@localhost')`,
    );
    const user = { ...ada, email: 'planted@localhost', passwordHash: '$2b$12$planted-hash' };
    const thrown = await thrownBy(store.accounts.insertUser(user));
    assert.instance(thrown, Error);
    assert.not.match(inspect(thrown, { depth: 9, showHidden: true }), 'planted-hash');
    assert.match(String(thrown), /23514\)$/);
  } finally {
    await store.close();
  }
});

test.run();
