// Several requests on one connection: their order, the faults among them, their bounds, and how many begin in one turn.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import {
  MAX_PIPELINED_BYTES,
  MAX_PIPELINED_REQUESTS,
  PIPELINED_REQUEST_BYTES,
} from '../../src/server/waiting-answers.ts';
import { openRaw, readAll, sendRaw, untilClosed } from '../helpers/clients/raw-http.ts';
import { becomes, until } from '../helpers/eventually.ts';
import { suite } from '../helpers/suite.ts';
import { OpenedListeners, portOf } from './opened-listeners.ts';

const test = suite('pipelined requests');
const { later, open } = new OpenedListeners(test);

/** Answers with the path of the request after everything that was sent with it has been read. */
const afterSomeTurns: RequestListener = async ({ url }, response) => {
  for (let left = 10; left > 0; left -= 1) await turn();
  response.end(url);
};

const getOf = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

test('answers the requests before one that is no HTTP, and then that one', async () => {
  const port = portOf(await open([0], { serve: afterSomeTurns, headerBytes: 4_096 }));
  const end = 'Connection: close\r\n\r\n';
  const post = 'POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  const faults = {
    'nonsense\r\n\r\n': '400 Bad Request',
    '\0': '400 Bad Request',
    [`GET /c HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(8_000)}\r\n\r\n`]: '431 Request Header Fields Too Large',
    [`${post}zz\r\n`]: '400 Bad Request',
    [`${post}1;${'x'.repeat(20_000)}\r\n`]: '413 Payload Too Large',
  };
  for (const [fault, status] of Object.entries(faults)) {
    const answer = await sendRaw(port, `${getOf('/a')}${getOf('/b')}${fault}`);
    assert.match(
      answer,
      /^HTTP\/1\.1 200 OK\r\n.*\/aHTTP\/1\.1 200 OK\r\n.*\/bHTTP\/1\.1 4/s,
      fault.slice(0, 30),
    );
    assert.ok(answer.endsWith(`HTTP/1.1 ${status}\r\n${end}`), answer.slice(-80));
  }
});

test('answers a request that takes longer than the headers of the next one may, and then those with 408', async () => {
  const answers: ServerResponse[] = [];
  const port = portOf(
    await open([0], {
      patience: { headersMs: 50, requestMs: 50, checkMs: 10 },
      serve: (_, response) => void answers.push(response),
    }),
  );
  const socket = await openRaw(port);
  const all = readAll(socket);
  socket.write(`${getOf('/a')}GET /b HTTP/1.1\r\nHost: `);
  await sendRaw(port, 'GET /later HTTP/1.1\r\nHost: '); // it is late after /b, and closed
  answers[0]?.end('answered');
  assert.match(await all, /^HTTP\/1\.1 200 OK\r\n.*answeredHTTP\/1\.1 408 Request Timeout\r\n/s);
});

test('sends nothing to a client that ends its connection within a request behind another one', async () => {
  const closed: string[] = [];
  const port = portOf(
    await open([0], { serve: ({ url }, response) => void response.on('close', () => closed.push(`${url}`)) }),
  );
  for (const rest of ['GET /b HT', 'nonsense\r\n\r\n']) {
    const socket = await openRaw(port);
    const all = readAll(socket);
    socket.end(getOf('/a') + rest);
    assert.is(await all, '', rest);
  }
  assert.equal(closed, ['/a', '/a']);
});

test('closes the answers of a connection that ends, also pipelined ones before their turn, once', async () => {
  const events: string[] = [];
  const port = portOf(
    await open([0], {
      serve: ({ url }, response) => {
        events.push(`begin ${url}`);
        response.on('close', () => events.push(`close ${url}`));
        if (url === '/b') response.end('answered');
      },
    }),
  );
  const socket = await openRaw(port);
  socket.write(['/a', '/b', '/c'].map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
  await until(() => events.length >= 3);
  socket.destroy();
  await until(() => events.length >= 6);
  for (let turns = 0; turns < 20; turns += 1) await turn();
  assert.equal(events.toSorted(), ['begin /a', 'begin /b', 'begin /c', 'close /a', 'close /b', 'close /c']);
});

/** Connections on which so many requests have begun, and wait, the most on each but the last one. */
async function openWith(port: number, one: string, most: number, begun: () => number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  const before = begun();
  for (let sent = 0; sent < most; ) {
    const socket = await openRaw(port);
    sockets.push(socket);
    const count = Math.min(MAX_PIPELINED_REQUESTS, most - sent);
    socket.write(one.repeat(count));
    sent += count;
    await becomes(begun, before + sent);
  }
  return sockets;
}

test('closes a connection with too many pipelined requests, and their answers', async () => {
  const unanswered = new Set<ServerResponse>();
  const serve: RequestListener = (_, response) => {
    unanswered.add(response);
    response.once('close', () => unanswered.delete(response));
  };
  const port = portOf(await open([0], { serve, headerBytes: 64 * 1024 }));
  const request = (path: string, header: string) => `GET /${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`;
  const large = request('', `X-Large: ${'x'.repeat(60_000)}\r\n`);
  const fitting = Math.floor(MAX_PIPELINED_BYTES / (PIPELINED_REQUEST_BYTES + large.length));
  for (const [one, most] of [
    [request('', ''), MAX_PIPELINED_REQUESTS],
    [large, fitting],
    [request('x'.repeat(60_000), ''), fitting],
  ] as const) {
    const sockets = await openWith(port, one, most, () => unanswered.size);
    const last = sockets.pop();
    assert.ok(last);
    // The first request of each connection does not wait. Unread requests reset the connection.
    last.on('error', () => {}).write(one.repeat(sockets.length + 3));
    await untilClosed(last);
    await becomes(() => unanswered.size, sockets.length * MAX_PIPELINED_REQUESTS);
    for (const socket of sockets) socket.destroy();
    await becomes(() => unanswered.size, 0);
  }
});

test('makes nothing more of what was read from a connection that it has closed, with bodies or without', async () => {
  let made = 0;
  const count = (): void => {
    made += 1;
  };
  subscribe('http.server.request.start', count);
  later(() => unsubscribe('http.server.request.start', count));
  const port = portOf(await open([0], { serve: () => {} }));
  for (const head of [
    'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST / HTTP/1.1\r\nContent-Length:1\r\nHost: x\r\n\r\nx',
  ]) {
    made = 0;
    const socket = await openRaw(port);
    socket.on('error', () => {}).write(head.repeat(MAX_PIPELINED_REQUESTS + 300));
    await untilClosed(socket);
    assert.ok(made > MAX_PIPELINED_REQUESTS && made < MAX_PIPELINED_REQUESTS + 5, String(made));
  }
  assert.match(await sendRaw(port, 'GET / HTTP/1.1\r\n\r\n'), '400'); // the parser of that connection, used again
});

test('bounds the small pipelined requests of all connections', async () => {
  const unanswered = new Set<ServerResponse>();
  const serve: RequestListener = (_, response) => {
    unanswered.add(response);
    response.once('close', () => unanswered.delete(response));
  };
  const port = portOf(await open([0], { serve }));
  const most = MAX_PIPELINED_BYTES / PIPELINED_REQUEST_BYTES;
  const each = MAX_PIPELINED_REQUESTS;
  const sockets: Socket[] = [];
  while (sockets.length * each < 1.5 * most) {
    const socket = await openRaw(port);
    sockets.push(socket.on('error', () => {}));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(each));
    for (
      let turns = 0;
      turns < 1_000 && !socket.destroyed && unanswered.size < sockets.length * each;
      turns += 1
    )
      await turn();
  }
  assert.ok(unanswered.size > most / 2 && unanswered.size <= most + sockets.length, String(unanswered.size));
  for (const socket of sockets) socket.destroy();
});

