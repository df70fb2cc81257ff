// The store on Oracle: everywhere through MikroORM to a stand-in for the pool of its driver (what that proves and what
// not: fixtures/oracle/pool.ts), and on a real server when TEST_ORACLE_URL names one.

import * as assert from 'uvu/assert';
import { openStore, StoreOpenError } from '../../../src/persistence/open.ts';
import { installOracle, type OracleStandIn } from '../../fixtures/oracle/pool.ts';
import { grammarFault } from '../../fixtures/sql/grammar.ts';
import { suite } from '../../helpers/suite.ts';
import { emptiedStore } from '../../persistence/emptied-store.ts';
import { cipher, everyConformance } from '../../persistence/every-conformance.ts';
import { keepsHostileTexts } from '../../persistence/hostile-texts.ts';
import { migrationStatements } from '../../persistence/migration-statements.ts';

const options = { cwd: '/', cipher, migrations: 'apply' } as const;

const test = suite('store on a stand-in for Oracle', { timeoutMs: 30_000 });
let server: OracleStandIn;
test.before.each(() => {
  server = installOracle();
});
test.after.each(() => {
  server.close();
  // No SQL of Oracle, or nothing the stand-in knows: somebody may have caught the error, so it is looked for here.
  assert.equal(server.faults, []);
});

everyConformance(test, () => openStore(server.url, options));

test('no statement holds what the driver would take for a variable, or a text of more than 4,000 bytes', async () => {
  const store = await openStore(server.url, options);
  await keepsHostileTexts(store);
  await store.saveTemplate({ name: 'demo', loadBalancer: {} });
  for (const sql of server.statements) {
    for (const [literal] of sql.matchAll(/'[^']*(?:''[^']*)*'/g)) {
      assert.ok(Buffer.byteLength(literal) <= 4_002, sql.slice(0, 200));
    }
  }
  assert.ok(server.statements.some((sql) => sql.includes(`('$' || '2b$' || '12$aaa`)));
  await store.close();
});

test('says that it is away while nobody listens, and recovers by itself', async () => {
  const store = await openStore(server.url, options);
  server.setAway(true);
  const failure = await store.revision().catch((thrown: unknown) => thrown);
  assert.match(String((failure as { code?: string }).code), 'DATABASE_UNAVAILABLE');
  server.setAway(false);
  await store.saveTemplate({ name: 'demo', loadBalancer: {} });
  assert.is((await store.listTemplates()).length, 1);
  await store.close();
});

test('says in one line what is wrong with the password or the service', async () => {
  const wrong = new URL(server.url);
  wrong.password = 'hunter2';
  const password = await openStore(wrong.href, options).catch((thrown: unknown) => thrown);
  assert.instance(password, StoreOpenError);
  assert.not.match(String(password), /hunter2|\n/);
  const missing = server.url.replace('/FREEPDB1', '/ELSEWHERE');
  const name = await openStore(missing, options).catch((thrown: unknown) => thrown);
  assert.instance(name, StoreOpenError);
  assert.match(String(name), 'ELSEWHERE');
});

test('the migrations are SQL of Oracle, and the grammar would say so if they were not', async () => {
  const statements = await migrationStatements('oracle', server.url, 'up');
  assert.ok(statements.length >= 10);
  for (const sql of statements) assert.is(grammarFault(sql, 'oracle'), undefined, sql);
  for (const sql of statements.filter((statement) => statement.startsWith('create'))) {
    const broken = [
      sql.replace(/\)(?=;?$)/, ''),
      sql.replace('create', 'crate'),
      sql.replace('(', ''),
      sql.replace(/" /, ' '),
      sql.replace(/ on | table /, ' '),
    ];
    for (const mistake of broken) assert.type(grammarFault(mistake, 'oracle'), 'string', mistake);
  }
});

test.run();

const url = process.env.TEST_ORACLE_URL;
const real = suite('store on Oracle', { timeoutMs: 60_000 });
if (url) everyConformance(real, () => emptiedStore(url));
else {
  real.skip(
    'all of the above',
    'no Oracle: set TEST_ORACLE_URL to a user whose stagedoor tables may be dropped',
  );
}
real.run();
