import * as assert from 'uvu/assert';
import { HTTP_LIMITS } from '../../src/http/limits.ts';
import { bytes, json, noContent } from '../../src/http/reply.ts';
import { respond } from '../../src/http/respond.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('writing a reply');

test('sends status, headers and the exact bytes', async () => {
  const app = await startMiddlewares((context) => {
    const facts = { instanceId: 'one', headers: ['X-Total-Count', '3'] };
    respond(context, bytes(201, Buffer.from('{"a":"ü"}'), facts));
    assert.is(context.state.instanceId, 'one');
  });
  const { status, headers, text } = await app.ask('GET', '/', { headers: { 'x-request-id': 'r1' } });
  assert.is(status, 201);
  assert.is(text, '{"a":"ü"}');
  const sent = Object.fromEntries(headers);
  assert.is(sent['content-type'], 'application/json');
  assert.is(sent['content-length'], '10');
  assert.is(sent['x-request-id'], 'r1');
  assert.is(sent['x-instance-id'], 'one');
  assert.is(sent['x-total-count'], '3');
  app.close();
});

test('counts bytes, not characters, of a text', async () => {
  const app = await startMiddlewares((context) => respond(context, json(200, { a: '😀' })));
  const { headers, text } = await app.ask('GET', '/');
  assert.is(headers.get('content-length'), String(Buffer.byteLength(text)));
  app.close();
});

test('sends no body and no type without content', async () => {
  const app = await startMiddlewares((context) => respond(context, noContent()));
  const { status, headers, text } = await app.ask('DELETE', '/');
  assert.equal([status, text, headers.get('content-type')], [204, '', null]);
  app.close();
});

test('tells that nothing follows, where something might', async () => {
  const app = await startMiddlewares((context) =>
    respond(context, { kind: 'empty', status: Number(context.path.slice(1)) }),
  );
  const lengths = [];
  for (const status of [202, 204, 304]) {
    const { headers } = await app.ask('GET', `/${status}`);
    lengths.push([headers.get('content-length'), headers.get('transfer-encoding')]);
  }
  assert.equal(lengths, [
    ['0', null],
    [null, null],
    [null, null],
  ]);
  app.close();
});

test('keeps what earlier middlewares have set', async () => {
  const app = await startMiddlewares((context) => {
    context.res.setHeader('Vary', 'Origin');
    respond(context, json(200, {}));
  });
  assert.is((await app.ask('GET', '/')).headers.get('vary'), 'Origin');
  app.close();
});

test('answers once only', async () => {
  const app = await startMiddlewares((context) => {
    respond(context, json(200, { first: true }));
    respond(context, json(500, { second: true }));
  });
  const { status, body } = await app.ask('GET', '/');
  assert.equal([status, body], [200, { first: true }]);
  app.close();
});

test('has no endless patience with a client that does not take its answer', async () => {
  const patience: (number | undefined)[] = [];
  const app = await startMiddlewares((context) => {
    respond(context, bytes(200, Buffer.alloc(context.path === '/large' ? 20_000_000 : 10, 0x20)));
    patience.push(context.req.socket.timeout);
  });
  await app.ask('GET', '/small');
  await app.ask('GET', '/large');
  // It is looked several times within the patience, see write-timeout.ts.
  assert.is.not(patience[0], HTTP_LIMITS.unreadAnswerMs / 15);
  assert.is(patience[1], HTTP_LIMITS.unreadAnswerMs / 15);
  app.close();
});

test.run();
