// Answers of the MCP endpoint, and its event streams, over real sockets.

import * as assert from 'uvu/assert';
import { invalidCredentials } from '../../../src/domain/errors/account-errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { atClose, ClientGone } from '../../../src/http/client-gone.ts';
import type { HttpContext } from '../../../src/http/context.ts';
import { HttpReplyWriter } from '../../../src/http/replies/http-reply-writer.ts';
import {
  type EventStreamOptions,
  EventStreams,
  OpenStream,
  soleEvent,
} from '../../../src/http/sse/event-stream.ts';
import { head, openRaw, readAll, untilClosed } from '../../helpers/clients/raw-http.ts';
import { headersOf } from '../../helpers/http/app.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('answers of the MCP endpoint');

const WINDOW = { limit: 5, remaining: 2, resetAtSeconds: 1_800_000_000 };

function onGone(context: HttpContext, listener: () => void): void {
  const gone = () => {
    if (!context.res.writableFinished) listener();
  };
  if (context.res.destroyed) gone();
  else atClose(context, gone);
}

/** The part of the request by which the writer learns that its client has disconnected. */
const requestOf = (context: HttpContext) => ({
  onLost: (listener: (reason: Error) => void) => {
    onGone(context, () => listener(new ClientGone()));
    return () => {};
  },
});

function serve(talk: (reply: HttpReplyWriter, context: HttpContext) => unknown) {
  const streams = new EventStreams(systemClock);
  return startMiddlewares((context) => {
    context.state.rateLimit = WINDOW;
    return talk(new HttpReplyWriter(context, streams, requestOf(context)), context);
  });
}

