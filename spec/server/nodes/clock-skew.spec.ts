// The comparison of the clocks of this machine and of the database server.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { watchClockSkew } from '../../../src/server/nodes/clock-skew.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('clock skew');
const NOW_MS = Date.parse('2030-05-06T07:08:09Z');
const HOUR_MS = 3_600_000;

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }));
test.after.each(() => mock.timers.reset());

test('warns at the start and once an hour, while the clocks differ by more than 30 s', async () => {
  let skewMs = -100_000;
  const { warnings, watch } = watching(async () => NOW_MS + skewMs);
  await pass(1);
  const differ = 'the clocks of this node and of the database differ';
  assert.equal(warnings.splice(0), [[{ skew_s: 100, node: 'ahead' }, differ]]);
  await pass(HOUR_MS - 2);
  assert.equal(warnings, []);
  skewMs = 30_001;
  await pass(2);
  assert.equal(warnings.splice(0), [[{ skew_s: 30, node: 'behind' }, differ]]);
  skewMs = 30_000;
  await pass(HOUR_MS);
  assert.equal(warnings, [], 'two nodes that agree so with the database differ by 60 s at most');
  skewMs = 90_000;
  watch.unsubscribe();
  await pass(HOUR_MS);
  assert.equal(warnings, []);
});

test('warns when the database does not answer, and asks again an hour later', async () => {
  const answers = [
    Promise.reject(databaseUnavailable(new Error('refused'))),
    Promise.resolve(NOW_MS + 61_000),
  ];
  const { warnings, watch } = watching(() => answers.shift() ?? Promise.resolve(undefined));
  await pass(1);
  const unread = 'the clock of the database cannot be read';
  assert.equal(warnings.splice(0), [[{ reason: 'DATABASE_UNAVAILABLE' }, unread]]);
  await pass(HOUR_MS);
  assert.equal(
    warnings.splice(0).map(([fields]) => fields),
    [{ skew_s: 61, node: 'behind' }],
  );
  await pass(HOUR_MS);
  assert.equal(warnings, [], 'a file has no clock');
  watch.unsubscribe();
});

function watching(serverTimeMs: () => Promise<number | undefined>) {
  const warnings: unknown[][] = [];
  const log = { warn: (...words: unknown[]) => void warnings.push(words) };
  return { warnings, watch: watchClockSkew({ serverTimeMs }, log, () => NOW_MS) };
}

async function pass(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await passTurns(10);
}

test.run();
