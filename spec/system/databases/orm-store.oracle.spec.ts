// The store on Oracle: always through MikroORM to a stand-in for the pool of its driver (its limits:
// fixtures/oracle/pool.ts), and on a real server when TEST_ORACLE_URL names one.

import * as assert from 'uvu/assert';
import { openStore } from '../../../src/persistence/open-store.ts';
import { installOracle, type OracleStandIn } from '../../fixtures/oracle/pool.ts';
import { endOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { OPTIONS, onRealServer, standInBehaviour } from './stand-in-behaviour.ts';

const test = suite('store on a stand-in for Oracle', { timeoutMs: 30_000 });
let server: OracleStandIn;
test.before.each(() => {
  server = installOracle();
});
test.after.each(() => {
  server.close();
  // Statements that are not Oracle SQL, or unknown to the stand-in: code may have caught the error, so it is checked here.
  assert.equal(server.faults, []);
});

standInBehaviour(test, { kind: 'oracle', url: () => server.url, databaseName: 'FREEPDB1', quoted: /" / });

test('reports DATABASE_UNAVAILABLE while nothing listens, and recovers by itself', async () => {
  const store = await openStore(server.url, OPTIONS);
  server.setAway(true);
  assert.is(await endOf(store.revision()), 'DATABASE_UNAVAILABLE');
  server.setAway(false);
  await store.templates.save({ name: 'demo', loadBalancer: {} });
  assert.is((await store.templates.list()).length, 1);
  await store.close();
});

test.run();
onRealServer('Oracle', 'TEST_ORACLE_URL');
