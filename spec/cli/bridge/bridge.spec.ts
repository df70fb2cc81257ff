// The bridge between one client and an endpoint that fails. The endpoint is a small HTTP server; whole programs are in
// spec/system/clients/bridge.spec.ts.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import { Bridge } from '../../../src/cli/bridge/bridge.ts';
import { GatewayLink } from '../../../src/cli/bridge/gateway-link.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { initialize, modern } from '../../helpers/clients/mcp-messages.ts';
import { eventually } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { serverFor } from '../commands/against-gateway.ts';

const test = suite('the bridge');
const serve = serverFor(test);
const INITIALIZED = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}';
const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';

async function open(listener: RequestListener, refusedMs?: number, prove?: () => Promise<void>) {
  const url = await serve(listener);
  const [lines, said]: [string[], string[]] = [[], []];
  const log = (text: string) => void said.push(text);
  const credentials = { headers: {}, refused: String, name: 'x', ...(prove && { prove }) };
  const link = new GatewayLink(`${url}/mcp/x`, () => credentials, log, 50);
  const write = async (line: string) => void lines.push(line);
  const bridge = new Bridge({ link, write, log, ...(refusedMs === undefined ? {} : { refusedMs }) });
  return { bridge, lines, said };
}

test('opens the stream of the server again after the gateway was away or busy for too long, or refused it', async () => {
  let streams = 0;
  const { bridge, lines, said } = await open((request, response) => {
    if (request.method === 'DELETE') response.end();
    else if (request.method === 'POST') {
      request.resume();
      response.writeHead(200, { 'mcp-session-id': 's', 'content-type': 'application/json' });
      response.end(streams === 0 && lines.length === 0 ? INITIALIZED : '');
    } else {
      streams += 1;
      if (streams < 3) request.socket.destroy();
      else if (streams < 6) response.writeHead([503, 401, 429][streams - 3] ?? 500).end();
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${CHANGED}\n\n`);
    }
  }, 10);
  try {
    bridge.receive(JSON.stringify(initialize()));
    bridge.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    assert.ok(await eventually(async () => lines.includes(CHANGED), Boolean), said.join('\n'));
    assert.match(said.join('\n'), 'cannot be reached');
  } finally {
    await bridge.close({ isImmediate: true });
  }
});

test('opens the session of a client that only listens once that is possible, however often it failed before', async () => {
  let session = 'a';
  let refusals = 0;
  const { bridge, lines } = await open(async (request, response) => {
    const body = (await request.toArray()).join('');
    const { 'mcp-session-id': named = session } = request.headers;
    const isOpening = body.includes('"initialize"');
    if (isOpening && session === 'b') refusals += 1;
    if (isOpening && session === 'b' && refusals < 4) return response.writeHead(503).end();
    if (named !== session) return response.writeHead(404).end();
    response.writeHead(200, {
      'mcp-session-id': session,
      'content-type': request.method === 'GET' ? 'text/event-stream' : 'application/json',
    });
    if (request.method !== 'GET') return response.end(isOpening ? INITIALIZED : '');
    if (session === 'b') return response.write(`data: ${CHANGED}\n\n`);
    session = 'b'; // the gateway is started again
    return response.end('id: 1\ndata:\n\n');
  }, 10);
  try {
    bridge.receive(JSON.stringify(initialize()));
    bridge.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    assert.ok(await eventually(async () => lines.includes(CHANGED), Boolean));
    assert.is(refusals, 4);
  } finally {
    await bridge.close({ isImmediate: true });
  }
});

test('waits before it asks for the stream again while another program has the address of the gateway', async () => {
  let [posts, refusals] = [0, 0];
  const prove = async () => {
    if (posts < 2 || refusals === 100) return;
    refusals += 1;
    throw new CommandFailure('this is not the gateway');
  };
  const listener: RequestListener = (request, response) => {
    request.resume();
    if (request.method === 'POST') posts += 1;
    const type = request.method === 'GET' ? 'text/event-stream' : 'application/json';
    response.writeHead(200, { 'mcp-session-id': 's', 'content-type': type });
    if (request.method === 'GET') response.write(`data: ${CHANGED}\n\n`);
    else response.end(lines.length === 0 ? INITIALIZED : '');
  };
  const { bridge, lines } = await open(listener, 5, prove);
  try {
    bridge.receive(JSON.stringify(initialize()));
    assert.ok(await eventually(async () => lines.includes(INITIALIZED), Boolean));
    bridge.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    // With the shorter wait of a stream that has ended it takes 50 seconds.
    assert.ok(await eventually(async () => lines.includes(CHANGED), Boolean));
    assert.is(refusals, 100);
  } finally {
    await bridge.close({ isImmediate: true });
  }
});

test('waits ever longer for streams that end at once, until one brings a message', async () => {
  const askedAtMs: number[] = [];
  const { bridge } = await open((request, response) => {
    request.resume();
    if (request.method === 'GET') askedAtMs.push(performance.now());
    const type = request.method === 'GET' ? 'text/event-stream' : 'application/json';
    response.writeHead(200, { 'mcp-session-id': 's', 'content-type': type });
    if (request.method === 'POST') response.end(INITIALIZED);
    else response.end(askedAtMs.length === 3 ? `data: ${CHANGED}\n\n` : 'id: 1\ndata:\n\n');
  });
  try {
    bridge.receive(JSON.stringify(initialize()));
    bridge.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    assert.ok(await eventually(async () => askedAtMs.length === 4, Boolean));
    const waits = askedAtMs.map((atMs, index) => atMs - (askedAtMs[index - 1] ?? 0)).slice(1);
    // A timer may be late, but not early.
    assert.ok((waits[0] ?? 0) >= 495 && (waits[1] ?? 0) >= 990, `${waits}`);
  } finally {
    await bridge.close({ isImmediate: true });
  }
});

test('adds the headers that tools want to calls of a modern client, which sends none on standard input', async () => {
  const seen: unknown[] = [];
  const region = { type: 'string', 'x-mcp-header': 'Region' };
  const tools = [{ name: 'where', inputSchema: { type: 'object', properties: { region } } }];
  const { bridge, lines } = await open(async (request, response) => {
    const { id, method } = JSON.parse((await request.toArray()).join(''));
    if (method === 'tools/call') seen.push(request.headers['mcp-param-region']);
    const result = method === 'tools/list' ? { tools } : { content: [] };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  const send = async (id: number, method: string, params: Parameters<typeof modern>[1]) => {
    bridge.receive(JSON.stringify({ ...modern(method, params).body, id }));
    await eventually(async () => lines.length === id, Boolean);
  };
  await send(1, 'tools/list', {});
  await send(2, 'tools/call', { name: 'where', arguments: { region: 'Nürnberg' } });
  await send(3, 'tools/call', { name: 'other', arguments: { region: 'x' } });
  await bridge.close();
  assert.equal(seen, ['=?base64?TsO8cm5iZXJn?=', undefined]);
  assert.equal(JSON.parse(lines[0] ?? '').result.tools, tools);
});

test('answers a request with an error, and passes nothing on, when the address is not a gateway', async () => {
  const { bridge, lines } = await open((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>\n<p>Welcome</p>');
  });
  bridge.receive(JSON.stringify(initialize()));
  await bridge.close();
  assert.is(lines.length, 1, lines.join('\n'));
  const { id, error } = JSON.parse(lines[0] ?? '');
  assert.equal([id, typeof error.message], [0, 'string']);
});

test('passes on the refusal of a session that is unknown as soon as it is open', async () => {
  let opened = 0;
  const { bridge, lines } = await open(async (request, response) => {
    const body = (await request.toArray()).join('');
    if (!body.includes('"initialize"')) {
      response.writeHead(body.includes('initialized') ? 202 : 404);
      return response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"unknown session"}}');
    }
    opened += 1;
    response.writeHead(200, { 'mcp-session-id': `s${opened}` });
    return response.end(INITIALIZED);
  });
  bridge.receive(JSON.stringify(initialize()));
  bridge.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  bridge.receive('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  assert.ok(await eventually(async () => lines.length === 2, Boolean), lines.join('\n'));
  const { id, error } = JSON.parse(lines[1] ?? '');
  assert.equal([id, error.code, opened], [1, -32001, 2]);
  await bridge.close({ isImmediate: true });
});

test('answers that it is unknown whether a call took effect when its answer breaks off, or its stream cannot be continued', async () => {
  for (const type of ['application/json', 'text/event-stream']) {
    const { bridge, lines } = await open((request, response) => {
      if (request.headers['last-event-id'] !== undefined) return void request.socket.destroy();
      response.writeHead(200, { 'content-type': type, 'content-length': 99 });
      return void response.write('id: 1\ndata:\n\n', () => response.destroy());
    });
    bridge.receive('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}');
    assert.ok(await eventually(async () => lines.length === 1, Boolean));
    assert.equal(JSON.parse(lines[0] ?? '').error.data, { delivered: 'unknown' }, type);
    await bridge.close();
  }
});

test('continues an answer whose stream breaks off again before its next event, until the stream ends', async () => {
  const answer = '{"jsonrpc":"2.0","id":1,"result":{}}';
  for (const isAnswered of [true, false]) {
    const continued: unknown[] = [];
    const { bridge, lines } = await open((request, response) => {
      const { 'last-event-id': after } = request.headers;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (after === undefined)
        return void response.write('retry: 1\nid: 1\ndata:\n\n', () => response.destroy());
      const isSecond = continued.push(after) === 2;
      if (isSecond) return void response.end(isAnswered ? `data: ${answer}\n\n` : '');
      return void response.write('retry: 1\n\n', () => response.destroy());
    });
    bridge.receive('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}');
    assert.ok(await eventually(async () => lines.length === 1, Boolean));
    assert.equal(continued, ['1', '1']);
    if (isAnswered) assert.equal(lines, [answer]);
    else assert.equal(JSON.parse(lines[0] ?? '').error.data, { delivered: 'unknown' });
    await bridge.close();
  }
});

test('sets the state of its client again in a new session, and repeats no call that perhaps took effect', async () => {
  const sent: string[] = [];
  let session = 'a';
  const { bridge, lines } = await open(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { id, method = request.method, params = {} } = body === '' ? {} : JSON.parse(body);
    const { 'mcp-session-id': named = session } = request.headers;
    if (named === session) sent.push(`${session} ${method} ${params.uri ?? params.level ?? ''}`.trim());
    response.statusCode = named === session && request.headers['last-event-id'] === undefined ? 200 : 404;
    if (method === 'GET' && response.statusCode === 200) response.statusCode = 405;
    response.setHeader('mcp-session-id', session).setHeader('content-type', 'application/json');
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } });
    if (method !== 'tools/call') response.end(id === undefined ? '' : answer);
    else response.setHeader('content-type', 'text/event-stream').end(params.cut);
  });
  const ask = async (method: string, params = {}) => {
    const id = lines.length + 1;
    bridge.receive(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    assert.ok(await eventually(async () => lines.length === id, Boolean), method);
    return JSON.parse(lines.at(-1) ?? '');
  };
  try {
    await ask('initialize');
    for (const uri of ['kept', 'left']) await ask('resources/subscribe', { uri });
    await ask('resources/unsubscribe', { uri: 'left' });
    await ask('logging/setLevel', { level: 'info' });
    session = 'b';
    await ask('tools/list');
    const here = () => sent.filter((each) => each.startsWith('b ') && !each.endsWith('GET'));
    const state = 'b initialize,b resources/subscribe kept,b logging/setLevel info';
    assert.is(here().join(), `${state},b tools/list`);
    for (const cut of [': nothing\n\n', 'id: 1\ndata:\n\n']) {
      const before = here().length;
      const { error } = await ask('tools/call', { name: 'pay', cut });
      assert.equal([error.data, here().length], [{ delivered: 'unknown' }, before + 1]);
    }
  } finally {
    await bridge.close({ isImmediate: true });
  }
  assert.is(sent.at(-1), 'b DELETE');
});

test('opens a lost session again as a whole after the state of its client could not be set', async () => {
  let [opened, isBroken] = [0, false];
  const sent: string[] = [];
  const { bridge, lines } = await open(async (request, response) => {
    const { id, method = '' } = JSON.parse((await request.toArray()).join('') || '{}');
    if (method === 'initialize') opened += 1;
    const { 'mcp-session-id': named = `s${opened}` } = request.headers;
    if (method === 'resources/subscribe' && isBroken) return request.socket.destroy();
    if (method === '') return response.writeHead(405).end();
    if (named === 's1' && sent.includes('tools/list')) return response.writeHead(404).end();
    sent.push(method);
    response.setHeader('mcp-session-id', named).setHeader('content-type', 'application/json');
    return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } }));
  });
  const ask = async (method: string) => {
    const id = lines.length + 1;
    bridge.receive(JSON.stringify({ jsonrpc: '2.0', id, method, params: {} }));
    assert.ok(await eventually(async () => lines.length === id, Boolean), method);
    return JSON.parse(lines.at(-1) ?? '');
  };
  try {
    for (const method of ['initialize', 'resources/subscribe', 'tools/list']) await ask(method);
    isBroken = true; // the gateway was started again, and ends once more
    assert.ok((await ask('tools/list')).error);
    isBroken = false;
    assert.ok((await ask('tools/list')).result);
    assert.equal(sent.slice(3), ['initialize', 'initialize', 'resources/subscribe', 'tools/list']);
  } finally {
    await bridge.close({ isImmediate: true });
  }
});

test('does not repeat the request of a client that initializes again while its lost session is reopened', async () => {
  let [opened, subscribed] = [0, 0];
  const held = Promise.withResolvers<void>();
  const { bridge, lines } = await open(async (request, response) => {
    const { id, method = '' } = JSON.parse((await request.toArray()).join('') || '{}');
    if (method === 'initialize') opened += 1;
    else if (method === 'resources/subscribe' && ++subscribed === 2) await held.promise;
    else if (method === 'tools/list') response.statusCode = 404;
    else if (method === '') response.statusCode = 405;
    response.setHeader('mcp-session-id', `s${opened}`).setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } }));
  });
  const answered = (count: number) => eventually(async () => lines.length === count, Boolean, 4_000);
  bridge.receive(JSON.stringify(initialize()));
  bridge.receive('{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a"}}');
  assert.ok(await answered(2));
  bridge.receive('{"jsonrpc":"2.0","id":2,"method":"tools/list"}');
  assert.ok(await eventually(async () => subscribed === 2, Boolean));
  bridge.receive(JSON.stringify(initialize()));
  assert.ok(await answered(3));
  held.resolve();
  assert.ok(await answered(4));
  await bridge.close({ isImmediate: true });
  assert.is(opened, 3);
});

test('does not repeat a request that its client has cancelled, and does not answer it', async () => {
  let asked = 0;
  let hasEnded = false;
  const { bridge, lines } = await open(async (request, response) => {
    const body = (await request.toArray()).join('');
    const isRead = body.includes('resources/read');
    response.writeHead(body.includes('notifications/') ? 202 : 200, {
      'mcp-session-id': 's',
      'content-type': isRead ? 'text/event-stream' : 'application/json',
    });
    if (!isRead) return response.end(body.includes('"initialize"') ? INITIALIZED : '');
    asked += 1;
    response.on('close', () => (hasEnded = true));
    response.write(': begun\n\n');
    return bridge.receive('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}');
  });
  bridge.receive(JSON.stringify(initialize()));
  bridge.receive('{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"test://a"}}');
  assert.ok(await eventually(async () => hasEnded, Boolean), 'although the gateway does not end its answer');
  await bridge.close(); // once all requests have ended
  assert.equal([asked, lines.length], [1, 1]);
});

test('a refusal without an end is answered by its status', async () => {
  const { bridge, lines } = await open((request, response) => {
    request.resume();
    response.writeHead(request.method === 'POST' ? 403 : 405);
    const more = () => {
      while (response.write(' '.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  });
  bridge.receive(JSON.stringify(initialize()));
  assert.ok(await eventually(async () => lines.length === 1, Boolean));
  assert.match(lines.join(), 'status 403');
  await bridge.close({ isImmediate: true });
});

test.run();
