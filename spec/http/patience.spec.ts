import * as assert from 'uvu/assert';
import { HTTP_LIMITS } from '../../src/http/limits.ts';
import { limitPatience, limitReader } from '../../src/http/patience.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { head, openRaw, readUntil, untilClosed } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('patience with readers');

test('is limited for what waits in memory, whether an answer or a stream, and for nothing else', async () => {
  const patience: (number | undefined)[] = [];
  const app = await startMiddlewares((context) => {
    context.respond = false;
    context.res.end(Buffer.alloc(context.path === '/large' ? 20_000_000 : 10, 0x20));
    limitPatience(context.res);
    patience.push(context.req.socket.timeout);
  });
  await app.ask('GET', '/small');
  await app.ask('GET', '/large');
  assert.is.not(patience[0], HTTP_LIMITS.unreadAnswerMs);
  assert.is(patience[1], HTTP_LIMITS.unreadAnswerMs);
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