test('keeps connections open on which one request waits, however large the headers of others', async () => {
  const begun: IncomingMessage[] = [];
  const port = portOf(await open([0], { serve: (request) => begun.push(request), headerBytes: 64 * 1024 }));
  const large = `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(60_000)}\r\n\r\n`;
  const fitting = Math.floor(MAX_PIPELINED_BYTES / (PIPELINED_REQUEST_BYTES + large.length));
  const sockets: Socket[] = [];
  for (const count of [fitting, 2, 2])
    sockets.push(...(await openWith(port, large, count, () => begun.length)));
  assert.not(begun.some(({ socket }) => socket.destroyed));
  for (const socket of sockets) socket.destroy();
});

/** How many requests begin in each turn of the event loop that are read together, from as few connections as may send so many. */
async function begunPerTurn(requests: number, idleConnections = 0, path = '/'): Promise<number[]> {
  const turns: number[] = [];
  let begun = 0;
  const listeners = await open([0], {
    serve: (_, response) => {
      if (begun === 0) {
        setImmediate(() => {
          turns.push(begun);
          begun = 0;
        });
      }
      begun += 1;
      response.end();
    },
  });
  const port = portOf(listeners);
  for (let count = 0; count < idleConnections; count += 1) {
    const idle = await openRaw(port);
    later(() => idle.destroy());
  }
  const sockets: Socket[] = [];
  for (let count = 0; count < requests; count += MAX_PIPELINED_REQUESTS) {
    const socket = await openRaw(port);
    later(() => socket.destroy());
    sockets.push(socket);
  }
  const each = requests / sockets.length;
  for (const socket of sockets) socket.write(getOf(path).repeat(each));
  await Promise.all(sockets.map((socket) => answersOn(socket, each)));
  return turns;
}

async function answersOn(socket: Socket, count: number): Promise<void> {
  let answers = '';
  for await (const chunk of socket) {
    answers += chunk;
    if (answers.split('200 OK').length > count) return;
  }
}

test('begins up to 64 requests per turn of the event loop, also beside hundreds of idle connections', async () => {
  const fullest = Math.max(...(await begunPerTurn(100, 300)));
  assert.ok(fullest > 2 && fullest <= 64, String(fullest));
});

test('begins at most 2 requests per turn while 256 wait', async () => {
  const [first = 0, ...others] = await begunPerTurn(400);
  const whileManyWait = others.slice(0, Math.floor((400 - first - 256) / 2));
  assert.ok(whileManyWait.length >= 40, `${first} began at first`);
  assert.is(Math.max(...whileManyWait), 2);
});

test('begins health checks before requests that wait', async () => {
  const order: (string | undefined)[] = [];
  const listeners = await open([0], {
    serve: ({ url }, response) => {
      order.push(url);
      response.end();
    },
  });
  const [socket, other] = [await openRaw(portOf(listeners)), await openRaw(portOf(listeners))];
  const paths = Array.from({ length: 70 }, (_, index) => `/${index}`);
  socket.write(paths.map(getOf).join(''));
  other.write(getOf('/livez'));
  await Promise.all([answersOn(socket, paths.length), answersOn(other, 1)]);
  assert.ok(order.indexOf('/livez') <= 64, String(order.indexOf('/livez')));
  for (const each of [socket, other]) each.destroy();
});

test('pipelined health checks begin in turns, as others do', async () => {
  const fullest = Math.max(...(await begunPerTurn(100, 0, '/livez')));
  assert.ok(fullest <= 65, `${fullest} in one turn`);
});

test.run();
