// The store on a real MariaDB server.

import { MikroORM, MySqlDriver } from '@mikro-orm/mysql';
import * as assert from 'uvu/assert';
import { ada } from '../../conformance/accounts.ts';
import { mariadb } from '../../helpers/services/services.ts';
import { executeSql } from '../../helpers/services/sql.ts';
import { suite } from '../../helpers/suite.ts';
import { everyConformance } from '../../persistence/every-conformance.ts';
import { serverBehaviour } from './server-behaviour.ts';
import { freshStore, reachable } from './server-stores.ts';

const service = await mariadb();
const test = suite('store on MariaDB', { timeoutMs: 60_000 });
everyConformance(Object.assign(test.needs(service.url, service.skip), test), () => freshStore(service));
serverBehaviour(test, service, {
  endSessions: (database) =>
    `begin not atomic
       declare done int default 0; declare victim bigint;
       declare sessions cursor for select id from information_schema.processlist where db = '${database}';
       declare continue handler for not found set done = 1;
       declare continue handler for 1094 begin end;
       open sessions;
       work: loop
         fetch sessions into victim;
         if done then leave work; end if;
         execute immediate concat('kill ', victim);
       end loop;
     end`,
});

const needed = test.needs(service.url, service.skip);
/** A backslash before a quote: escaped where backslashes escape, and an injection where they do not. */
const hostile = String.raw`\\' union select 1; drop table templates; -- \\`;

needed('is safe from injection on a server with NO_BACKSLASH_ESCAPES and ANSI_QUOTES', async () => {
  const { url } = reachable(service);
  const mode = await globalMode(url);
  await executeSql(url, `set global sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'`);
  try {
    const store = await freshStore(service);
    await store.accounts.insertUser({ ...ada, email: hostile, passwordHash: hostile });
    await store.templates.save({ name: 'demo', loadBalancer: {} });
    const [user] = await store.accounts.findUsers([ada.id]);
    assert.equal([user?.email, user?.passwordHash], [hostile, hostile]);
    for (const name of [hostile, `' or ''='`, `\\' or 1=1 -- `])
      assert.is(await store.accounts.findUserByName(name), undefined);
    assert.is((await store.templates.list()).length, 1);
    await store.close();
  } finally {
    await executeSql(url, `set global sql_mode = '${mode}'`);
  }
});

async function globalMode(url: string): Promise<string> {
  const orm = new MikroORM({
    driver: MySqlDriver,
    entities: [],
    discovery: { warnWhenNoEntities: false },
    clientUrl: url,
    ensureDatabase: false,
  });
  try {
    const [row] = await orm.em.getConnection().execute('select @@global.sql_mode as mode');
    return String(row?.mode);
  } finally {
    await orm.close(true);
  }
}

test.run();
