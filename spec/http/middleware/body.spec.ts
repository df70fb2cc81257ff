// Both readers of bodies behind the same middleware, and the parser of forms. Bad bodies are sent to every route:
// spec/http/app.spec.ts.

import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { RateLimiter } from '../../../src/auth/limits/rate-limiter.ts';
import { invalidCredentials } from '../../../src/domain/errors/account-errors.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { byteShares } from '../../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { HeldBodies } from '../../../src/http/body/held-bodies.ts';
import { parseFormBody, parseJsonBody } from '../../../src/http/body/parse-body.ts';
import { koaBodyReader, type ReadBody, readDirect } from '../../../src/http/body/readers.ts';
import { ClientGone } from '../../../src/http/client-gone.ts';
import { HTTP_LIMITS } from '../../../src/http/http-limits.ts';
import { body } from '../../../src/http/middleware/body.ts';
import { json } from '../../../src/http/replies/reply.ts';
import { respond } from '../../../src/http/replies/respond.ts';
import {
  head,
  jsonRequest,
  openRaw,
  readAll,
  readUntil,
  sendRaw,
  untilClosed,
} from '../../helpers/clients/raw-http.ts';
import { collectGarbage } from '../../helpers/garbage.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';
import { schedulerWith } from '../../helpers/time/turns.ts';
import { ODD_BODIES, SPEC_BODY_BYTES } from '../bad-bodies.ts';

const BOUNDS = { totalBytes: 1_000_000, ownerBytes: 1_000_000 };
const COSTS = {
  held: new HeldBodies(byteShares(BOUNDS)),
  limiter: new RateLimiter(systemClock),
  scheduler: new TaskScheduler(),
  clock: systemClock,
};
/** Reads later than the first part of the body comes. */
const readLate: ReadBody = async (context, maxBytes, use, onBytes) => {
  await nextTurn();
  return readDirect(context, maxBytes, use, onBytes);
};
const readers = { direct: () => readDirect, 'as a stream': () => readLate, 'koa-body': koaBodyReader };
const whole = (bytes: Buffer): Buffer => bytes;

for (const [name, read] of Object.entries(readers)) {
  const test = suite(`the body middleware, read ${name}`);
  const app = appFor(test, () =>
    startMiddlewares(body(read(), { kind: 'json', maxBytes: SPEC_BODY_BYTES }, COSTS), (context) =>
      respond(context, json(200, context.state.body)),
    ),
  );

  for (const { what, json: text, type = 'application/json' } of ODD_BODIES) {
    test(`accepts ${what}`, async () => {
      const headers = { 'content-type': type, 'content-encoding': 'Identity' };
      const answer = await app.ask('POST', '/', { body: text, headers });
      assert.equal([answer.status, answer.text], [200, JSON.stringify(JSON.parse(text))]);
    });
  }

  const CHUNKED = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked', Connection: 'close' };

  test('reads a body that comes in many pieces', async () => {
    const pieces = ['2\r\n{"\r\n', '6\r\na":"ü\r\n', '2\r\n"}\r\n', '0\r\n\r\n'];
    const answer = await sendRaw(app.port, head('POST /', CHUNKED), ...pieces);
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.match(Buffer.from(answer, 'latin1').toString(), /\r\n\r\n\{"a":"ü"\}$/);
  });

  test('refuses a chunked body over the limit with 413', async () => {
    const chunk = `1001\r\n${'x'.repeat(0x1001)}\r\n0\r\n\r\n`;
    assert.match(await sendRaw(app.port, head('POST /', CHUNKED), chunk), /^HTTP\/1\.1 413 /);
  });

  test('refuses an absent body and an empty chunked body with 422 missing, and 129 levels', async () => {
    const answer = await sendRaw(app.port, head('POST /', { Connection: 'close' }));
    const empty = await sendRaw(app.port, head('POST /', CHUNKED), '0\r\n\r\n');
    for (const each of [answer, empty]) assert.match(each, /^HTTP\/1\.1 422 [\s\S]*"type":"missing"/);
    const body = '['.repeat(129) + ']'.repeat(129);
    assert.is((await app.ask('POST', '/', { body })).outcome, '422 VALIDATION_ERROR');
  });

  test('refuses a body without a media type with 415', async () => {
    const bare = head('POST /', { Connection: 'close', 'Content-Length': '2' });
    assert.match(await sendRaw(app.port, bare, '{}'), /^HTTP\/1\.1 415 /);
  });

  test('passes every byte on unchanged', async () => {
    let received: unknown;
    const reading = await startMiddlewares(async (context) => {
      received = await read()(context, 1_000, whole);
      respond(context, json(200, {}));
    });
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    await reading.ask('POST', '/', { body: bytes });
    assert.equal(received, bytes);
    reading.close();
  });

  for (const when of ['before', 'during'])
    test(`throws ClientGone when the client disconnects ${when} the read`, async () => {
      const over = Promise.withResolvers<unknown>();
      const watched = await startMiddlewares(
        async ({ res }, next) => {
          if (when === 'before') await once(res, 'close');
          await next().catch(over.resolve);
        },
        body(read(), { kind: 'json', maxBytes: 1_000 }, COSTS),
      );
      const socket = await openRaw(watched.port);
      socket.write(jsonRequest('POST /', '{"a":"abc"}').slice(0, -6), () => socket.destroy());
      assert.instance(await over.promise, ClientGone);
      watched.close();
    });

  test.run();
}

