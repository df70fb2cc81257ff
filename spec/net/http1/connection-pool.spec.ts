// The connections that the requests to one endpoint share: bounded, used again, and gone when nothing needs them.

import type { ServerResponse } from 'node:http';
import { mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { ConnectionPool } from '../../../src/net/http1/connection-pool.ts';
import type { AnswerEnding } from '../../../src/transports/http/answers/answer-ending.ts';
import { HttpAnswer } from '../../../src/transports/http/answers/http-answer.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock } from '../../helpers/time/simulated-time.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { poolOf, postTo } from '../../transports/http/pool-of.ts';
import { startRawServer, withRawServer } from '../../transports/raw-server.ts';

const test = suite('connection pool');
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';

/** Sends one request; resolves with its ending, or with 'aborted'. */
function send(pool: ConnectionPool, text: string | Buffer, abortAfterMs?: number): Promise<string> {
  return new Promise((resolve) => {
    const answer = new HttpAnswer({
      message: () => {},
      finished: (ending: AnswerEnding) => resolve(ending.kind),
    });
    pool.dispatch({ text, answer });
    if (abortAfterMs === undefined) return;
    setTimeout(() => {
      answer.abort();
      resolve('aborted');
    }, abortAfterMs);
  });
}

test('no more requests are under way than connections are allowed; the others wait in their order', async () => {
  const arrived: string[] = [];
  let [now, most] = [0, 0];
  await withRawServer(
    async ({ url = '' }, response) => {
      arrived.push(url);
      now += 1;
      most = Math.max(most, now);
      await delay(2);
      now -= 1;
      response.end(RESULT);
    },
    async ({ port }) => {
      const pool = poolOf({ port }, 4);
      const paths = Array.from({ length: 200 }, (_, index) => `/${index}`);
      const endings = await Promise.all(paths.map((path) => send(pool, postTo(path))));
      assert.equal(new Set(endings), new Set(['complete']));
      assert.is(most, 4);
      // Those of the first four arrive as their connections are made.
      const first = new Set(paths.slice(0, 4));
      assert.equal(
        arrived.filter((path) => !first.has(path)),
        paths.slice(4),
      );
      pool.destroy();
    },
  );
});

test('every request ends, whatever its server and its caller do', async () => {
  const random = (below: number): number => Math.floor(Math.random() * below);
  await withRawServer(
    async (request, response) => {
      request.resume();
      const fate = request.headers['x-fate'];
      if (fate === 'slow') await delay(random(10));
      if (fate === 'reset') request.socket.destroy();
      else response.writeHead(200, fate === 'close' ? { connection: 'close' } : {}).end(RESULT);
    },
    async ({ port }) => {
      const pool = poolOf({ port }, 3);
      const expected = {
        fine: 'complete',
        slow: 'complete',
        close: 'complete',
        reset: 'broken',
      };
      const fates = Object.keys(expected) as (keyof typeof expected)[];
      const wrong: string[] = [];
      const sent = Array.from({ length: 600 }, async () => {
        await delay(random(200));
        const fate = fates[random(fates.length)] ?? 'fine';
        const isAborted = random(5) === 0;
        const ending = await send(pool, postTo('/', { 'x-fate': fate }), isAborted ? random(20) : undefined);
        if (ending !== expected[fate] && !(isAborted && ending === 'aborted'))
          wrong.push(`${fate}: ${ending}`);
      });
      await Promise.all(sent);
      assert.equal(wrong, []);
      assert.is(await send(pool, postTo('/')), 'complete');
      pool.destroy();
    },
  );
});

test('requests to a server that is away fail, those that waited for a connection as well', async () => {
  const server = await startRawServer(() => {});
  await server.close();
  const pool = poolOf(server, 2);
  const endings = await Promise.all(Array.from({ length: 10 }, () => send(pool, postTo('/'))));
  assert.equal(new Set(endings), new Set(['broken']));
  pool.destroy();
});

test('failures of answers are handled when their tasks run; a connection that was idle is forgotten at once', async () => {
  const tasks: (() => void)[] = [];
  let arrived = 0;
  const server = await startRawServer(({ url }, response) => {
    arrived += 1;
    if (url === '/idle') response.end(RESULT);
  });
  const pool = poolOf(server, 8, { scheduler: { run: (task) => tasks.push(task), restAfter: () => 0 } });
  assert.is(await send(pool, postTo('/idle')), 'complete');
  const endings: string[] = [];
  for (let count = 0; count < 5; count += 1)
    void send(pool, postTo('/hangs')).then((ending) => endings.push(ending));
  await until(() => arrived === 6, 'all requests arrived');
  await server.close();
  await until(() => tasks.length === 5, 'all connections broke');
  assert.equal(endings, []);
  tasks.pop()?.();
  await delay(0);
  assert.equal(endings, ['broken']);
  pool.destroy(); // ends the others without their tasks
  await delay(0);
  assert.is(endings.length, 5);
  for (const task of tasks) task();
  await delay(0);
  assert.is(endings.length, 5);
});

test('a destroyed pool ends its requests, those that wait, and later ones', async () => {
  await withRawServer(
    () => {},
    async ({ port }) => {
      for (const before of [0, 1, 5]) {
        const pool = poolOf({ port }, 2);
        const endings = Array.from({ length: before }, () => send(pool, postTo('/')));
        await delay(20);
        pool.destroy();
        endings.push(send(pool, postTo('/')));
        assert.equal(new Set(await Promise.all(endings)), new Set(['broken']));
      }
    },
  );
});

test('after a burst one idle connection stays, however long its server would keep the others', async () => {
  const open = new Set<unknown>();
  const waiting: ServerResponse[] = [];
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  try {
    await withRawServer(
      ({ socket, url }, response) => {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        if (url !== '/stream') waiting.push(response);
      },
      async ({ port }) => {
        const pool = poolOf({ port }, 10, { clock: simulatedClock });
        /** All are under way at the same time. */
        const burst = async (count: number): Promise<void> => {
          const endings = Array.from({ length: count }, () => send(pool, postTo('/')));
          await until(() => waiting.length >= count);
          for (const response of waiting.splice(0))
            response.writeHead(200, { 'keep-alive': 'timeout=60' }).end(RESULT);
          await Promise.all(endings);
          await passTurns(2); // the connections are free in the next one
        };
        await burst(1);
        // It takes the first connection, and keeps it.
        void send(pool, postTo('/stream'));
        await burst(9);
        assert.is(open.size, 10);
        mock.timers.tick(3_999);
        await passTurns(20);
        assert.is(open.size, 10);
        mock.timers.tick(1);
        await until(() => open.size <= 2);
        mock.timers.tick(50_000);
        await passTurns(20);
        assert.is(open.size, 2);
        mock.timers.tick(10_000);
        await until(() => open.size <= 1);
        pool.destroy();
      },
    );
  } finally {
    mock.timers.reset();
  }
});

test.run();
