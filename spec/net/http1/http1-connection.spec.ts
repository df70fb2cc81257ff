// Connections against servers that write any bytes: how requests end, and that no answer is another one's.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import tls from 'node:tls';
import * as assert from 'uvu/assert';
import { codeOf } from '../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { ConnectionPool } from '../../../src/net/http1/connection-pool.ts';
import type { Http1Connection, RequestSink } from '../../../src/net/http1/http1-connection.ts';
import { againWith, chosenSeed, Dice } from '../../helpers/dice.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter } from '../../helpers/time/turns.ts';
import { poolOf, postTo } from '../../transports/http/pool-of.ts';
import { answerOf, call, resultOf, serve } from './raw-answers.ts';

const test = suite('http/1.1 connection');

test('a body without a length ends with the connection; one that is cut off is a failure', async () => {
  await serve(
    (socket, path) => {
      const body = resultOf(path);
      if (path === '/whole') socket.end(`HTTP/1.1 200 OK\r\n\r\n${body}`);
      else socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length + 1}\r\n\r\n${body}`);
    },
    async ({ port }) => {
      const pool = poolOf({ port }, 1);
      assert.equal(await call(pool, '/whole').then(({ kind, path }) => [kind, path]), ['complete', '/whole']);
      assert.equal(await call(pool, '/cut').then(({ kind, path }) => [kind, path]), ['broken', undefined]);
      pool.destroy();
    },
  );
});

test('a paused answer is not read, and holds no request that follows it', async () => {
  const size = 32 * 1024 * 1024;
  let server: Socket | undefined;
  await serve(
    (socket, path) => {
      server = socket;
      if (path !== '/large') socket.write(answerOf(path));
      else {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
        socket.write(Buffer.alloc(size));
      }
    },
    async ({ port, made }) => {
      const pool = poolOf({ port }, 1);
      let [bytes, isOver] = [0, false];
      let connection: Http1Connection | undefined;
      const answer = {
        onRequestStart: (its: Http1Connection) => {
          connection = its;
          return true;
        },
        onResponseStart: () => connection?.pause(answer),
        onResponseData: (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes === size) connection?.pause(answer);
        },
        onResponseEnd: () => {
          isOver = true;
        },
        onResponseError: assert.unreachable,
      };
      pool.dispatch({ text: postTo('/large'), answer });
      await until(() => connection !== undefined && (server?.writableLength ?? 0) > 0, 'the server waits');
      await delay(50);
      assert.ok(bytes <= 64 * 1024, `${bytes} bytes were read`);
      connection?.resume(answer);
      await until(() => isOver, 'all of it is read');
      assert.is(bytes, size);
      assert.is((await call(pool, '/next')).path, '/next');
      assert.is(made(), 1);
      // What is left of the first answer changes nothing.
      connection?.pause(answer);
      connection?.abort(answer);
      assert.is((await call(pool, '/last')).path, '/last');
      assert.is(made(), 1);
      pool.destroy();
    },
  );
});

test('after a piece that was much work, the next one is read in another turn', async () => {
  const size = 8 * 1024 * 1024;
  await serve(
    (socket, path) => {
      if (path !== '/large') socket.write(answerOf(path));
      else socket.write(answerOf(path, '', size));
    },
    async ({ port }) => {
      let nowMs = 0;
      const now = () => (nowMs += 5); // each look at the clock is after much work
      const pool = poolOf({ port }, 1, { clock: { ...systemClock, now } });
      const pieces = new TurnCounter();
      let bytes = 0;
      await new Promise<void>((resolve, reject) => {
        const answer = {
          onRequestStart: () => true,
          onResponseStart: () => {},
          onResponseData: ({ length }: Buffer) => {
            bytes += length;
            pieces.note();
          },
          onResponseEnd: resolve,
          onResponseError: reject,
        };
        pool.dispatch({ text: postTo('/large'), answer });
      });
      assert.equal([bytes, pieces.fullest <= 2], [size, true], `${pieces.fullest} pieces in one turn`);
      assert.is((await call(pool, '/')).kind, 'complete', 'the connection can be used again');
      pool.destroy();
    },
  );
});

test('a connection whose server sends without end rests as long as it has to, whatever else resumes it', async () => {
  await serve(
    (socket, path) =>
      void socket.write(answerOf(path, '', path === '/endless' ? 64 * 1024 * 1024 : undefined)),
    async ({ port }) => {
      const rests: (() => void)[] = [];
      const alarm = (waitMs: number, goOn: () => void): (() => void) => {
        if (waitMs === 7) rests.push(goOn);
        return () => {};
      };
      let nowMs = 0;
      const now = () => (nowMs += 1); // each look at the clock is after that much work
      const clock = { ...systemClock, now, background: { ...systemClock.background, alarm } };
      const pool = poolOf({ port }, 1, { clock, scheduler: { run: (task) => task(), restAfter: () => 7 } });
      let connection: Http1Connection | undefined;
      let pieces = 0;
      const answer: RequestSink = {
        onRequestStart: (started) => {
          connection = started;
          return true;
        },
        onResponseStart: () => {},
        onResponseData: () => {
          pieces += 1;
        },
        onResponseEnd: () => {},
        onResponseError: () => {},
      };
      pool.dispatch({ text: postTo('/endless'), answer });
      for (const count of [1, 2, 3]) {
        await until(() => rests.length === count, 'it rests');
        const before = pieces;
        connection?.pause(answer);
        connection?.resume(answer);
        for (let turn = 0; turn < 50; turn += 1) await immediate();
        assert.is(pieces, before);
        rests.at(-1)?.();
      }
      pool.destroy();
    },
  );
});

test('an answer that is longer than any result rests also after small pieces of work', async () => {
  const size = 72 * 1024 * 1024;
  await serve(
    (socket, path) => void socket.write(answerOf(path, '', size)),
    async ({ port }) => {
      const restedAt: number[] = [];
      let bytes = 0;
      const restAfter = (): number => {
        restedAt.push(bytes);
        return 0;
      };
      const clock = { ...systemClock, now: () => 0 }; // no piece takes any time
      const pool = poolOf({ port }, 1, { clock, scheduler: { run: (task) => task(), restAfter } });
      await new Promise<void>((resolve, reject) => {
        const answer: RequestSink = {
          onRequestStart: () => true,
          onResponseStart: () => {},
          onResponseData: ({ length }: Buffer) => {
            bytes += length;
          },
          onResponseEnd: resolve,
          onResponseError: reject,
        };
        pool.dispatch({ text: postTo('/large'), answer });
      });
      const [first = 0] = restedAt;
      assert.ok(first > 64 * 1024 * 1024 && first < size, `first after ${first} bytes`);
      pool.destroy();
    },
  );
});

test('an error of the sink goes to the sink, and to no other request', async () => {
  await serve(
    (socket, path) => socket.write(answerOf(path)),
    async ({ port }) => {
      const pool = poolOf({ port }, 1);
      for (const at of ['onResponseStart', 'onResponseData', 'onResponseEnd']) {
        const seen = await new Promise<string>((resolve) => {
          const sink = {
            onRequestStart: () => true,
            onResponseStart: () => {},
            onResponseData: () => {},
            onResponseEnd: () => {},
            onResponseError: ({ message }: Error) => resolve(message),
          };
          const fail = (): never => {
            throw new Error(at);
          };
          pool.dispatch({ text: postTo('/'), answer: { ...sink, [at]: fail } });
        });
        assert.is(seen, at);
        assert.is((await call(pool, `/after/${at}`)).path, `/after/${at}`);
      }
      pool.destroy();
    },
  );
});

test('a server that does not complete the TLS handshake is given up', async () => {
  await serve(
    () => {},
    async ({ port, sockets }) => {
      const pool = poolOf({ port }, 1, { origin: 'https://127.0.0.1' });
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const calls = ['/1', '/2'].map((path) => call(pool, path));
        // One after the other.
        for (const waiting of calls) {
          await until(() => sockets.size === 1, 'it is connected');
          mock.timers.tick(LIMITS.connectMs - 1);
          mock.timers.tick(1);
          const { failure } = await waiting;
          assert.equal([failure?.delivered, codeOf(failure?.cause)], ['no', 'ETIMEDOUT']);
        }
      } finally {
        mock.timers.reset();
      }
      await until(() => sockets.size === 0, 'the sockets are closed');
      pool.destroy();
    },
  );
});

const openssl = test.needs(
  'setDefaultCACertificates' in tls && spawnSync('openssl', ['version']).status === 0,
  'no openssl here, or an older Node',
);
openssl(
  'over TLS: the name and the authority of the server are checked, and connections are used again',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stagedoor-tls-'));
    const file = (name: string): string => join(folder, name);
    const words = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=localhost'];
    const names = ['-addext', 'subjectAltName=DNS:localhost'];
    execFileSync('openssl', [...words, ...names, '-keyout', file('key'), '-out', file('cert')], {
      stdio: 'pipe',
    });
    const [key, cert] = [await readFile(file('key'), 'utf8'), await readFile(file('cert'), 'utf8')];
    await rm(folder, { recursive: true });
    const server = Object.assign(tls.createServer({ key, cert }), { cert });
    const trusted = tls.getCACertificates();
    await serve(
      (socket, path) => socket.write(answerOf(path, '', path === '/large' ? 300_000 : 0)),
      async ({ port, made }) => {
        const to = (host: string): ConnectionPool => poolOf({ port }, 4, { origin: `https://${host}` });
        const untrusted = to('localhost');
        const { failure } = await call(untrusted, '/');
        assert.equal([failure?.delivered, codeOf(failure?.cause)], ['no', 'DEPTH_ZERO_SELF_SIGNED_CERT']);
        untrusted.destroy();
        tls.setDefaultCACertificates([...trusted, cert]);
        try {
          const other = to('127.0.0.1');
          const { failure: misnamed } = await call(other, '/');
          assert.equal(
            [misnamed?.delivered, codeOf(misnamed?.cause)],
            ['no', 'ERR_TLS_CERT_ALTNAME_INVALID'],
          );
          other.destroy();
          const pool = to('localhost');
          const before = made();
          for (const path of ['/1', '/large', '/2']) assert.is((await call(pool, path)).path, path);
          assert.is(made() - before, 1);
          const paths = Array.from({ length: 40 }, (_, index) => `/${index}`);
          const outcomes = await Promise.all(paths.map((path) => call(pool, path)));
          assert.equal(
            outcomes.map(({ path }) => path),
            paths,
          );
          pool.destroy();
        } finally {
          tls.setDefaultCACertificates(trusted);
        }
      },
      server,
    );
  },
);