const bytes = suite('bytes of a body');

bytes('are passed on unparsed, after checks of media type and length', async () => {
  const app = await startMiddlewares(
    body(readDirect, { kind: 'bytes', maxBytes: SPEC_BODY_BYTES }, COSTS),
    (context) => {
      const { body: read } = context.state;
      respond(context, json(200, read instanceof Uint8Array ? [...read] : 'no bytes'));
    },
  );
  const type = { 'content-type': 'application/json; charset=utf-8' };
  const answers = [
    await app.ask('POST', '/', { body: Buffer.from([0x7b, 0x00, 0xff]), headers: type }),
    await app.ask('POST', '/'),
    await app.ask('POST', '/', { body: '{}', headers: { 'content-type': 'text/plain' } }),
    await app.ask('POST', '/', { body: 'x'.repeat(SPEC_BODY_BYTES + 1), headers: type }),
  ];
  const found = answers.map(({ status, text }) => (status === 200 ? text : status));
  assert.equal(found, ['[123,0,255]', '[]', 415, 413]);
  app.close();
});

bytes('that come later than the head are taken only from a caller that is still authorized', async () => {
  let nowMs = 0;
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const app = await startMiddlewares(
    ({ state }, next) => {
      state.check = () => invalidCredentials();
      begun.shift()?.resolve();
      return next();
    },
    body(
      readDirect,
      { kind: 'json', maxBytes: 100 },
      { ...COSTS, clock: { ...systemClock, now: () => nowMs } },
    ),
    (context) => respond(context, json(200, context.state.body)),
  );
  const text = jsonRequest('POST /', '{"a":"abc"}', { Connection: 'close' });
  const statusAfter = async (ms: number) => {
    const [next] = begun;
    const socket = await openRaw(app.port);
    socket.write(text.slice(0, -6));
    await next?.promise;
    nowMs += ms;
    socket.write(text.slice(-6));
    return (await readAll(socket)).slice(9, 12);
  };
  assert.equal([await statusAfter(0), await statusAfter(2)], ['200', '401']);
  app.close();
});

bytes('are refused as invalid JSON with the position of the error, and are not repeated', () => {
  const parse = () => parseJsonBody(Buffer.from('{"password": "hunter2" oops}'));
  assert.throws(parse, /syntax error at character 23/);
  assert.throws(parse, (error: Error) => !/hunter2|oops/.test(error.message));
});

bytes('in pieces of one byte take no more memory than in one piece', async () => {
  const request = new PassThrough();
  const reading = readDirect({ req: request }, 200_000, whole);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let count = 0; count < 200_000; count += 1) request.emit('data', Buffer.from('x'));
  collectGarbage();
  const heldBytes = process.memoryUsage().heapUsed - before;
  assert.ok(heldBytes < 5_000_000, `${heldBytes} bytes`);
  request.emit('end');
  assert.equal(await reading, Buffer.alloc(200_000, 'x'));
});

bytes('over the limit leave no listener behind', async () => {
  const request = new PassThrough();
  const refusal = readDirect({ req: request }, 3, whole).catch((thrown: unknown) => thrown);
  request.end('abcd');
  assert.is(Object(await refusal).code, 'PAYLOAD_TOO_LARGE');
  assert.is(request.listenerCount('data'), 0);
});

