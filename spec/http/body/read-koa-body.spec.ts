import * as assert from 'uvu/assert';
import { readKoaBody } from '../../../src/http/body/read.ts';
import { body } from '../../../src/http/middleware/body.ts';
import { json } from '../../../src/http/reply.ts';
import { respond } from '../../../src/http/respond.ts';
import { startMiddlewares } from '../../helpers/http-middlewares.ts';
import { head, openRaw } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

// That it answers like the other reader is held by spec/http/middleware/body.spec.ts.
const test = suite('reading a body with koa-body');

test('hands on every byte as it was', async () => {
  let received: Buffer | undefined;
  const read = readKoaBody(1_000);
  const app = await startMiddlewares(async (context) => {
    received = await read(context);
    respond(context, json(200, {}));
  });
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  await app.ask('POST', '/', { body: bytes });
  assert.ok(received?.equals(bytes));
  app.close();
});

test('unwinds when the client breaks off', async () => {
  const over = Promise.withResolvers<unknown>();
  const app = await startMiddlewares(
    (_context, next) => next().catch(over.resolve),
    body(readKoaBody(1_000), 1_000),
  );
  const socket = await openRaw(app.port);
  socket.write(head('POST /', { 'Content-Type': 'application/json', 'Content-Length': '10' }));
  socket.write('{"a"', () => socket.destroy());
  assert.match(String(await over.promise), /^ClientGone/);
  app.close();
});

test.run();
