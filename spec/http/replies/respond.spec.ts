// Writing a reply, and disconnecting clients that do not read it.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { HTTP_LIMITS } from '../../../src/http/http-limits.ts';
import { bytes, json, noContent } from '../../../src/http/replies/reply.ts';
import { respond } from '../../../src/http/replies/respond.ts';
import { limitReader } from '../../../src/http/replies/unread-answers.ts';
import { EventStreams } from '../../../src/http/sse/event-stream.ts';
import { head, openRaw, readUntil, untilClosed } from '../../helpers/clients/raw-http.ts';
import { headersOf } from '../../helpers/http/app.ts';
import { startMiddlewares, startRoute } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('writing a reply');
/** More than the system buffers for a connection. */
const LARGE = Buffer.alloc(20_000_000, 0x20);

test('sends status, headers and the exact bytes once, and keeps the headers of earlier middlewares', async () => {
  const facts = { instanceId: 'one', headers: ['X-Total-Count', '3'] };
  for (const [reply, sent, length, type] of [
    [bytes(201, Buffer.from('{"a":"ü"}'), facts), '{"a":"ü"}', '10', 'application/json'],
    [json(200, { a: '😀' }, facts), '{"a":"😀"}', '12', 'application/json'],
    // The length is sent where the status allows a body.
    [{ ...noContent(facts), status: 202 }, '', '0', null],
    [noContent(facts), '', null, null],
  ] as const) {
    const app = await startMiddlewares((context) => {
      context.res.setHeader('Vary', 'Origin');
      respond(context, reply);
      assert.is(context.state.instanceId, 'one');
      respond(context, json(500, { second: true }));
    });
    const answer = await app.ask('GET', '/', { headers: { 'x-request-id': 'r1' } });
    assert.equal([answer.status, answer.text], [reply.status, sent]);
    assert.equal(headersOf(answer, 'content-length', 'content-type', 'transfer-encoding'), [
      length,
      type,
      null,
    ]);
    const others = headersOf(answer, 'x-request-id', 'x-instance-id', 'x-total-count', 'vary');
    assert.equal(others, ['r1', 'one', '3', 'Origin']);
    app.close();
  }
});

test('sets the write timeout only if part of the reply waits in memory', async () => {
  const limits: (number | undefined)[] = [];
  const app = await startMiddlewares((context) => {
    respond(context, bytes(200, context.path === '/large' ? LARGE : Buffer.from('{}')));
    limits.push(context.req.socket.timeout);
  });
  await app.ask('GET', '/small');
  await app.ask('GET', '/large');
  // The timer fires fifteen times within the write timeout.
  assert.equal(
    limits.map((ms) => ms === HTTP_LIMITS.unreadAnswerMs / 15),
    [false, true],
  );
  app.close();
});

test('ends the write timeout with its answer, before a pipelined one begins', async () => {
  const arrived = Promise.withResolvers<void>();
  const app = await startMiddlewares(async ({ res: response, path }) => {
    if (path === '/next') {
      response.once('socket', () => response.end(`closed after ${response.socket?.timeout} ms`));
      arrived.resolve();
      return;
    }
    await arrived.promise;
    limitReader(response);
    response.end();
  });
  const socket = await openRaw(app.port);
  socket.write(head('GET /') + head('GET /next'));
  assert.match(await readUntil(socket, ' ms'), 'closed after 0 ms');
  socket.destroy();
  app.close();
});

test('disconnects a client that read only the first part soon after the write timeout, not after twice its time', async () => {
  const unreadMs = 1_500;
  const cut = Promise.withResolvers<number>();
  const app = await startMiddlewares(({ res: response }) => {
    response.end(Buffer.alloc(50_000_000));
    limitReader(response, unreadMs);
    const startMs = performance.now();
    response.once('close', () => cut.resolve(performance.now() - startMs));
  });
  const socket = await openRaw(app.port);
  void untilClosed(socket);
  socket.write(head('GET /'));
  const tookMs = await cut.promise;
  assert.ok(tookMs >= unreadMs && tookMs < unreadMs * 1.8, `after ${tookMs} ms`);
  socket.destroy();
  app.close();
});

test('disconnects a client that stops reading, and keeps an idle stream open', async () => {
  const quiet = Promise.withResolvers<void>();
  const app = await startMiddlewares(async (context) => {
    const { res: response, path } = context;
    response.writeHead(200);
    limitReader(response, 10);
    response.write('begin');
    if (path === '/stopped') response.write(Buffer.alloc(50_000_000));
    else response.once('timeout', quiet.resolve);
    await quiet.promise;
    if (path === '/quiet') response.end('end');
  });
  const [stopped, received] = await Promise.all([openRaw(app.port), openRaw(app.port)]);
  const closed = untilClosed(stopped);
  stopped.write(head('GET /stopped'));
  received.write(head('GET /quiet'));
  assert.match(await readUntil(received, 'end'), /begin[\s\S]*end/);
  stopped.write('x'); // only a write notices the reset
  stopped.resume();
  await closed;
  received.destroy();
  app.close();
});

test('disconnects the slowest client over the limit of unread bytes, refuses calls near it, and releases the bytes', async () => {
  // Enough for one large answer, and not for two.
  const { unread } = new EventStreams(systemClock, {
    unreadBounds: { totalBytes: 45_000_000, ownerBytes: 25_000_000 },
  });
  const answered: (() => void)[] = [];
  const app = await startRoute(
    '/:size',
    (context, next) => {
      if (context.method === 'POST') unread.requireRoom(context);
      return next();
    },
    (context) => {
      respond(context, bytes(200, context.params.size === 'large' ? LARGE : Buffer.from('{}')));
      unread.count(context);
      answered.shift()?.();
    },
  );
  const askAndNotRead = async () => {
    const socket = await openRaw(app.port);
    const closed = untilClosed(socket);
    socket.pause();
    const written = new Promise<void>((resolve) => answered.push(resolve));
    socket.write(head('GET /large'));
    await written;
    return { socket, closed };
  };
  const first = await askAndNotRead();
  const refused = await app.ask('POST', '/small');
  assert.match(String(refused.body.detail), 'earlier answers unread');
  assert.equal([refused.outcome, refused.headers.get('retry-after')], ['429 QUEUE_FULL', '1']);
  const second = await askAndNotRead();
  first.socket.resume();
  await first.closed;
  second.socket.destroy();
  while ((await app.ask('POST', '/small')).status !== 200);
  app.close();
});

test.run();
