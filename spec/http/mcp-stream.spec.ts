// Event streams of the MCP endpoint, over real sockets.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import { whenGone } from '../../src/http/request.ts';
import { type EventStreamOptions, EventStreams } from '../../src/http/sse/event-stream.ts';
import { HttpMcpStream, soleEvent } from '../../src/http/sse/mcp-reply.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { head, openRaw, readAll, readUntil, untilClosed } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('event streams of the MCP endpoint');

/** Serves streams; each is handed over once its head was written, with a promise of its client's leaving. */
async function serve(options?: EventStreamOptions) {
  const streams = new EventStreams(options);
  const opened = Promise.withResolvers<{ stream: HttpMcpStream; gone: Promise<void> }>();
  const app = await startMiddlewares((context) => {
    const { res: response } = context;
    context.respond = false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const gone = Promise.withResolvers<void>();
    whenGone(response, gone.resolve);
    opened.resolve({ stream: new HttpMcpStream(context, streams), gone: gone.promise });
  });
  const listen = async () => {
    const socket = await openRaw(app.port);
    // Some of these streams are cut, which is what is looked for.
    void untilClosed(socket);
    socket.write(head('GET /', { Connection: 'close' }));
    return socket;
  };
  return { ...app, streams, listen, opened: opened.promise };
}

/** What was sent, without the frames of HTTP around it. */
async function eventsOf(send: (stream: HttpMcpStream) => void): Promise<string> {
  const app = await serve();
  const answer = app.ask('GET', '/');
  const { stream } = await app.opened;
  send(stream);
  stream.end();
  const { text } = await answer;
  app.close();
  return text;
}

test('carry messages by the name that every client knows, with what is needed to come back', async () => {
  const text = await eventsOf((stream) => {
    stream.send({ data: '{"a":"ü"}' });
    stream.send({ data: Buffer.from('{"b":"ü"}'), id: 's.1', retryMs: 1_500 });
    stream.send({ data: Buffer.from('{"c":1}'), id: 'ü' });
  });
  assert.is(
    text,
    [
      'event: message\ndata: {"a":"ü"}\n\n',
      'event: message\nid: s.1\nretry: 1500\ndata: {"b":"ü"}\n\n',
      'event: message\nid: ü\ndata: {"c":1}\n\n',
    ].join(''),
  );
});

test('give an event without data no name, so that nobody takes it for a message', async () => {
  assert.is(await eventsOf((stream) => stream.send({ data: '', id: 's.0' })), 'id: s.0\ndata: \n\n');
});

test('keep line breaks and any length', async () => {
  const long = JSON.stringify({ text: 'ü'.repeat(100_000) });
  const text = await eventsOf((stream) => {
    stream.send({ data: Buffer.from(long) });
    stream.send({ data: Buffer.from('{\n"a":1}') });
  });
  assert.is(text, `event: message\ndata: ${long}\n\nevent: message\ndata: {\ndata: "a":1}\n\n`);
});

test('of one event are one piece, whatever is in it', () => {
  const long = JSON.stringify({ text: 'ü'.repeat(100_000) });
  for (const [data, expected] of [
    ['{"a":"ü"}', '{"a":"ü"}'],
    ['{\r\n"a":\r1\n}', '{\ndata: "a":\ndata: 1\ndata: }'],
    [long, long],
  ] as const) {
    const event = `event: message\ndata: ${expected}\n\n`;
    assert.equal([String(soleEvent(data)), String(soleEvent(Buffer.from(data)))], [event, event]);
  }
});

test('begin before there is anything to say, and are kept alive', async () => {
  const app = await serve({ keepAliveMs: 5 });
  const socket = await app.listen();
  assert.match(await readUntil(socket, 'event-stream'), /^HTTP\/1\.1 200 /);
  await readUntil(socket, ': keep-alive\n\n');
  socket.destroy();
  app.close();
});

test('say nothing after their end, which comes once', async () => {
  const text = await eventsOf((stream) => {
    stream.end();
    stream.send({ data: '{}' });
    stream.comment('late');
    stream.end();
  });
  assert.is(text, '');
});

test('end with the app, without an error: whoever waited was told by the endpoint', async () => {
  const app = await serve();
  const socket = await app.listen();
  const { stream } = await app.opened;
  stream.send({ data: '{}' });
  app.streams.close();
  stream.send({ data: '{"late":1}' });
  assert.match(await readAll(socket), /data: \{\}\n\n\r\n0\r\n\r\n$/);
  app.close();
});

test('let go when their client leaves', async () => {
  const app = await serve();
  const socket = await app.listen();
  const { stream, gone } = await app.opened;
  await readUntil(socket, 'event-stream');
  socket.destroy();
  await gone;
  stream.send({ data: '{}' });
  assert.is(stream.unsentBytes, 0);
  app.streams.close();
  app.close();
});

test('tell what waits, and cut a client that takes nothing of it', async () => {
  const app = await serve({ unreadMs: 20 });
  const socket = await app.listen();
  socket.pause();
  const { stream, gone } = await app.opened;
  assert.is(stream.unsentBytes, 0);
  stream.send({ data: Buffer.alloc(20_000_000, 0x20) });
  assert.ok(stream.unsentBytes > 1_000_000);
  await gone;
  socket.destroy();
  app.close();
});

test('have a bound for senders that do not look at it', async () => {
  const app = await serve();
  const socket = await app.listen();
  socket.pause();
  const { stream, gone } = await app.opened;
  const data = Buffer.alloc(LIMITS.backendMessageBytes / 2, 0x20);
  for (let count = 0; count < 4; count += 1) stream.send({ data });
  await gone;
  socket.destroy();
  app.close();
});

test.run();
