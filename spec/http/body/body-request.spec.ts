// Requests whose bodies are collected as they are parsed, on the server of a gateway. What middlewares make of bodies:
// spec/http/middleware/body.spec.ts.

import type { IncomingMessage, RequestListener } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { BodyRequest } from '../../../src/http/body/body-request.ts';
import { head, jsonRequest, openRaw, readUntil } from '../../helpers/clients/raw-http.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter } from '../../helpers/time/turns.ts';
import { startRawServer } from '../../transports/raw-server.ts';

const requests = suite('requests whose bodies are collected');

/** Serves one connection, on which these texts are sent, each after the answer to the one before. Returns the collected pieces. */
async function serve(listener: RequestListener, ...texts: readonly string[]): Promise<void> {
  await serveAs(BodyRequest, listener, ...texts);
}

async function serveAs(
  Request: typeof BodyRequest,
  listener: RequestListener,
  ...texts: readonly string[]
): Promise<void> {
  const server = await startRawServer(listener, 0, { IncomingMessage: Request });
  const socket = await openRaw(server.port);
  for (const text of texts) {
    socket.write(text);
    await readUntil(socket, 'answered');
  }
  socket.destroy();
  await server.close();
}

/** Puts the pieces into a list, and null for the end, or 'gone'. */
function collect(request: IncomingMessage, into: unknown[], then = (): void => {}): boolean {
  assert.instance(request, BodyRequest);
  return (request as BodyRequest).collectBody({
    data: (piece) => into.push(piece.toString()),
    end: () => {
      into.push(null);
      then();
    },
    gone: () => into.push('gone'),
  });
}

requests('give their bodies before the stream would, and leave nothing of it to the stream', async () => {
  const collected: unknown[] = [];
  const events: string[] = [];
  await serve(
    (request, response) => {
      assert.is(
        collect(request, collected, () => response.end('answered')),
        true,
      );
      const emit = request.emit.bind(request);
      request.emit = (event: string, ...values: unknown[]) => {
        events.push(event);
        return emit(event, ...values);
      };
      response.on('close', () => assert.is(request.readableEnded, true));
    },
    jsonRequest('POST /', '{"a":1}'),
    jsonRequest('POST /', '{"b":2}'),
  );
  assert.equal(collected, ['{"a":1}', null, '{"b":2}', null]);
  assert.equal(events, []);
});

requests('that were not collected are streams', async () => {
  const read: unknown[] = [];
  await serve(
    async (request, response) => {
      await nextTurn();
      assert.is(collect(request, read), false);
      assert.is(request.readableEnded, false);
      for await (const piece of request) read.push(String(piece));
      response.end('answered');
    },
    jsonRequest('POST /', '{"a":1}'),
  );
  assert.equal(read, ['{"a":1}']);
});

requests('give small pieces that came together to the stream as one', async () => {
  const read: unknown[] = [];
  await serve(
    (request, response) => {
      request.on('data', (piece) => read.push(String(piece)));
      request.on('end', () => response.end('answered'));
    },
    `${head('POST /', { 'Transfer-Encoding': 'chunked' })}${'1\r\na\r\n'.repeat(1_000)}0\r\n\r\n`,
    `${head('POST /', { 'Transfer-Encoding': 'chunked' })}1\r\nb\r\n400\r\n${'c'.repeat(1_024)}\r\n1\r\nd\r\n0\r\n\r\n`,
  );
  assert.equal(read, ['a'.repeat(1_000), 'b', 'c'.repeat(1_024), 'd']);
});

requests(
  'end their connection when a body comes in many pieces of one byte, before the answer or after it',
  async () => {
    const crumbs = '1\r\n \r\n'.repeat(20_000);
    for (const isAnswered of [false, true]) {
      const collected: unknown[] = [];
      const server = await startRawServer(
        (request, response) => {
          if (isAnswered) response.end('answered');
          else collect(request, collected);
        },
        0,
        { IncomingMessage: BodyRequest },
      );
      const socket = await openRaw(server.port);
      socket.on('error', () => {}); // a reset, while it still sends
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(head('POST /', { 'Transfer-Encoding': 'chunked' }));
      if (isAnswered) await readUntil(socket, 'answered');
      socket.resume();
      socket.write(crumbs);
      await closed;
      const lost = isAnswered ? undefined : 'gone';
      assert.equal([collected.at(-1), collected.length <= 4_097], [lost, true]);
      await server.close();
    }
  },
);

