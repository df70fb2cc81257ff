// Connections against servers that write any bytes: which are used again, and which are closed and when. http1-connection.spec.ts has how
// requests end.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { poolOf, postTo } from '../../transports/http/pool-of.ts';
import { answerOf, call, serve } from './raw-answers.ts';

const test = suite('reuse of connections');

test('500 requests need as many connections as are under way at once, and none is left at the end', async () => {
  await serve(
    (socket, path) => socket.write(answerOf(path)),
    async ({ port, sockets, made }) => {
      const pool = poolOf({ port }, 8);
      for (let sent = 0; sent < 250; sent += 1)
        assert.equal(await call(pool, `/${sent}`).then(({ path }) => path), `/${sent}`);
      assert.is(made(), 1);
      const paths = Array.from({ length: 250 }, (_, index) => `/at-once/${index}`);
      const outcomes = await Promise.all(paths.map((path) => call(pool, path)));
      assert.equal(
        outcomes.map(({ path }) => path),
        paths,
      );
      assert.is(made(), 8);
      pool.destroy();
      await until(() => sockets.size === 0, 'all connections are closed');
    },
  );
});

for (const [name, write] of [
  ['says that it closes the connection', (path) => answerOf(path, 'connection: close\r\n')],
  ['speaks HTTP/1.0', (path) => answerOf(path).replace('HTTP/1.1', 'HTTP/1.0')],
  ['keeps the connection for too short a time', (path) => answerOf(path, 'keep-alive: timeout=2\r\n')],
  ['sends another answer at once', (path) => answerOf(path) + answerOf('/forged')],
  ['sends one byte more', (path) => `${answerOf(path)}\n`],
] as const satisfies readonly (readonly [string, (path: string) => string])[]) {
  test(`a connection is not used again when the server ${name}`, async () => {
    await serve(
      (socket, path) => socket.write(write(path)),
      async ({ port, made, sockets }) => {
        const pool = poolOf({ port }, 1);
        for (const path of ['/1', '/2', '/3']) assert.is((await call(pool, path)).path, path);
        assert.is(made(), 3);
        await until(() => sockets.size === 0, 'each is closed');
        pool.destroy();
      },
    );
  });
}

test('bytes that come while no request is under way end the connection, and are no answer', async () => {
  await serve(
    (socket, path, count) => {
      socket.write(answerOf(path));
      if (count % 2 === 1) setImmediate(() => socket.write(answerOf('/forged')));
    },
    async ({ port, made, sockets }) => {
      const pool = poolOf({ port }, 1);
      for (let sent = 0; sent < 40; sent += 1) {
        assert.is((await call(pool, `/${sent}`)).path, `/${sent}`);
        if (sent % 2 === 0) await until(() => sockets.size === 0, 'it is closed');
      }
      assert.is(made(), 21);
      pool.destroy();
    },
  );
});

test('an answer that comes before its whole request ends the connection', async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {}).once('data', () => socket.pause().write(answerOf('/early')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const pool = poolOf(server.address() as AddressInfo, 1);
  const large = postTo('/large', {}, 'x'.repeat(16 * 1024 * 1024));
  for (let sent = 1; sent <= 2; sent += 1) {
    assert.is((await call(pool, '/early', large)).path, '/early');
    assert.is(sockets.length, sent);
  }
  pool.destroy();
  for (const socket of sockets) socket.destroy();
  server.close();
});

test('a connection whose server closed it is closed where its failure is handled, not in the turn that read its end', async () => {
  const server = createServer({ allowHalfOpen: true });
  const due: (() => void)[] = [];
  const run = (failure: () => void): void => void due.push(failure);
  let ended = 0;
  await serve(
    (socket) => socket.on('end', () => (ended += 1)).end(),
    async ({ port, sockets }) => {
      const pool = poolOf({ port }, 20, { scheduler: { run, restAfter: () => 0 } });
      const calls = Array.from({ length: 20 }, (_, index) => call(pool, `/${index}`));
      await until(() => due.length === 20, 'all ends were read');
      await delay(20);
      assert.is(ended, 0);
      for (const [index, failure] of due.entries()) {
        failure();
        await until(() => ended === index + 1, 'it is closed');
      }
      for (const { kind } of await Promise.all(calls)) assert.is(kind, 'broken');
      await until(() => sockets.size === 0, 'all connections are closed');
    },
    server,
  );
});

