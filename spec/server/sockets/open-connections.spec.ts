// Which connections are closed when there are too many, or when unfinished requests hold too many bytes; with real sockets.

import { once } from 'node:events';
import { open } from 'node:fs/promises';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { openListeners } from '../../../src/server/sockets/listeners.ts';
import { type ConnectionBounds, OpenConnections } from '../../../src/server/sockets/open-connections.ts';
import { openRaw, readUntil, untilClosed } from '../../helpers/clients/raw-http.ts';
import { until } from '../../helpers/eventually.ts';
import { collectGarbage } from '../../helpers/garbage.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('connections');
const cleanups: (() => unknown)[] = [];
test.after.each(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const PARTIAL = 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ';
const POST = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n';
const HEADERS = 16 * 1024;

/** A port that answers GET, except `/open`, and reads bodies as those of unknown callers, except at `/known`. */
async function start(
  bounds: Partial<ConnectionBounds>,
  { host = '127.0.0.1', onRequest = (_request: object): unknown => undefined } = {},
) {
  const connections = new OpenConnections(bounds);
  const open: ServerResponse[] = [];
  const serve: RequestListener = (request, response) => {
    onRequest(request);
    if (request.url !== '/known') connections.receive(response);
    if (request.url === '/large') {
      open.push(response);
      response.end(Buffer.alloc(50_000_000));
    } else if (request.method === 'GET' && request.url !== '/open') response.end('hello');
    else open.push(response);
    request.on('error', () => {}).resume();
  };
  const listeners = await openListeners(
    { listeners: [{ host, port: 0, label: 'gateway' }], portsDefaulted: false },
    { serve },
    { connections },
  );
  cleanups.push(() => listeners.close(0));
  const port = Number(new URL(String(listeners.urls[0])).port);
  /** Opens a connection that the port has accepted, and which has received these bytes. */
  const client = async (bytes = '', address = '127.0.0.1'): Promise<Socket> => {
    const socket = address === '127.0.0.1' ? await openRaw(port) : connect(port, address);
    cleanups.push(() => socket.destroy());
    if (bytes === GET) {
      socket.write(bytes);
      await readUntil(socket, 'hello');
    } else if (bytes !== '') {
      const already = open.length;
      socket.write(bytes);
      if (/ \/open | \/known |^POST/.test(bytes)) await until(() => open.length !== already);
      else for (let turns = 0; turns < 50; turns += 1) await turn();
    }
    socket.on('error', () => {}).resume();
    return socket;
  };
  return { connections, client, open };
}

test('a body in too many small pieces ends the unfinished requests of its address, and nothing else', async () => {
  const { client } = await start({}, { host: '::' });
  const stream = await client(GET.replace('/', '/open'));
  const idle = await client(GET);
  const unfinished = await client(POST);
  const slow = await client(PARTIAL);
  const elsewhere = await client(PARTIAL, '::1');
  const crumbs = await client('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  crumbs.write('1\r\n \r\n'.repeat(20_000));
  for (const socket of [crumbs, unfinished, slow]) await untilClosed(socket);
  const fresh = await client(GET);
  assert.equal(
    [stream, idle, elsewhere, fresh].map(({ closed }) => closed),
    [false, false, false, false],
  );
});

test('an idle connection keeps nothing of its last request', async () => {
  const requests: WeakRef<object>[] = [];
  const { client } = await start({}, { onRequest: (request) => requests.push(new WeakRef(request)) });
  const sockets = await Promise.all(Array.from({ length: 20 }, () => client(GET)));
  await until(() => {
    collectGarbage();
    return requests.filter((request) => request.deref() !== undefined).length <= 2;
  });
  assert.equal([requests.length, sockets.every(({ closed }) => !closed)], [20, true]);
});

test('over the limit of one address the oldest without a finished request is closed, then the oldest idle one', async () => {
  const { client } = await start({ perAddress: 4 });
  const stream = await client(GET.replace('/', '/open'));
  const idle = await client(GET);
  const silent = await client();
  const slow = await client(PARTIAL);
  const fifth = await client(GET);
  await untilClosed(silent);
  assert.equal([stream.closed, idle.closed, slow.closed, fifth.closed], [false, false, false, false]);
  const sixth = await client(GET);
  await untilClosed(slow);
  assert.equal([stream.closed, idle.closed, sixth.closed], [false, false, false]);
  await client(GET);
  await untilClosed(idle);
  assert.equal([stream.closed, fifth.closed], [false, false]);
});

test('an address whose connections are all in use is refused another one', async () => {
  const { client } = await start({ perAddress: 2 });
  const streams = [await client(GET.replace('/', '/open')), await client(POST.replace('/', '/known'))];
  await untilClosed(await client());
  assert.equal(
    streams.map(({ closed }) => closed),
    [false, false],
  );
});

test('an unknown caller that does not read its answer is closed for others', async () => {
  const { client, open } = await start({ total: 2 });
  const slow = await client(GET.replace('/', '/large'));
  slow.pause();
  const stream = await client(GET.replace('/', '/open'));
  const third = await client(GET);
  await until(() => open[0]?.closed === true);
  assert.equal([stream.closed, third.closed], [false, false]);
  slow.destroy();
});

test('the oldest idle connection is the one whose last answer is longest ago', async () => {
  const { client } = await start({ perAddress: 2 });
  const [one, two] = [await client(GET), await client(GET)];
  one.write(GET);
  await once(one, 'data');
  for (let turns = 0; turns < 50; turns += 1) await turn();
  await client(GET);
  await untilClosed(two);
  assert.is(one.closed, false);
});

test('one that began another request after its answer has not finished a request', async () => {
  const { client } = await start({ perAddress: 2 });
  const idle = await client(GET);
  const slow = await client(GET);
  slow.write(PARTIAL);
  for (let turns = 0; turns < 50; turns += 1) await turn();
  await client(GET);
  await untilClosed(slow);
  assert.is(idle.closed, false);
});

test('IPv4 and IPv4-mapped addresses are one; a trusted proxy has no limit of its own', async () => {
  const { client } = await start({ perAddress: 1 }, { host: '::' });
  const first = await client('', '::ffff:127.0.0.1');
  await client(GET);
  await untilClosed(first);
  const trusting = await start({ perAddress: 1, trustedProxies: ['127.0.0.0/8'] });
  const [one, two] = [await trusting.client(), await trusting.client(GET)];
  assert.equal([one.closed, two.closed], [false, false]);
});

test('the limit of all addresses counts trusted proxies', async () => {
  const { client } = await start({ total: 2, trustedProxies: ['127.0.0.0/8'] });
  const first = await client(PARTIAL);
  await client(GET);
  await client(GET);
  await untilClosed(first);
});

test('over the limit of all addresses one that has just arrived is kept, and an idle one is closed', async () => {
  const { client } = await start({ total: 3 });
  const idle = [await client(GET), await client(GET), await client(GET)];
  const arrived = await client();
  await untilClosed(idle[0] as Socket);
  const next = await client(GET);
  await untilClosed(idle[1] as Socket);
  assert.equal([arrived.closed, next.closed, idle[2]?.closed], [false, false, false]);
  arrived.write(GET);
  await readUntil(arrived, 'hello');
});

test('unfinished headers and bodies of unknown callers are bounded in sum, oldest first', async () => {
  const { client, connections } = await start({ unfinishedBytes: 3 * HEADERS });
  const text = 'x'.repeat(12_000);
  const idle = await client(GET);
  const known = await client(`${POST.replace('/', '/known')}${text.repeat(4)}`);
  const headers = await client(PARTIAL + text);
  const body = await client(POST + text);
  const again = await client(GET);
  again.write(PARTIAL + text);
  for (let turns = 0; turns < 200; turns += 1) await turn();
  connections.cutUnfinished();
  for (let turns = 0; turns < 50; turns += 1) await turn();
  assert.equal([headers.closed, body.closed, again.closed], [false, false, false]);
  const last = await client(PARTIAL + text + text.slice(0, 4_000));
  connections.cutUnfinished();
  await untilClosed(headers);
  assert.equal(
    [idle, known, body, again, last].map(({ closed }) => closed),
    Array(5).fill(false),
  );
});

test('the discarded rest of a refused body counts as headers at most', async () => {
  const { client, connections, open } = await start({ unfinishedBytes: 3 * HEADERS });
  const refused = await client(POST);
  open[0]?.writeHead(413).end();
  const slow = await client(PARTIAL + 'x'.repeat(10_000));
  refused.write('x'.repeat(59_000));
  for (let turns = 0; turns < 200; turns += 1) await turn();
  connections.cutUnfinished();
  for (let turns = 0; turns < 50; turns += 1) await turn();
  assert.equal([refused.closed, slow.closed], [false, false]);
});

test('near the last file of the process the oldest idle ones are closed, and a new one when all are in use', async () => {
  const { client: refused } = await start({ files: 0 });
  await untilClosed(await refused());
  const probes = await Promise.all(Array.from({ length: 30 }, () => open('/dev/null')));
  const { client } = await start({ files: Math.max(...probes.map(({ fd }) => fd)) });
  for (const probe of probes) await probe.close(); // the client of each connection takes one, too
  const stream = await client(GET.replace('/', '/open'));
  const idle: Socket[] = [];
  while (idle.length < 30) idle.push(await client(GET));
  const [oldest] = idle;
  if (oldest !== undefined) await untilClosed(oldest);
  assert.equal([stream.closed, idle.at(-1)?.closed], [false, false]);
  assert.ok(idle.filter(({ closed }) => !closed).length < 20, 'other files stay free');
});

test('headers count as long as the body of a refused request is incomplete', async () => {
  const { client, connections, open } = await start({ unfinishedBytes: 2 * HEADERS });
  const large = POST.replace('Host', `X-Large: ${'x'.repeat(15_000)}\r\nHost`);
  const refused: Socket[] = [];
  while (refused.length < 3) {
    refused.push(await client(large));
    open.at(-1)?.writeHead(413).end();
  }
  for (let turns = 0; turns < 50; turns += 1) await turn();
  connections.cutUnfinished();
  const [oldest, ...others] = refused;
  if (oldest !== undefined) await untilClosed(oldest);
  assert.equal(
    others.map(({ closed }) => closed),
    [false, false],
  );
});

test.run();