/** Answers as an attacker would write them; `path`: the one of the request. */
const SHAPES: readonly ((path: string, dice: Dice) => string)[] = [
  (path) => answerOf(path),
  (path) => answerOf(path, 'connection: close\r\n'),
  (path) => `HTTP/1.1 100 Continue\r\n\r\n${answerOf(path)}`,
  (path, dice) => {
    const body = resultOf(path);
    let [text, at] = ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', 0];
    while (at < body.length) {
      const size = Math.min(body.length - at, 1 + dice.below(20));
      text += `${size.toString(16)}${dice.pick(['', ';a=b'])}\r\n${body.slice(at, at + size)}\r\n`;
      at += size;
    }
    return `${text}0\r\n${dice.pick(['', 'x: y\r\n'])}\r\n`;
  },
  (path) =>
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${resultOf(path).length + 8}\r\n\r\ndata: ${resultOf(path)}\n\n`,
  (path) => answerOf(path) + answerOf('/forged'),
  (path) => `${answerOf(path)}\r\n\r\n`,
  (path) => answerOf(path).replace('content-length: ', 'content-length: 1'),
  (path) => answerOf(path).replace('content-length: ', 'content-length: -'),
  (path) => answerOf(path, 'content-length: 3\r\n'),
  (path) => answerOf(path, 'transfer-encoding: chunked\r\n'),
  (path) => answerOf(path, 'transfer-encoding : chunked\r\n'),
  (path) => answerOf(path, 'a: b\r\n c: d\r\n'),
  (path) => answerOf(path, 'a: \0\r\n'),
  (path) => answerOf(path).replaceAll('\r\n', '\n'),
  (path) => answerOf(path, `a: ${'b'.repeat(20_000)}\r\n`),
  () => 'HTTP/1.1 204 No Content\r\n\r\n',
  () => 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n',
  () => 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  () => 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n',
  () => `HTTP/1.1 302 Found\r\nlocation: //elsewhere.example/\r\ncontent-length: 0\r\n\r\n`,
  () => 'garbage',
  () => '',
];

