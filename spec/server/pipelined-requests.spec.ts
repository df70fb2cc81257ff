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
} from '../../src/server/sockets/waiting-answers.ts';
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

async function someTurns(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await turn();
}

/** Counts the requests that Node makes from now on, and those of them whose answers are not closed. */
function requestsMade(): { readonly count: number; readonly open: number } {
  const made = { count: 0, open: 0 };
  const note = (message: unknown): void => {
    made.count += 1;
    made.open += 1;
    (message as { readonly response: ServerResponse }).response.once('close', () => {
      made.open -= 1;
    });
  };
  subscribe('http.server.request.start', note);
  later(() => unsubscribe('http.server.request.start', note));
  return made;
}

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
  let begun = Promise.withResolvers<void>();
  const serve: RequestListener = ({ url }, response) => {
    response.on('close', () => closed.push(`${url}`));
    begun.resolve();
  };
  const port = portOf(await open([0], { serve }));
  for (const rest of ['GET /b HT', 'nonsense\r\n\r\n']) {
    begun = Promise.withResolvers();
    const socket = await openRaw(port);
    const all = readAll(socket);
    socket.write(getOf('/a'));
    await begun.promise; // it would not begin at all after the end
    socket.end(rest);
    assert.is(await all, '', rest);
  }
  assert.equal(closed, ['/a', '/a']);
});

test('a pipelined request begins after the answer before it, and not once its connection has ended', async () => {
  const events: string[] = [];
  const answers: ServerResponse[] = [];
  const port = portOf(
    await open([0], {
      serve: ({ url }, response) => {
        events.push(`begin ${url}`);
        answers.push(response);
        response.on('close', () => events.push(`close ${url}`));
      },
    }),
  );
  const made = requestsMade();
  const socket = await openRaw(port);
  socket.resume().write(['/a', '/b', '/c'].map(getOf).join(''));
  await becomes(() => made.count, 3);
  await someTurns();
  assert.equal(events, ['begin /a']);
  answers[0]?.end('answered');
  await until(() => events.length >= 3);
  assert.equal(events.toSorted(), ['begin /a', 'begin /b', 'close /a']);
  socket.destroy();
  await until(() => events.length >= 4);
  await becomes(() => made.open, 0); // also what Node holds of /c
  await someTurns();
  assert.equal(events.toSorted(), ['begin /a', 'begin /b', 'close /a', 'close /b']);
});

test('a caller waits for one request of each other connection, however many are pipelined there', async () => {
  const order: string[] = [];
  const serve: RequestListener = async ({ url }, response) => {
    order.push(`${url}`);
    await turn();
    response.end();
  };
  const port = portOf(await open([0], { serve }));
  const [fair, ...others] = await acceptedBy(port, 21);
  assert.ok(fair);
  order.length = 0;
  for (const other of others) other.resume().write(getOf('/other').repeat(MAX_PIPELINED_REQUESTS));
  await until(() => order.length > others.length);
  const before = order.length;
  fair.write(getOf('/fair'));
  await answersOn(fair, 1);
  // Those that wait, and those that begin before it is read.
  assert.ok(order.indexOf('/fair') - before <= 3 * others.length, String(order.indexOf('/fair') - before));
  assert.is(order.filter((path) => path === '/fair').length, 1);
});

/** Connections on which so many requests were made, and wait, the most on each but the last one. */
async function openWith(port: number, one: string, most: number, made: () => number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  const before = made();
  for (let sent = 0; sent < most; ) {
    const socket = await openRaw(port);
    sockets.push(socket);
    const count = Math.min(MAX_PIPELINED_REQUESTS, most - sent);
    socket.write(one.repeat(count));
    sent += count;
    await becomes(made, before + sent);
  }
  return sockets;
}

test('closes a connection with too many pipelined requests, and their answers', async () => {
  const port = portOf(await open([0], { serve: () => {}, headerBytes: 64 * 1024 }));
  const made = requestsMade();
  const request = (path: string, header: string) => `GET /${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`;
  const large = request('', `X-Large: ${'x'.repeat(60_000)}\r\n`);
  const fitting = Math.floor(MAX_PIPELINED_BYTES / (PIPELINED_REQUEST_BYTES + large.length));
  for (const [one, most] of [
    [request('', ''), MAX_PIPELINED_REQUESTS],
    [large, fitting],
    [request('x'.repeat(60_000), ''), fitting],
  ] as const) {
    const sockets = await openWith(port, one, most, () => made.open);
    const last = sockets.pop();
    assert.ok(last);
    // The first request of each connection does not wait. Unread requests reset the connection.
    last.on('error', () => {}).write(one.repeat(sockets.length + 3));
    await untilClosed(last);
    await becomes(() => made.open, sockets.length * MAX_PIPELINED_REQUESTS);
    for (const socket of sockets) socket.destroy();
    await becomes(() => made.open, 0);
  }
});

