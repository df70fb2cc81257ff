// Ports and connections, with real sockets.

import { spawn } from 'node:child_process';
import dns from 'node:dns';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { ListenError } from '../../../src/server/sockets/listeners.ts';
import { OpenConnections } from '../../../src/server/sockets/open-connections.ts';
import {
  accepts,
  openRaw,
  readAll,
  readUntil,
  sendRaw,
  untilClosed,
} from '../../helpers/clients/raw-http.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { messageOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter } from '../../helpers/time/turns.ts';
import { OpenedListeners, portOf } from '../opened-listeners.ts';

const test = suite('listeners');
const { later, open } = new OpenedListeners(test);

test('serves the same on every listener, and reports their URLs', async () => {
  const { urls, warnings } = await open([0, 0]);
  assert.is(new Set(urls).size, 2);
  for (const url of urls) assert.is(await (await fetch(url)).text(), 'hello');
  assert.equal(warnings, []);
});

test('reports how to reach a listener on 0.0.0.0 from this machine', async () => {
  const { urls, addresses } = await open([0], { host: '0.0.0.0' });
  const [, port] = /^http:\/\/127\.0\.0\.1:(\d+)$/.exec(String(urls[0])) ?? [];
  assert.equal(addresses, [`0.0.0.0:${port} (http://127.0.0.1:${port} here)`]);
  const one = await open([0]);
  assert.equal(one.addresses, one.urls);
});

test('fails with a line for each default port when both are taken', async () => {
  const ports = [await takenPort(), await takenPort()];
  const error = await open(ports, { portsDefaulted: true }).catch(String);
  const lines = ports.map(
    (port) =>
      `port ${port} on 127.0.0.1 is already in use; choose another with --port <port>, or --port 0 for a free one`,
  );
  assert.is(error, `ListenError: ${lines.join('\n')}`);
});

test('fails when a port that was asked for is taken, and leaves no other open', async () => {
  const [taken, free] = [await takenPort(), await freePort()];
  const message = await messageOf(open([free, taken]), ListenError);
  assert.match(message, new RegExp(`^port ${taken} on 127.0.0.1 is already in use; choose`));
  assert.is(await accepts({ port: free, host: '127.0.0.1' }), false);
});

test('says that no other port helps when the address is not one of this machine', async () => {
  const message = await messageOf(open([0], { host: '192.0.2.1' }), ListenError);
  assert.is(
    message,
    'cannot listen on 192.0.2.1: this machine does not have this address (EADDRNOTAVAIL); correct --host',
  );
});

test('says that the address of a name cannot be looked up now, which is no fault of the name', async () => {
  const failure = Object.assign(new Error('getaddrinfo EAI_AGAIN gate.example'), { code: 'EAI_AGAIN' });
  const lookup = mock.method(dns, 'lookup', (...given: unknown[]) => {
    const callback = given.at(-1);
    if (typeof callback === 'function') setImmediate(() => callback(failure));
  });
  try {
    assert.is(
      await messageOf(open([0], { host: 'gate.example' }), ListenError),
      'cannot listen on gate.example: its address cannot be looked up now (EAI_AGAIN); start again when DNS answers',
    );
  } finally {
    lookup.mock.restore();
  }
});

test('refuses headers above 16 KiB and accepts those below', async () => {
  const { urls } = await open([0]);
  const statusOf = async (bytes: number) => {
    const response = await fetch(String(urls[0]), { headers: { 'X-Large': 'x'.repeat(bytes) } });
    await response.text();
    return response.status;
  };
  assert.equal([await statusOf(15 * 1024), await statusOf(17 * 1024)], [200, 431]);
});

test('refuses too many headers, instead of dropping what came last', async () => {
  const { urls } = await open([0], {
    serve: ({ headers }, response) => void response.end(String(headers['x-last'])),
  });
  const answerTo = async (count: number) => {
    const names = Array.from({ length: count }, (_, index) => [`x-${index}`, '1']);
    // fetch adds a few headers.
    const headers = Object.fromEntries([...names, ['x-last', 'here']]);
    const response = await fetch(String(urls[0]), { headers });
    return `${response.status} ${await response.text()}`;
  };
  const found = [await answerTo(200), await answerTo(1_000), await answerTo(3_000)];
  assert.equal(found, ['200 here', '431 ', '431 ']);
});