bytes('over the limit are drained, and the connection stays open', async () => {
  const app = await startApp({ maxBodyBytes: 100 });
  const socket = await openRaw(app.port);
  const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
  const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
  socket.write(head('POST /gateway/register', headers) + chunk);
  assert.match(await readUntil(socket, 'PAYLOAD_TOO_LARGE'), /^HTTP\/1\.1 413 /);
  socket.write(`${chunk}0\r\n\r\n${head('GET /livez', { Connection: 'close' })}`);
  assert.match(await readAll(socket), /^HTTP\/1\.1 200 [\s\S]*alive/);
  await app.close();
});

bytes('over 64 KiB are parsed in a turn of the scheduler, with or without a length', async () => {
  let turns = 0;
  const turn = async () => {
    turns += 1;
  };
  const costs = { ...COSTS, scheduler: schedulerWith({ turn }) };
  const app = await startMiddlewares(
    body(readDirect, { kind: 'json', maxBytes: 200_000 }, costs),
    (context) => respond(context, json(200, turns)),
  );
  const type = { 'content-type': 'application/json' };
  const [small, large] = [60_000, 70_000].map((count) => JSON.stringify('x'.repeat(count)));
  const chunked = head('POST /', { ...type, 'Transfer-Encoding': 'chunked', Connection: 'close' });
  const answers = [
    (await app.ask('POST', '/', { body: small, headers: type })).text,
    (await app.ask('POST', '/', { body: large, headers: type })).text,
    (await sendRaw(app.port, chunked, `${(70_002).toString(16)}\r\n${large}\r\n0\r\n\r\n`)).at(-1),
  ];
  assert.equal(answers, ['0', '1', '2']);
  app.close();
});

bytes('over the limit are drained up to a bound, after which the connection ends', async () => {
  const app = await startApp({ maxBodyBytes: 100 });
  const socket = await openRaw(app.port);
  const mostBytes = 2 * HTTP_LIMITS.drainedBytes;
  const length = { 'Content-Type': 'application/json', 'Content-Length': String(mostBytes) };
  socket.write(head('POST /gateway/register', length));
  assert.match(await readUntil(socket, 'PAYLOAD_TOO_LARGE'), /^HTTP\/1\.1 413 /);
  const closed = untilClosed(socket);
  const piece = Buffer.alloc(1024 * 1024, ' ');
  let sentBytes = 0;
  for (; sentBytes < mostBytes && socket.writable; sentBytes += piece.length)
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain').catch(() => undefined), closed]); // it may be reset
  await closed;
  assert.ok(sentBytes >= HTTP_LIMITS.drainedBytes && sentBytes < mostBytes, `${sentBytes} bytes`);
  await app.close();
});

bytes.run();

const forms = suite('parsing a form');
const parse = (text: string | Buffer) => parseFormBody(Buffer.from(text));

for (const [text, fields] of [
  ['username=ada&password=secret', { username: 'ada', password: 'secret' }],
  ['&&a=1&b&=c&d=e=f', { a: '1', b: '', '': 'c', d: 'e=f' }],
  ['a+b=c+d%2Be', { 'a b': 'c d+e' }],
  ['p=%zz100%&q=%E2%82%ac€%26', { p: '%zz100%', q: '€€&' }],
  ['__proto__=x', { ['__proto__']: 'x' }],
] as const) {
  forms(`reads ${JSON.stringify(text)}`, () =>
    assert.equal(Object.entries(parse(text)), Object.entries(fields)),
  );
}

for (const [what, text, type] of [
  ['a field twice, written differently', 'a=secret&%61=2', 'value_error'],
  ['an encoded NUL', 'a=%00', 'string_unicode'],
  ['a NUL', 'a=secret\0', 'string_unicode'],
  ['an encoded surrogate', 'a=%ED%A0%80', 'string_unicode'],
  ['bytes that are not UTF-8', Buffer.from([0x61, 0x3d, 0xc3, 0x28]), 'string_unicode'],
] as const) {
  forms(`refuses ${what}, and does not repeat it`, () => {
    try {
      parse(text);
      assert.unreachable();
    } catch (thrown) {
      const items = thrown instanceof GatewayError ? thrown.facts.items : undefined;
      const found = items?.map((item) => [item.loc, item.type]);
      assert.equal(found, [[['body'], type]]);
      assert.not.match(JSON.stringify(items), 'secret');
    }
  });
}

forms.run();