requests(
  'are read in several turns when their bodies come in small pieces, and whole if not in too many',
  async () => {
    const turns = new TurnCounter();
    let bytes = 0;
    await serve(
      (request, response) => {
        (request as BodyRequest).collectBody({
          data: ({ length }) => {
            bytes += length;
            turns.note();
          },
          end: () => response.end('answered'),
          gone: () => {},
        });
      },
      `${head('POST /', { 'Transfer-Encoding': 'chunked' })}${`14\r\n${'x'.repeat(20)}\r\n`.repeat(30_000)}0\r\n\r\n`,
    );
    // One reading of the socket, of 64 KiB, has 2,521.
    assert.equal([bytes, turns.fullest < 3_000], [600_000, true], `${turns.fullest} pieces in one turn`);
  },
);

requests('rest for chunks only: an upload does not wait behind the bodies of others', async () => {
  const rested: number[] = [];
  class Noting extends BodyRequest {
    override rest(tookMs: number, goOn: () => void): void {
      rested.push(tookMs);
      goOn();
    }
  }
  const listener: RequestListener = (request, response) => {
    request.resume().on('end', () => response.end('answered'));
  };
  const length = 16 * 1024 * 1024; // 64 KiB are read at once
  await serveAs(Noting, listener, head('POST /', { 'Content-Length': `${length}` }) + 'x'.repeat(length));
  assert.equal(rested, []);
  const chunks = `64\r\n${'x'.repeat(100)}\r\n`.repeat(150);
  await serveAs(Noting, listener, `${head('POST /', { 'Transfer-Encoding': 'chunked' })}${chunks}0\r\n\r\n`);
  assert.is(rested.length, 1);
});

requests('are discarded after the answer when nobody has read their bodies of small pieces', async () => {
  const crumbs = `14\r\n${'x'.repeat(20)}\r\n`.repeat(20_000);
  await serve(
    async (_request, response) => {
      for (let turns = 0; turns < 1_000; turns += 1) await nextTurn();
      response.end('answered');
    },
    `${head('POST /', { 'Transfer-Encoding': 'chunked' })}${crumbs}0\r\n\r\n`,
    jsonRequest('POST /', '{}'),
  );
});

requests('give the rest to the stream when collecting stops', async () => {
  const read: unknown[] = [];
  const server = await startRawServer(
    async (request, response) => {
      collect(request, read);
      await nextTurn();
      (request as BodyRequest).stopCollecting();
      response.writeHead(200).write('first');
      for await (const piece of request) read.push(`streamed ${piece}`);
      response.end('answered');
    },
    0,
    { IncomingMessage: BodyRequest },
  );
  const socket = await openRaw(server.port);
  socket.write(`${head('POST /', { 'Content-Length': '4' })}ab`);
  await readUntil(socket, 'first');
  socket.write('cd');
  await readUntil(socket, 'answered');
  socket.destroy();
  await server.close();
  assert.equal(read, ['ab', 'streamed cd']);
});

requests('tell that their connection was lost', async () => {
  const read: unknown[] = [];
  const lost = Promise.withResolvers<void>();
  const server = await startRawServer(
    (request) => {
      collect(request, read);
      request.on('close', lost.resolve);
    },
    0,
    { IncomingMessage: BodyRequest },
  );
  const socket = await openRaw(server.port);
  socket.write(`${head('POST /', { 'Content-Length': '4' })}ab`, () => socket.destroy());
  await lost.promise;
  await server.close();
  assert.equal(read, ['ab', 'gone']);
});

requests.run();
