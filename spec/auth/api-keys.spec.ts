// API keys: what they are made of, and that their last use is written.

import { hash } from 'node:crypto';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { isSecretOf, KeyUse, newKey, parseKey } from '../../src/auth/api-keys.ts';
import { suite } from '../helpers/suite.ts';
import { START_MS } from './auth-harness.ts';

const test = suite('API keys');

test('a new key is told apart by its id and kept as the SHA-256 of its secret', () => {
  const { key, id, secretHash } = newKey();
  assert.match(key, /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  const parts = parseKey(key);
  assert.is(parts?.id, id);
  assert.is(hash('sha256', parts?.secret ?? ''), secretHash);
  assert.not.ok(secretHash.includes(parts?.secret ?? ''));
});

test('any other form is no key', () => {
  const { key } = newKey();
  const others = [
    ...['', 'sd_', key.slice(1), key.slice(0, -1), `${key}A`, `${key}\n`, ` ${key}`, key.toUpperCase()],
  ];
  const foreign = [
    key.replace('sd_', 'sk_'),
    key.replace(/.$/, '='),
    key.replace(/.$/, 'é'),
    key.replace('_', '-'),
  ];
  for (const text of [...others, ...foreign]) assert.is(parseKey(text), undefined, JSON.stringify(text));
});

test('only the secret itself belongs to its hash, and a broken hash belongs to nobody', () => {
  const { key, secretHash } = newKey();
  const secret = parseKey(key)?.secret ?? '';
  assert.is(isSecretOf(secret, secretHash), true);
  assert.is(isSecretOf(parseKey(newKey().key)?.secret ?? '', secretHash), false);
  for (const broken of ['', 'zz', secretHash.slice(2), `${secretHash}00`])
    assert.is(isSecretOf(secret, broken), false, broken);
});

const iso = (ms: number): string => new Date(ms).toISOString();

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('the last use is written once a minute, the last use of each key', async () => {
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

test('the last use is kept while the database is away, and what is newer wins', async () => {
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

test('the last use is remembered for 10,000 keys and written at the end', async () => {
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

test('a last use that was not written yet when the database went away is written later, and asked for once', async () => {
  const { keyUse, written, database } = made();
  for (let key = 0; key < 350; key += 1) keyUse.used(`key${key}`, START_MS);
  database.isAwayAfter = 2;
  await keyUse.flush();
  assert.is(database.asked, 3, 'a database that is away is not asked again and again');
  database.isAwayAfter = Number.POSITIVE_INFINITY;
  await keyUse.flush();
  const found = written.map(({ size }) => size);
  assert.equal(found, [100, 100, 100, 50]);
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
