import * as assert from 'uvu/assert';
import { HTTP_LIMITS } from '../../src/http/limits.ts';
import { limitPatience } from '../../src/http/patience.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
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

test.run();
