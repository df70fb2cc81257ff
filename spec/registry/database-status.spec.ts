// Whether the database answers: asked one at a time, not more often than once a second, with a bounded wait.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type DatabaseState, databaseStatus } from '../../src/registry/database-status.ts';
import { suite } from '../helpers/suite.ts';
import { simulateTime } from '../helpers/time/simulated-time.ts';

const test = suite('database status');
const NEVER = new Promise<never>(() => {});
let pings = 0;
let ping: () => Promise<void> = async () => {};
let status: () => Promise<DatabaseState>;

simulateTime(test, () => {
  pings = 0;
  ping = async () => {};
  const store = {
    ping: () => {
      pings += 1;
      return ping();
    },
  };
  status = databaseStatus(store, () => Date.now());
});

test('pings once for all callers, and not again within a second', async () => {
  const flood = () => Promise.all(Array.from({ length: 1_000 }, () => status()));
  assert.equal(new Set(await flood()), new Set(['connected']));
  mock.timers.tick(999);
  await flood();
  assert.is(pings, 1);
  mock.timers.tick(1);
  await flood();
  assert.is(pings, 2);
});

test('is disconnected when a ping fails, and connected when one succeeds again', async () => {
  ping = () => Promise.reject(new Error('connection refused'));
  assert.is(await status(), 'disconnected');
  ping = async () => {};
  assert.is(await status(), 'disconnected', 'within the second');
  mock.timers.tick(1_000);
  assert.is(await status(), 'connected');
});

test('waits 2 s for a database that does not answer, and pings it again later', async () => {
  ping = () => NEVER;
  const first = status();
  await turn();
  mock.timers.tick(1_999);
  assert.is(await Promise.race([first, turn('open')]), 'open');
  const joined = status();
  mock.timers.tick(1);
  assert.equal([await first, await joined, pings], ['disconnected', 'disconnected', 1]);
  ping = async () => {};
  mock.timers.tick(1_000);
  assert.is(await status(), 'connected');
});

test.run();
