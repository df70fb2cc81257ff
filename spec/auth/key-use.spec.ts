import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { KeyUse } from '../../src/auth/api-keys.ts';
import { suite } from '../helpers/suite.ts';
import { START_MS } from './auth-harness.ts';

const iso = (ms: number): string => new Date(ms).toISOString();

const test = suite('when keys were used');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('is written once a minute, the last use of each key', async () => {
  const { keyUse, written } = made();
  for (let use = 0; use < 100; use += 1) keyUse.used(`key${use % 2}`, START_MS + use);
  mock.timers.tick(59_999);
  assert.equal(written, []);
  mock.timers.tick(1);
  await turns();
  assert.equal(written, [
    new Map([
      ['key0', iso(START_MS + 98)],
      ['key1', iso(START_MS + 99)],
    ]),
  ]);
  mock.timers.tick(600_000);
  await turns();
  assert.is(written.length, 1, 'nothing was used since');
  keyUse.used('key0', START_MS + 700);
  await keyUse.flush();
  assert.equal(written[1], new Map([['key0', iso(START_MS + 700)]]));
});

test('is kept while the database is away, and what is newer wins', async () => {
  const { keyUse, written, database } = made();
  database.isAway = true;
  keyUse.used('a', START_MS);
  keyUse.used('b', START_MS);
  const flushing = keyUse.flush();
  keyUse.used('a', START_MS + 5);
  await flushing;
  database.isAway = false;
  mock.timers.tick(60_000);
  await turns();
  assert.equal(written, [
    new Map([
      ['a', iso(START_MS + 5)],
      ['b', iso(START_MS)],
    ]),
  ]);
});

test('is remembered for 10,000 keys and written at the end', async () => {
  const { keyUse, written } = made();
  for (let key = 0; key < 10_005; key += 1) keyUse.used(`key${key}`, START_MS);
  keyUse.used('key9', START_MS + 1);
  await keyUse.close();
  assert.equal(
    written.map(({ size }) => size),
    Array(100).fill(100),
    'no writing is larger than one answer of a slow database',
  );
  const uses = new Map(written.flatMap((chunk) => [...chunk]));
  assert.is(uses.size, 10_000);
  assert.is(uses.get('key9'), iso(START_MS + 1));
});

test('what was not written yet when the database went away is written later, and asked for once', async () => {
  const { keyUse, written, database } = made();
  for (let key = 0; key < 350; key += 1) keyUse.used(`key${key}`, START_MS);
  database.isAwayAfter = 2;
  await keyUse.flush();
  assert.is(database.asked, 3, 'a database that is away is not asked again and again');
  database.isAwayAfter = Number.POSITIVE_INFINITY;
  await keyUse.flush();
  assert.equal(
    written.map(({ size }) => size),
    [100, 100, 100, 50],
  );
  assert.is(new Set(written.flatMap((chunk) => [...chunk.keys()])).size, 350);
});

function made() {
  const written: ReadonlyMap<string, string>[] = [];
  const database = { isAway: false, asked: 0, isAwayAfter: Number.POSITIVE_INFINITY };
  const touchApiKeys = async (uses: ReadonlyMap<string, string>): Promise<void> => {
    database.asked += 1;
    if (database.isAway || database.asked > database.isAwayAfter) throw new Error('away');
    written.push(uses);
  };
  return { keyUse: new KeyUse({ touchApiKeys }), written, database };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test.run();