test('refuses a request with two Host headers, or without one in HTTP/1.1, and accepts others', async () => {
  const port = portOf(await open([0]));
  const statusOf = async (hosts: string, version = '1.1') => {
    const answer = await sendRaw(port, `GET / HTTP/${version}\r\n${hosts}Connection: close\r\n\r\n`);
    return /^HTTP\/1.1 (\d+)/.exec(answer)?.[1];
  };
  const own = `Host: 127.0.0.1:${port}\r\n`;
  assert.equal(
    [await statusOf(own), await statusOf(`${own}hOsT: evil.example\r\n`), await statusOf(own + own)],
    ['200', '400', '400'],
  );
  assert.equal([await statusOf(''), await statusOf('', '1.0')], ['400', '200']);
  assert.is(await statusOf(`${own}Expect: anything\r\n`), '200');
});

test('refuses a target that is neither a path nor a URL, and serves the others', async () => {
  const port = portOf(await open([0], { serve: ({ url }, response) => void response.end(`target ${url}`) }));
  const answerTo = (target: string) =>
    sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  // The path of all but the last two cannot be read: the parser throws, or returns null.
  for (const target of [
    ...['http://[/', 'http://]/', 'http://[::1]a/', 'http://?', 'http://%@a/', '//@[/#', '/#a'],
    ...['foo://a/', '*a'],
  ])
    assert.match(await answerTo(target), /^HTTP\/1\.1 400 /, target);
  for (const target of [
    ...['/', '//a@[', '/%', "/a[]\\^`{|}'", '/?a=http://[/', '*', 'http://a', 'HTTP://localhost:80/a?b'],
    ...['https://[::1]:8080', 'http://127.0.0.1?a'],
  ])
    assert.match(await answerTo(target), `target ${target}`, target);
});

test('cuts a client that sends its body too slowly, and still serves others', async () => {
  const ends: string[] = [];
  const listeners = await open([0], {
    patience: { headersMs: 50, requestMs: 50, checkMs: 10 },
    serve: (request, response) => {
      if (request.method === 'GET') void response.end('hello');
      request.on('error', () => ends.push('broken off')).on('end', () => ends.push('complete'));
      request.resume();
    },
  });
  const port = portOf(listeners);
  const socket = await openRaw(port);
  socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n');
  const drops = setInterval(() => socket.write('x'), 5);
  const answer = await readAll(socket);
  clearInterval(drops);
  // A drop after the end may reset the connection before the answer is read.
  assert.match(answer, /^(?:HTTP\/1\.1 408 |$)/);
  assert.is(await (await fetch(String(listeners.urls[0]))).text(), 'hello');
  assert.is(ends[0], 'broken off');
});

test('closes hundreds of connections whose headers are late in several turns, each with 408', async () => {
  const closes = new TurnCounter();
  class Counted extends OpenConnections {
    override add(...[socket, ...more]: Parameters<OpenConnections['add']>): void {
      super.add(socket, ...more);
      socket.once('close', closes.note);
    }
  }
  const patience = { headersMs: 1_000, requestMs: 1_000, checkMs: 500 };
  const port = portOf(await open([0], { patience, connections: new Counted() }));
  const answers = await Promise.all(
    Array.from({ length: 400 }, async () => {
      const socket = await openRaw(port);
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nX: ');
      return readAll(socket);
    }),
  );
  const late = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n';
  assert.equal([new Set(answers), closes.all], [new Set([late]), 400]);
  assert.ok(closes.fullest <= 100, `${closes.fullest} in one turn`);
});

test('answers what is no HTTP, and headers that are too long, as Node does', async () => {
  const serve: RequestListener = (request, response) =>
    void request.resume().on('end', () => response.end('read'));
  const port = portOf(await open([0], { serve, headerBytes: 4_096 }));
  const end = 'Connection: close\r\n\r\n';
  assert.is(await sendRaw(port, 'nonsense\r\n\r\n'), `HTTP/1.1 400 Bad Request\r\n${end}`);
  const long = `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(8_000)}\r\n\r\n`;
  assert.is(await sendRaw(port, long), `HTTP/1.1 431 Request Header Fields Too Large\r\n${end}`);
  const chunk = `1;${'x'.repeat(20_000)}\r\nx\r\n0\r\n\r\n`;
  const body = `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`;
  assert.match(await sendRaw(port, body), /^HTTP\/1\.1 413 /);
});

