// Answers of the MCP endpoint, over real sockets.

import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { invalidCredentials } from '../../src/domain/error-catalogue.ts';
import type { HttpContext } from '../../src/http/request.ts';
import { EventStreams } from '../../src/http/sse/event-stream.ts';
import { HttpMcpReply } from '../../src/http/sse/mcp-reply.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { head, openRaw } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('answers of the MCP endpoint');

const WINDOW = { limit: 5, remaining: 2, resetAtSeconds: 1_800_000_000 };

function serve(talk: (reply: HttpMcpReply, context: HttpContext) => unknown) {
  const streams = new EventStreams();
  return startMiddlewares((context) => {
    context.state.rateLimit = WINDOW;
    return talk(new HttpMcpReply(context, streams), context);
  });
}

/** One answer, with what is the same in all of them looked at. */
async function answerOf(talk: (reply: HttpMcpReply) => unknown) {
  const app = await serve(talk);
  const answer = await app.ask('POST', '/', { headers: { 'x-request-id': 'r1' } });
  const common = ['x-request-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];
  assert.equal(
    common.map((name) => answer.headers.get(name)),
    ['r1', '5', '2', '1800000000'],
  );
  app.close();
  return answer;
}

test('are one body, with the headers of the endpoint and the name of the instance', async () => {
  const { status, headers, text } = await answerOf((reply) => {
    reply.from('one');
    reply.json(404, Buffer.from('{"a":"ü"}'), ['Mcp-Session-Id', 's1']);
    reply.json(200, '{"late":true}');
  });
  assert.equal([status, text], [404, '{"a":"ü"}']);
  const names = ['content-type', 'content-length', 'mcp-session-id', 'x-instance-id'];
  assert.equal(
    names.map((name) => headers.get(name)),
    ['application/json', '10', 's1', 'one'],
  );
});

test('are a whole event stream of one event, of a known length', async () => {
  for (const data of ['{"a":"ü"}', Buffer.from('{"a":"ü"}')]) {
    const { status, headers, text } = await answerOf((reply) => {
      reply.from('one');
      reply.event(data, ['Mcp-Session-Id', 's1']);
      reply.event('{"late":true}');
    });
    assert.equal([status, text], [200, 'event: message\ndata: {"a":"ü"}\n\n']);
    const names = ['content-type', 'content-length', 'mcp-session-id', 'x-instance-id'];
    assert.equal(
      names.map((name) => headers.get(name)),
      ['text/event-stream', '33', 's1', 'one'],
    );
  }
});

test('are no body, of a known length', async () => {
  const { status, headers, text } = await answerOf((reply) => reply.empty(202, ['Mcp-Session-Id', 's1']));
  assert.equal([status, text], [202, '']);
  assert.equal(
    ['content-length', 'transfer-encoding', 'mcp-session-id'].map((name) => headers.get(name)),
    ['0', null, 's1'],
  );
});

test('tell the log what was asked, what failed first and which session it was about', async () => {
  let state: HttpContext['state'] | undefined;
  const app = await serve((reply, context) => {
    state = context.state;
    reply.asks('tools/call');
    reply.batches(2);
    reply.opens('s1');
    reply.fails(-32_602);
    reply.fails(-32_603, 'INTERNAL_ERROR');
    reply.empty(202);
  });
  await app.ask('POST', '/');
  app.close();
  const { rpcMethod, rpcMessages, rpcError, errorCode, sessionId } = state ?? {};
  assert.equal(
    [rpcMethod, rpcMessages, rpcError, errorCode, sessionId],
    ['tools/call', 2, -32_602, undefined, 's1'],
  );
});

test('are an event stream that nothing on the way keeps back', async () => {
  const { status, headers, text } = await answerOf((reply) => {
    reply.from('one');
    const stream = reply.stream(['Mcp-Session-Id', 's1']);
    stream.send({ data: '{}' });
    stream.end();
  });
  assert.equal([status, text], [200, 'event: message\ndata: {}\n\n']);
  const names = [
    ...['content-type', 'cache-control', 'x-accel-buffering', 'x-content-type-options'],
    ...['mcp-session-id', 'x-instance-id'],
  ];
  assert.equal(
    names.map((name) => headers.get(name)),
    ['text/event-stream', 'no-store, no-transform', 'no', 'nosniff', 's1', 'one'],
  );
});

test('may come later', async () => {
  const { text } = await answerOf((reply) => void setImmediate(() => reply.json(200, '{}')));
  assert.is(text, '{}');
});

test('are told of a client that goes away, and go nowhere after that', async () => {
  const asked = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<HttpMcpReply>();
  const app = await serve((reply) => {
    reply.onGone(() => gone.resolve(reply));
    asked.resolve();
  });
  const socket = await openRaw(app.port);
  socket.write(head('POST /'));
  await asked.promise;
  socket.destroy();
  const reply = await gone.promise;
  reply.json(200, '{}');
  reply.empty(202);
  const stream = reply.stream();
  stream.send({ data: '{}' });
  stream.end();
  assert.is(stream.unsentBytes, 0);
  const again = Promise.withResolvers<void>();
  reply.onGone(again.resolve);
  await again.promise;
  app.close();
});

test('that are streams of a caller who may not have them any more end, and everybody hears that they are gone', async () => {
  const streams = new EventStreams({ callerCheckMs: 10 });
  const heard: string[] = [];
  const app = await startMiddlewares((context) => {
    context.state.check = () => invalidCredentials();
    const reply = new HttpMcpReply(context, streams);
    reply.onGone(() => heard.push('one'));
    reply.onGone(() => heard.push('other'));
    reply.stream().send({ data: '{}' });
  });
  const { status, text } = await app.ask('POST', '/');
  assert.equal([status, text], [200, 'event: message\ndata: {}\n\n']);
  assert.equal(heard, ['one', 'other']);
  app.close();
});

test('that are complete are not gone', async () => {
  let isGone = false;
  const app = await serve(async (reply, { res: response }) => {
    reply.onGone(() => {
      isGone = true;
    });
    reply.json(200, '{}');
    await once(response, 'close');
  });
  await app.ask('POST', '/');
  app.close();
  assert.not.ok(isGone);
});

test.run();
