import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Redis } from 'ioredis';
import * as assert from 'uvu/assert';
import type { SharedCounter } from '../../../src/auth/limits/rate-limiter.ts';
import { openRedisCounter } from '../../../src/auth/limits/redis-counter.ts';
import { stoppedClock } from '../../auth/auth-harness.ts';
import { runCommand } from '../../cli/commands/against-gateway.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { serverLine } from '../../helpers/network/server-line.ts';
import { redis } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';

const { url = '', skip } = await redis();

const BACK = 'Redis answers again: rate limits are shared with the other gateways';
const test = suite('the Redis rate counter', { timeoutMs: 20_000 });
const withRedis = test.needs(url, skip);
const folder = folderOfEach(test);

withRedis('shares one window between two gateways, which starts with the first request', async () => {
  const one = await opened(url);
  const other = await opened(url);
  const key = randomUUID();
  const first = await one.counter.add(key, 1, 10);
  assert.ok(first);
  assert.is(first.count, 1);
  assert.ok(first.endsInMs > 3_590_000 && first.endsInMs <= 3_600_000);
  const second = await other.counter.add(key, 4, 10);
  assert.ok(second);
  assert.is(second.count, 5);
  assert.ok(second.endsInMs <= first.endsInMs);
  one.close();
  other.close();
  assert.equal([...one.warnings, ...other.warnings], []);
});

withRedis('counts nothing for a request over the limit, also when many are concurrent', async () => {
  const one = await opened(url);
  const other = await opened(url);
  const key = randomUUID();
  const counts = async (count: number) => (await one.counter.add(key, count, 5))?.count;
  assert.equal([await counts(6), await counts(3), await counts(3), await counts(2)], [6, 3, 6, 5]);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => (index % 2 ? one : other).counter.add(`${key}-2`, 2, 9)),
  );
  assert.is(answers.filter((answer) => answer !== undefined && answer.count <= 9).length, 4);
  // The window ends right after a refusal: the next one has its whole limit, and no more.
  const redis = new Redis(url);
  assert.is(await redis.del(`stagedoor:limit:${key}`), 1);
  assert.equal([await counts(4), await counts(2), await counts(1), await counts(1)], [4, 6, 5, 6]);
  redis.disconnect();
  one.close();
  other.close();
  assert.equal([...one.warnings, ...other.warnings], []);
});

withRedis('does not wait while Redis is gone, logs a line a minute, and reconnects by itself', async () => {
  const line = await serverLine(url);
  const { counter, clock, warnings, close } = await opened(line.url);
  const key = randomUUID();
  assert.is((await counter.add(key, 1, 10))?.count, 1);
  await line.cut();
  assert.is(await counter.add(key, 1, 10), undefined);
  for (let request = 0; request < 2_000; request += 1) assert.is(await counter.add(key, 1, 10), undefined);
  assert.equal(texts(warnings), ['Redis does not answer: rate limits are counted without it']);
  clock.pass(59_999);
  await counter.add(key, 1, 10);
  assert.is(warnings.length, 1);
  clock.pass(1);
  await counter.add(key, 1, 10);
  assert.is(warnings.length, 2);
  await line.mend();
  const back = await countsAgain(counter, key);
  assert.is(back?.count, 2, 'what was counted meanwhile stayed here');
  assert.equal(texts(warnings.slice(2)), [BACK]);
  close();
  await line.close();
});

withRedis('delays requests briefly, and only once, when Redis accepts commands without answers', async () => {
  const line = await serverLine(url);
  const { counter, warnings, close } = await opened(line.url);
  const key = randomUUID();
  assert.is((await counter.add(key, 1, 10))?.count, 1);
  line.silence();
  const surprises: Error[] = [];
  const note = (surprise: Error) => void surprises.push(surprise);
  process.on('warning', note);
  await Promise.all(Array.from({ length: 20 }, () => counter.add(key, 1, 10)));
  for (let request = 0; request < 2_000; request += 1) assert.is(await counter.add(key, 1, 10), undefined);
  assert.is(warnings.length, 1);
  assert.equal(warnings[0]?.[0], { reason: 'no answer within 250 ms' });
  process.off('warning', note);
  assert.equal(surprises, [], 'the connection is closed once');
  await line.cut();
  await line.mend();
  assert.ok(await countsAgain(counter, key));
  close();
  await line.close();
});

withRedis(
  'is reached by doctor, which names the fault of a wrong password without the password',
  async () => {
    const foundFor = async (at: string): Promise<string> => {
      const { out } = await runCommand(
        ['doctor', '--json'],
        { GATEWAY_REDIS_URL: at, MCP_GATEWAY_PORT: '0' },
        folder(),
      );
      assert.not.match(out, /hidden/);
      const { checks } = JSON.parse(out) as { checks: { check: string; status: string; text: string }[] };
      return checks
        .flatMap(({ check, status, text }) => (check === 'redis' ? `${status} ${text}` : []))
        .join();
    };
    const { host } = new URL(url);
    assert.is(await foundFor(url), `ok Redis answers at ${host}`);
    const wrong = new URL(url);
    wrong.username = 'nobody';
    wrong.password = 'hidden';
    assert.is(await foundFor(wrong.href), `warn Redis at ${host}: WRONGPASS`);
  },
);

test('warns at the start when Redis is not reachable, and does not fail', async () => {
  const line = await serverLine('redis://127.0.0.1:1');
  await line.cut();
  const { counter, warnings, close } = await opened(line.url);
  assert.is(warnings.length, 1);
  assert.is(await counter.add('key', 1, 10), undefined);
  close();
  assert.is(warnings.length, 1);
});

test('an answer that is no count counts as none', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const commands = String(data).match(/^\*\d/gm) ?? [];
      socket.write('+OK\r\n'.repeat(commands.length));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { counter, warnings, close } = await opened(`redis://127.0.0.1:${Object(server.address()).port}`);
  assert.is(await counter.add(randomUUID(), 1, 10), undefined);
  assert.is(warnings.length, 1);
  close();
  server.close();
});

test('refuses an invalid URL without repeating it', async () => {
  for (const bad of ['http://user:planted-secret@host', 'planted-secret', 'redis://h:99999/planted-secret']) {
    const error: unknown = await opened(bad).then(
      ({ close }) => close(),
      (thrown) => thrown,
    );
    assert.ok(error instanceof Error, bad);
    assert.not.match(`${error.message} ${error.stack} ${String(error.cause)}`, /planted-secret/);
  }
});

async function opened(address: string) {
  const clock = stoppedClock();
  const warnings: unknown[][] = [];
  const note = (...args: unknown[]) => void warnings.push(args);
  const log = { info: note, warn: note };
  const counter: SharedCounter = await openRedisCounter({ url: address, log, clock });
  return { counter, clock, warnings, close: () => counter.close() };
}

function texts(warnings: readonly unknown[][]): unknown[] {
  return warnings.map((args) => args.at(-1));
}

/** The first answer; the connection is made in the background. */
function countsAgain(counter: SharedCounter, key: string) {
  return eventually(
    () => counter.add(key, 1, 10),
    (answer) => answer !== undefined,
  );
}

test.run();
