// Tests of the two databases without a server here: on their stand-ins, and on a real server where one is named.

import * as assert from 'uvu/assert';
import { openStore, StoreOpenError } from '../../../src/persistence/open-store.ts';
import { connectOrm, MIGRATIONS_TABLE } from '../../../src/persistence/orm/connection/orm.ts';
import type { Store } from '../../../src/persistence/store.ts';
import { grammarFault } from '../../fixtures/sql/grammar.ts';
import { messageOf, rejects } from '../../helpers/outcome.ts';
import { type Suite, suite } from '../../helpers/suite.ts';
import { parsed } from '../../persistence/connect-options.ts';
import { cipher, everyConformance } from '../../persistence/every-conformance.ts';
import { offline } from '../../persistence/orm/offline.ts';

export const OPTIONS = { cwd: '/', cipher, migrations: 'apply' } as const;

/** The stand-in of the test that runs. */
export interface StandIn {
  readonly kind: 'mssql' | 'oracle';
  readonly url: () => string;
  /** The existing database or service in its URL. */
  readonly databaseName: string;
  /** A quote before a blank, without which the grammar fails. */
  readonly quoted: RegExp;
}

/** Declares the tests in `test`. */
export function standInBehaviour(test: Suite, { kind, url, databaseName, quoted }: StandIn): void {
  everyConformance(test, () => openStore(url(), OPTIONS));

  test('reports a wrong password or database name in one line', async () => {
    const wrong = new URL(url());
    wrong.password = 'hunter2';
    assert.not.match(await messageOf(openStore(wrong.href, OPTIONS), StoreOpenError), 'hunter2');
    const missing = url().replace(`/${databaseName}`, '/ELSEWHERE');
    await rejects(openStore(missing, { ...OPTIONS, migrations: 'require' }), StoreOpenError, 'ELSEWHERE');
  });

  test('has migrations that match the SQL grammar of this database, which detects mistakes', async () => {
    const { database } = await offline(kind);
    const statements = Object.values(await database.migrations()).flat();
    assert.ok(statements.length >= 10);
    for (const sql of statements) assert.is(grammarFault(sql, kind), undefined, sql);
    for (const sql of statements.filter((statement) => statement.startsWith('create'))) {
      const broken = [
        ...[sql.replace(/\)(?=;?$)/, ''), sql.replace('create', 'crate'), sql.replace('(', '')],
        ...[sql.replace(quoted, ' '), sql.replace(/ on | table /, ' ')],
      ];
      for (const mistake of broken) assert.type(grammarFault(mistake, kind), 'string', mistake);
    }
  });
}

/** The conformance suites on the server that the variable names; skipped without it. */
export function onRealServer(name: string, variable: string): void {
  const real = suite(`store on ${name}`, { timeoutMs: 60_000 });
  const url = process.env[variable];
  if (url) everyConformance(real, () => emptiedStore(url));
  else real.skip('all of the above', `no ${name}: set ${variable}, whose stagedoor tables may be dropped`);
  real.run();
}

const tables = [
  ...['templates', 'instances', 'tombstones', 'users', 'api_keys', 'settings', 'revision'],
  ...['audit_log', 'audit_call_blocks', MIGRATIONS_TABLE, 'stagedoor_lock'],
];

/** Drops our tables in the database and opens a store there. */
async function emptiedStore(url: string): Promise<Store> {
  const { database, address } = parsed(url);
  const limits = {
    statementTimeoutMs: 30_000,
    idleTransactionMs: 30_000,
    connectTimeoutMs: 10_000,
    connections: 1,
  };
  const { orm, connection, close } = await connectOrm(database, { address, ...limits });
  for (const table of tables) {
    await connection.execute(`drop table ${orm.em.getPlatform().quoteIdentifier(table)}`).catch(() => {
      // It probably does not exist; if it does, the migrations fail and report it.
    });
  }
  await close();
  return openStore(url, OPTIONS);
}