test('whatever bytes a server writes, each request ends once, and none gets the answer of another one', async () => {
  const seed = chosenSeed();
  const dice = new Dice(seed);
  const sound = new Set(SHAPES.slice(0, 5));
  const answered: string[] = [];
  const write = async (socket: Socket, path: string): Promise<void> => {
    const shape = dice.pick(SHAPES);
    let text = shape(path, dice);
    const isDamaged = dice.below(4) === 0;
    for (let change = 0; isDamaged && change < 3; change += 1) {
      const at = dice.below(text.length);
      // Not a path: the result of another request would be made.
      if (/[/\d]/.test(text[at] ?? '/')) continue;
      text = text.slice(0, at) + String.fromCharCode(dice.below(256)) + text.slice(at + 1);
    }
    const end = dice.below(3) === 0 ? dice.below(text.length + 1) : text.length;
    if (sound.has(shape) && !isDamaged && end === text.length) answered.push(path);
    for (let at = 0; at < end; ) {
      const to = Math.min(end, at + 1 + dice.below(dice.pick([3, 60, 5_000])));
      socket.write(text.slice(at, to), 'latin1');
      at = to;
      if (dice.below(6) === 0) await delay(dice.below(3));
    }
    if (dice.below(2) === 0) socket.destroySoon();
    // A caller has a deadline; here the server ends what it leaves unanswered.
    else setTimeout(() => socket.destroy(), 30);
  };
  await serve(
    (socket, path) => void write(socket, path),
    async ({ port, sockets }) => {
      const pool = poolOf({ port }, 12);
      const paths = Array.from({ length: 1_500 }, (_, index) => `/${index}`);
      const outcomes = new Map<string, string | undefined>();
      const send = async (path: string): Promise<void> => {
        outcomes.set(path, (await call(pool, path)).path);
      };
      await Promise.all(paths.map(send));
      const wrong = [...outcomes].filter(([path, seen]) => seen !== undefined && seen !== path);
      assert.equal(wrong, [], againWith(seed));
      // Others followed bytes that came too late to be told from their answer.
      const seen = answered.filter((path) => outcomes.get(path) === path);
      assert.ok(
        answered.length > 100 && seen.length > answered.length * 0.9,
        `${seen.length} of ${answered.length}`,
      );
      pool.destroy();
      await until(() => sockets.size === 0, 'all connections are closed');
    },
  );
});

test.run();