for (const [how, close] of [
  ['closed', (socket: Socket) => socket.end()],
  ['wrote on', (socket: Socket) => socket.write(answerOf('/unasked'))],
] as const) {
  test(`idle connections that their server ${how} are closed in tasks; no request gets them meanwhile`, async () => {
    const server = createServer({ allowHalfOpen: true });
    const due: (() => void)[] = [];
    const run = (failure: () => void): void => void due.push(failure);
    let ended = 0;
    await serve(
      (socket, path) => socket.on('end', () => (ended += 1)).write(answerOf(path)),
      async ({ port, sockets, made }) => {
        const pools = Array.from({ length: 20 }, () =>
          poolOf({ port }, 1, { scheduler: { run, restAfter: () => 0 } }),
        );
        const callAll = () => Promise.all(pools.map((pool, index) => call(pool, `/${index}`)));
        await callAll();
        await delay(5);
        for (const socket of sockets) close(socket);
        await until(() => due.length === 20, 'all were read');
        const paths = (await callAll()).map(({ path }) => path);
        assert.equal(
          paths,
          pools.map((_, index) => `/${index}`),
        );
        assert.equal([made(), ended], [40, 0]);
        for (const [index, failure] of due.entries()) {
          failure();
          await until(() => ended === index + 1, 'it is closed');
        }
        for (const socket of sockets) socket.end();
        for (const pool of pools) pool.destroy();
      },
      server,
    );
  });
}

test('a connection that its server closed meanwhile is not used; one that it resets for a request fails it', async () => {
  await serve(
    (socket, path, count) => {
      if (path === '/reset') socket.resetAndDestroy();
      else if (count % 2 === 1) socket.end(answerOf(path));
      else socket.write(answerOf(path));
    },
    async ({ port }) => {
      const pool = poolOf({ port }, 1);
      for (const path of ['/1', '/2', '/3', '/4']) {
        assert.is((await call(pool, path)).path, path);
        await delay(5);
      }
      const { kind, failure } = await call(pool, '/reset');
      // It was written, so it may have been worked on, also on a connection that was used before.
      assert.equal([kind, failure?.delivered, failure?.facts.health], ['broken', 'unknown', 'suspicious']);
      assert.match(failure?.message ?? '', /the connection broke before the answer \(ECONNRESET\)/);
      assert.is((await call(pool, '/5')).path, '/5');
      pool.destroy();
    },
  );
});

test('a server may close each connection with its answer without announcing it', async () => {
  await serve(
    (socket, path) => socket.end(answerOf(path)),
    async ({ port, made }) => {
      const pool = poolOf({ port }, 1);
      const paths = Array.from({ length: 20 }, (_, index) => `/${index}`);
      for (const path of paths.slice(0, 10)) assert.is((await call(pool, path)).path, path);
      // Those that wait for the connection.
      const outcomes = await Promise.all(paths.slice(10).map((path) => call(pool, path)));
      assert.equal(
        outcomes.map(({ path }) => path),
        paths.slice(10),
      );
      assert.is(made(), 20);
      pool.destroy();
    },
  );
});

test('a request that comes together with the close of an idle connection gets another one', async () => {
  await serve(
    (socket, path) => socket.write(answerOf(path)),
    async ({ port, sockets, made }) => {
      const pool = poolOf({ port }, 1);
      for (const path of ['/1', '/2', '/3']) {
        await delay(5);
        for (const socket of sockets) socket.end();
        const { path: answered, failure } = await call(pool, path);
        assert.equal([answered, failure?.message], [path, undefined]);
      }
      assert.is(made(), 3);
      pool.destroy();
    },
  );
});

test('an idle connection is closed before its server would close it', async () => {
  await serve(
    (socket, path) => socket.write(answerOf(path, 'keep-alive: timeout=3, max=9\r\n')),
    async ({ port, sockets }) => {
      const pool = poolOf({ port }, 1);
      const startMs = performance.now();
      await call(pool, '/');
      await until(() => sockets.size === 0, 'it is closed');
      const tookMs = performance.now() - startMs;
      assert.ok(tookMs > 900 && tookMs < 2_500, `closed after ${tookMs} ms`);
      pool.destroy();
    },
  );
});

for (const [name, text, reason] of [
  [
    'an upgrade',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n',
    /another protocol/,
  ],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ', /content-length/],
  ['another protocol', '220 smtp.example ESMTP\r\n', /not HTTP\/1\.1/],
] as const) {
  test(`an answer with ${name} is a failure that says so, and ends the connection`, async () => {
    await serve(
      (socket) => socket.write(text),
      async ({ port, sockets }) => {
        const pool = poolOf({ port }, 1);
        const { kind, failure } = await call(pool, '/');
        assert.equal([kind, failure?.delivered, failure?.facts.health], ['broken', 'unknown', 'suspicious']);
        assert.match(failure?.message ?? '', reason);
        await until(() => sockets.size === 0, 'it is closed');
        pool.destroy();
      },
    );
  });
}

test.run();
