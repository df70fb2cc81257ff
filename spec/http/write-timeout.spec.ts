import * as assert from 'uvu/assert';
import { HTTP_LIMITS } from '../../src/http/limits.ts';
import { limitReader, limitWriteTime } from '../../src/http/unread-answers.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { head, openRaw, readUntil, untilClosed } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('patience with readers');

/** So often it is looked whether a client takes what waits for it. */
const LOOK_MS = HTTP_LIMITS.unreadAnswerMs / 15;

test('is limited for what waits in memory, whether an answer or a stream, and for nothing else', async () => {
  const looks: (number | undefined)[] = [];
  const app = await startMiddlewares((context) => {
    context.respond = false;
    context.res.end(Buffer.alloc(context.path === '/large' ? 20_000_000 : 10, 0x20));
    limitWriteTime(context.res);
    looks.push(context.req.socket.timeout);
  });
  await app.ask('GET', '/small');
  await app.ask('GET', '/large');
  assert.is.not(looks[0], LOOK_MS);
  assert.is(looks[1], LOOK_MS);
  app.close();
});

test('ends soon after its time with a reader that took the first part, not after twice the time', async () => {
  const unreadMs = 1_500;
  const cut = Promise.withResolvers<number>();
  const app = await startMiddlewares(({ res: response }) => {
    response.end(Buffer.alloc(50_000_000));
    limitWriteTime(response, unreadMs);
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

test('ends with a reader that stops, and not with a stream that is quiet', async () => {
  const quiet = Promise.withResolvers<void>();
  const app = await startMiddlewares(async (context) => {
    const { res: response, path } = context;
    context.respond = false;
    response.writeHead(200);
    limitReader(response, 10);
    response.write('begin');
    if (path === '/stopped') response.write(Buffer.alloc(50_000_000));
    response.once('timeout', () => {
      if (path === '/quiet') quiet.resolve();
    });
    await quiet.promise;
    if (path === '/quiet') response.end('end');
  });
  const [stopped, heard] = await Promise.all([openRaw(app.port), openRaw(app.port)]);
  const closed = untilClosed(stopped);
  stopped.write(head('GET /stopped'));
  heard.write(head('GET /quiet'));
  assert.match(await readUntil(heard, 'end'), /begin[\s\S]*end/);
  stopped.write('x'); // what was reset is only noticed by who writes
  stopped.resume();
  await closed;
  heard.destroy();
  app.close();
});

test.run();