test('drain lets open answers finish, then closes their connections, and serves new ones until close', async () => {
  const [started, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const listeners = await open([0], {
    serve: async ({ method }, response) => {
      started.resolve();
      if (method === 'GET') await finish.promise;
      response.end('late');
    },
  });
  const [agent, port] = [new Agent({ keepAlive: true }), portOf(listeners)];
  const answer = request(port, agent);
  await started.promise;

  listeners.drain();
  const late = await fetch(String(listeners.urls[0]), { method: 'HEAD' });
  assert.is(late.headers.get('connection'), 'close');
  const closed = listeners.close(60_000);
  assert.is(await accepts({ port, host: '127.0.0.1' }), false);
  finish.resolve();
  assert.is(await text(await answer), 'late');
  await closed;
  agent.destroy();
});

test('closes idle connections at once, and cuts those that do not end within its timeout', async () => {
  const listeners = await open([0], {
    serve: ({ url }, response) => void (url === '/idle' && response.end()),
  });
  const [idle, busy] = [await openRaw(portOf(listeners)), await openRaw(portOf(listeners))];
  const answer = readAll(busy);
  busy.write('GET /busy HTTP/1.1\r\nHost: localhost\r\n\r\n');
  idle.write('GET /idle HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await readUntil(idle, '200 OK');
  const closed = listeners.close(60_000);
  await untilClosed(idle);
  assert.is(busy.closed, false);
  await listeners.close(20);
  assert.is(await answer, '');
  await closed;
});

test('begins no request of a client that left before its connection was accepted', async () => {
  const served: unknown[] = [];
  const serve: RequestListener = ({ url }, response) => void response.end(served.push(url).toString());
  const port = portOf(await open([0], { serve }));
  const send = (path: string): Socket => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () =>
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
    );
    return socket;
  };
  const left = Array.from({ length: 20 }, () => {
    const socket = send('/left');
    return socket.once('connect', () => socket.destroySoon());
  });
  await Promise.all(left.map(untilClosed));
  assert.match(await readAll(send('/stays')), /^HTTP\/1\.1 200 /);
  assert.equal(served, ['/stays']);
});

test('reads few connections in a turn when their bodies come in many small pieces', async () => {
  const sockets = new Map<Socket, number>();
  let most = 0;
  const noteTurn = (): void => {
    let read = 0;
    for (const [socket, bytes] of sockets) {
      if (socket.bytesRead > bytes) read += 1;
      sockets.set(socket, socket.bytesRead);
    }
    most = Math.max(most, read);
    turn = setImmediate(noteTurn);
  };
  let turn = setImmediate(noteTurn);
  later(() => clearImmediate(turn));
  const serve: RequestListener = (request, response) => {
    sockets.set(request.socket, request.socket.bytesRead); // without what Node reads at first of each connection
    request.resume().on('end', () => response.end());
  };
  const port = portOf(await open([0], { serve }));
  const start = 'POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
  const body = `${`64\r\n${'x'.repeat(100)}\r\n`.repeat(15_000)}0\r\n\r\n`;
  const answers = await Promise.all(Array.from({ length: 20 }, () => sendRaw(port, start + body)));
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.ok(most > 0 && most < 10, `${most} connections in one turn`);
});

const CONNECTIONS = 3_000;
test.needs(
  longestBacklog() >= CONNECTIONS,
  'needs a Linux system that queues 3,000 connections (net.core.somaxconn)',
)('3,000 clients connect at once while the process is stopped', async () => {
  const server = await listenerInChild();
  server.process.kill('SIGSTOP');
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(server.port, '127.0.0.1'));
  later(() => sockets.map((socket) => socket.destroy()));
  // A connection without room in the queue tries again after 1 s, 3 s and so on, in vain: the test times out.
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
});

test.run();

/** Longest queue of connections that the system allows; 0 where it does not say. */
function longestBacklog(): number {
  const file = '/proc/sys/net/core/somaxconn';
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
}

/** A process that listens, and prints its URL. */
async function listenerInChild() {
  const module = JSON.stringify(new URL('../../../src/server/sockets/listeners.ts', import.meta.url).href);
  const wanted = '{ listeners: [{ host: "127.0.0.1", port: 0, label: "gateway" }], portsDefaulted: false }';
  const code = `import { openListeners } from ${module};
    const { urls } = await openListeners(${wanted}, { serve: (_, response) => response.end() });
    console.log(urls[0]);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  later(() => child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  return { process: child, port: Number(new URL(String(line).trim()).port) };
}

async function takenPort(): Promise<number> {
  return portOf(await open([0]));
}

async function request(port: number, agent: Agent): Promise<IncomingMessage> {
  const [response] = await once(get({ host: '127.0.0.1', port, agent }), 'response');
  return response;
}