test('makes nothing more of what was read from a connection that it has closed, with bodies or without', async () => {
  const port = portOf(await open([0], { serve: () => {} }));
  for (const head of [
    'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST / HTTP/1.1\r\nContent-Length:1\r\nHost: x\r\n\r\nx',
    // Node would answer these itself, uncounted.
    'GET / HTTP/1.1\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: x\r\nExpect: anything\r\n\r\n',
  ]) {
    const made = requestsMade();
    const socket = await openRaw(port);
    socket.on('error', () => {}).write(head.repeat(MAX_PIPELINED_REQUESTS + 300));
    await untilClosed(socket);
    assert.ok(
      made.count > MAX_PIPELINED_REQUESTS && made.count < MAX_PIPELINED_REQUESTS + 5,
      String(made.count),
    );
  }
  assert.match(await sendRaw(port, 'GET / HTTP/1.1\r\n\r\n'), '400'); // the parser of that connection, used again
});

test('bounds the small pipelined requests of all connections', async () => {
  const port = portOf(await open([0], { serve: () => {} }));
  const made = requestsMade();
  const most = MAX_PIPELINED_BYTES / PIPELINED_REQUEST_BYTES;
  const each = MAX_PIPELINED_REQUESTS;
  const sockets: Socket[] = [];
  while (sockets.length * each < 1.5 * most) {
    const socket = await openRaw(port);
    sockets.push(socket.on('error', () => {}));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(each));
    for (let turns = 0; turns < 1_000 && !socket.destroyed && made.open < sockets.length * each; turns += 1)
      await turn();
  }
  assert.ok(made.open > most / 2 && made.open <= most + sockets.length, String(made.open));
  for (const socket of sockets) socket.destroy();
});

test('keeps connections open on which one request waits, however large the headers of others', async () => {
  const begun: IncomingMessage[] = [];
  const port = portOf(await open([0], { serve: (request) => begun.push(request), headerBytes: 64 * 1024 }));
  const made = requestsMade();
  const large = `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(60_000)}\r\n\r\n`;
  const fitting = Math.floor(MAX_PIPELINED_BYTES / (PIPELINED_REQUEST_BYTES + large.length));
  const sockets: Socket[] = [];
  for (const count of [fitting, 2, 2]) sockets.push(...(await openWith(port, large, count, () => made.open)));
  assert.not(begun.some(({ socket }) => socket.destroyed));
  for (const socket of sockets) socket.destroy();
});

/** Connections that the gateway has accepted: it accepts one in a turn. Closed at the end of the test. */
async function acceptedBy(port: number, count: number): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openRaw(port)));
  later(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(
    sockets.map((socket) => {
      socket.write(getOf('/first'));
      return answersOn(socket, 1);
    }),
  );
  return sockets;
}

/** How many requests begin in each turn of the event loop, of so many connections whose requests are read together. */
async function begunPerTurn(connections: number, idleConnections = 0): Promise<number[]> {
  const turns: number[] = [];
  let begun = 0;
  const serve: RequestListener = ({ url }, response) => {
    if (url !== '/first') {
      if (begun === 0) {
        setImmediate(() => {
          turns.push(begun);
          begun = 0;
        });
      }
      begun += 1;
    }
    response.end();
  };
  const port = portOf(await open([0], { serve }));
  await acceptedBy(port, idleConnections);
  const sockets = await acceptedBy(port, connections);
  for (const socket of sockets) socket.write(getOf('/'));
  await Promise.all(sockets.map((socket) => answersOn(socket, 1)));
  return turns;
}

async function answersOn(socket: Socket, count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let answers = '';
  const read = (chunk: Buffer): void => {
    answers += chunk;
    if (answers.split('200 OK').length > count) resolve();
  };
  socket.on('data', read);
  await promise;
  socket.off('data', read);
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

test('begins health checks before requests that wait, of pipelined ones the first', async () => {
  const order: string[] = [];
  const serve: RequestListener = ({ url }, response) => {
    order.push(`${url}`);
    response.end();
  };
  const port = portOf(await open([0], { serve }));
  const [other, ...sockets] = await acceptedBy(port, 201);
  assert.ok(other);
  order.length = 0;
  for (const socket of sockets) socket.write(getOf('/later'));
  other.write(getOf('/livez').repeat(2));
  await Promise.all([...sockets.map((socket) => answersOn(socket, 1)), answersOn(other, 2)]);
  assert.ok(order.indexOf('/livez') <= 64, String(order.indexOf('/livez')));
  assert.ok(order.lastIndexOf('/livez') > 100, String(order.lastIndexOf('/livez')));
});

test.run();