/** One answer; the headers that all answers have are checked. */
async function answerOf(talk: (reply: HttpReplyWriter) => unknown) {
  const app = await serve(talk);
  const answer = await app.ask('POST', '/', { headers: { 'x-request-id': 'r1' } });
  const common = ['x-request-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];
  assert.equal(headersOf(answer, ...common), ['r1', '5', '2', '1800000000']);
  app.close();
  return answer;
}

test('are one body, one event, no body or a stream, with the given headers; later writes are ignored', async () => {
  const headers = ['Mcp-Session-Id', 's1'];
  const data = '{"a":"ü"}';
  const bytes = Buffer.from(data);
  const event = `event: message\ndata: ${data}\n\n`;
  const streamed = (reply: HttpReplyWriter): void => {
    const stream = reply.stream();
    stream.send({ data });
    stream.end();
  };
  const rows: [(reply: HttpReplyWriter) => void, number, string, string | null, string | null][] = [
    [(reply) => reply.json(404, bytes, headers), 404, data, 'application/json', '10'],
    [(reply) => reply.event(data, headers), 200, event, 'text/event-stream', '33'],
    [(reply) => reply.event(bytes, headers), 200, event, 'text/event-stream', '33'],
    [(reply) => reply.empty(202), 202, '', null, '0'],
    [streamed, 200, event, 'text/event-stream', null],
  ];
  for (const [talk, status, text, type, length] of rows) {
    const answer = await answerOf((reply) => {
      reply.log.instanceId = 'one';
      setImmediate(() => {
        talk(reply);
        reply.json(200, '{"late":true}');
      });
    });
    assert.equal([answer.status, answer.text], [status, text]);
    const names = ['content-type', 'content-length', 'mcp-session-id', 'x-instance-id'];
    const session = status === 202 || length === null ? null : 's1';
    assert.equal(headersOf(answer, ...names), [type, length, session, 'one']);
    if (length !== null) continue;
    const against = headersOf(answer, 'cache-control', 'x-accel-buffering', 'x-content-type-options');
    assert.equal(against, ['no-store, no-transform', 'no', 'nosniff']);
  }
});

test('report that the client disconnected, and ignore later writes', async () => {
  const asked = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<HttpReplyWriter>();
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

test('end the stream of a caller that lost access, and call every onGone listener', async () => {
  const streams = new EventStreams(systemClock, { callerCheckMs: 10 });
  const received: string[] = [];
  const app = await startMiddlewares((context) => {
    context.state.check = () => invalidCredentials();
    const reply = new HttpReplyWriter(context, streams, requestOf(context));
    reply.onGone(() => received.push('one'));
    reply.onGone(() => received.push('other'));
    reply.stream().send({ data: '{}' });
  });
  const { status, text } = await app.ask('POST', '/');
  assert.equal([status, text], [200, 'event: message\ndata: {}\n\n']);
  assert.equal(received, ['one', 'other']);
  app.close();
});

test('do not report a disconnect once they are complete', async () => {
  let isGone = false;
  const closed = Promise.withResolvers<void>();
  const app = await serve((reply, { res: response }) => {
    reply.onGone(() => {
      isGone = true;
    });
    response.once('close', closed.resolve);
    reply.json(200, '{}');
  });
  await app.ask('POST', '/');
  await closed.promise;
  app.close();
  assert.not.ok(isGone);
});

test.run();

const streaming = suite('event streams of the MCP endpoint');

/** Serves a stream; `opened` has it once its head was written, with a promise of its client's disconnect. */
async function serveStream(options?: EventStreamOptions) {
  const streams = new EventStreams(systemClock, options);
  const opened = Promise.withResolvers<{ stream: OpenStream; gone: Promise<void> }>();
  const app = await startMiddlewares((context) => {
    const gone = Promise.withResolvers<void>();
    onGone(context, gone.resolve);
    opened.resolve({ stream: new OpenStream(context, streams), gone: gone.promise });
  });
  const listen = async () => {
    const socket = await openRaw(app.port);
    // Some specs expect that the connection is reset.
    void untilClosed(socket);
    socket.write(head('GET /', { Connection: 'close' }));
    return socket;
  };
  return { ...app, streams, listen, opened: opened.promise };
}

/** The events that were sent, without the chunk framing of HTTP. */
async function eventsOf(send: (stream: OpenStream) => void): Promise<string> {
  const app = await serveStream();
  const answer = app.ask('GET', '/');
  const { stream } = await app.opened;
  send(stream);
  stream.end();
  const { text } = await answer;
  app.close();
  return text;
}

streaming(
  'name every message `message`, with the id and retry time for reconnecting, and leave empty events unnamed',
  async () => {
    const text = await eventsOf((stream) => {
      stream.send({ data: '{"a":"ü"}' });
      stream.send({ data: Buffer.from('{"b":"ü"}'), id: 's.1', retryMs: 1_500 });
      stream.send({ data: Buffer.from('{"c":1}'), id: 'ü' });
      stream.send({ data: '', id: 's.0' }); // without a name, so that no client takes it for a message
    });
    assert.is(
      text,
      [
        'event: message\ndata: {"a":"ü"}\n\n',
        'event: message\nid: s.1\nretry: 1500\ndata: {"b":"ü"}\n\n',
        'event: message\nid: ü\ndata: {"c":1}\n\n',
        'id: s.0\ndata: \n\n',
      ].join(''),
    );
  },
);

streaming('of one event are the same from a string and from bytes, at any size and line ending', () => {
  const long = JSON.stringify({ text: 'ü'.repeat(100_000) });
  for (const [data, expected] of [
    ['{"a":"ü"}', '{"a":"ü"}'],
    ['{\r\n"a":\r1\n}', '{  "a": 1 }'],
    [long, long],
  ] as const) {
    const event = `event: message\ndata: ${expected}\n\n`;
    assert.equal([String(soleEvent(data)), String(soleEvent(Buffer.from(data)))], [event, event]);
  }
});

streaming('ignore writes after their end', async () => {
  const text = await eventsOf((stream) => {
    stream.end();
    stream.send({ data: '{}' });
    stream.keepAlive();
    stream.end();
  });
  assert.is(text, '');
});

streaming('end without an error event when the app closes them', async () => {
  const app = await serveStream();
  const socket = await app.listen();
  const { stream } = await app.opened;
  stream.send({ data: '{}' });
  app.streams.close();
  stream.send({ data: '{"late":1}' });
  assert.match(await readAll(socket), /data: \{\}\n\n\r\n0\r\n\r\n$/);
  app.close();
});

streaming('report unsent bytes, and disconnect a client that does not read the last event', async () => {
  const app = await serveStream({ unreadMs: 20 });
  const socket = await app.listen();
  socket.pause();
  const { stream, gone } = await app.opened;
  assert.is(stream.unsentBytes, 0);
  stream.send({ data: Buffer.alloc(20_000_000, 0x20) });
  assert.ok(stream.unsentBytes > 1_000_000);
  stream.end();
  await gone;
  socket.destroy();
  app.close();
});

streaming('disconnect a client when the unsent bytes exceed their limit', async () => {
  const app = await serveStream();
  const socket = await app.listen();
  socket.pause();
  const { stream, gone } = await app.opened;
  const data = Buffer.alloc(LIMITS.backendMessageBytes / 2, 0x20);
  for (let count = 0; count < 4; count += 1) stream.send({ data });
  await gone;
  socket.destroy();
  app.close();
});

streaming.run();
