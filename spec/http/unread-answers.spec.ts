import * as assert from 'uvu/assert';
import { bytes } from '../../src/http/reply.ts';
import { respond } from '../../src/http/respond.ts';
import { EventStreams } from '../../src/http/sse/event-stream.ts';
import { startRoute } from '../helpers/http-middlewares.ts';
import { head, openRaw, untilClosed } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('answers that clients do not read');

const LARGE = Buffer.alloc(20_000_000, 0x20);

test('cut the slowest reader over the bound, refuse new calls near it, and give their room back', async () => {
  // Room for one of them, and not for two.
  const { unread } = new EventStreams({ unreadBounds: { totalBytes: 45_000_000, ownerBytes: 25_000_000 } });
  const answered: (() => void)[] = [];
  const app = await startRoute('/:size', unread.room, (context) => {
    respond(context, bytes(200, context.params.size === 'large' ? LARGE : Buffer.from('{}')));
    unread.count(context);
    answered.shift()?.();
  });
  const askAndNotRead = async (method: string) => {
    const socket = await openRaw(app.port);
    const closed = untilClosed(socket);
    socket.pause();
    const written = new Promise<void>((resolve) => answered.push(resolve));
    socket.write(head(`${method} /large`));
    await written;
    return { socket, closed };
  };
  const first = await askAndNotRead('GET');
  const refused = await app.ask('POST', '/small');
  assert.equal([refused.status, refused.body.error_code], [503, 'BACKEND_UNAVAILABLE']);
  assert.is(refused.headers.get('retry-after'), '1');
  // No call is asked for by GET: streams that go on are not refused.
  assert.is((await app.ask('GET', '/small')).status, 200);
  const second = await askAndNotRead('GET');
  first.socket.resume();
  await first.closed;
  second.socket.destroy();
  while ((await app.ask('POST', '/small')).status !== 200);
  app.close();
});

test.run();
