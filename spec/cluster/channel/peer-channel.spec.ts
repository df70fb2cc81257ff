// The peer channel between real listeners and clients in one process: what crosses and what does not. peer-callers.spec.ts has who may use it,
// absent-peers.spec.ts what happens to requests when the other node is away.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { InstanceListener } from '../../../src/cluster/channel/instances/instance-listener.ts';
import { INSTANCE_PATHS } from '../../../src/cluster/channel/peer-protocol.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import { TokenIssuer, TokenVerifier } from '../../../src/cluster/channel/trust/peer-tokens.ts';
import type { Principal } from '../../../src/domain/accounts/principal.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { openRaw, sendRaw, untilClosed } from '../../helpers/clients/raw-http.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { ADA, ask, Deployment, forward } from './peer-nodes.ts';

const test = suite('peer channel');
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;
let deployment: Deployment;
test.before.each(() => {
  deployment = new Deployment();
});
test.after.each(() => deployment.close());

/** The same user, through an MCP client that it has allowed. */
const CLIENT: Principal = {
  ...{ id: 'grant:g1@u1', kind: 'user', name: 'ada', userId: 'u1', scopes: new Set(['tools:call']) },
  client: {
    ...{ name: 'Example Client', countedId: 'user:u1', audience: '/mcp/demo' },
    obtainable: new Set(['tools:call']),
  },
};

test('a principal keeps its client and its holder, but not what the client could get', async () => {
  const seen: Principal[] = [];
  const a = await deployment.node(A, {});
  await deployment.node(B, {
    serve: (_, response, { principal }) => {
      seen.push(principal);
      response.end('{}');
    },
  });
  await ask(a, B, { target: '/mcp/demo', principal: CLIENT });
  assert.equal(seen, [{ ...CLIENT, client: { ...CLIENT.client, obtainable: new Set() } }]);
});

for (const isSecure of [false, true]) {
  test(`a request reaches the holder with its principal and without credentials (${isSecure ? 'TLS' : 'plain'})`, async () => {
    const seen: unknown[] = [];
    const a = await deployment.node(A, { isSecure });
    await deployment.node(B, {
      isSecure,
      serve: async (request, response, caller) => {
        const { 'peer-token': token, ...headers } = request.headers;
        seen.push(caller, request.method, request.url, headers, await text(request), typeof token);
        response
          .writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'x' })
          .end('{"ok":1}');
      },
    });
    const answer = await ask(a, B, {
      target: '/mcp/demo?sessionId=1',
      principal: ADA,
      body: '{"a":"\u00e9"}',
      headers: {
        ...{ authorization: 'Bearer secret', cookie: 'a=b', 'x-api-key': 'secret', host: 'public' },
        ...{ connection: 'close, x-odd', 'x-odd': '1', 'transfer-encoding': 'chunked', 'peer-hops': 'none' },
        ...{
          accept: 'text/event-stream',
          'mcp-session-id': 'an id',
          'mcp-param-a': 'b',
          'last-event-id': '7',
        },
        'content-type': 'application/json',
      },
    });
    assert.equal([answer.status, answer.text, answer.headers['mcp-session-id']], [200, '{"ok":1}', 'x']);
    const { hourlyLimit: _, ...principal } = ADA;
    const port = deployment.rows.get(B)?.address.split('://')[1];
    assert.equal(seen, [
      { principal, requestId: 'request-1', address: '192.0.2.7' },
      'POST',
      '/mcp/demo?sessionId=1',
      {
        ...{
          host: port,
          'peer-hops': 'session',
          'x-request-id': 'request-1',
          'peer-client-address': '192.0.2.7',
        },
        ...{
          accept: 'text/event-stream',
          'mcp-session-id': 'an id',
          'mcp-param-a': 'b',
          'last-event-id': '7',
        },
        ...{ 'content-type': 'application/json', 'content-length': '10' },
      },
      '{"a":"\u00e9"}',
      'string',
    ]);
  });
}

test('bodies and answers of some MiB cross, in parts as they come', async () => {
  const size = 3 * 1024 * 1024;
  const [a] = await deployment.pair(async (request, response) => {
    let bytes = 0;
    for await (const part of request) bytes += part.length;
    response.write(`${bytes} `);
    response.write('y'.repeat(size));
    response.end();
  });
  const { bytes, text: received } = await ask(a, B, { body: 'x'.repeat(size) });
  assert.equal([bytes, received.slice(0, 8)], [size + 8, `${size} `]);
});

test('an answer is passed on before it is complete, and the holder waits while the client does not read', async () => {
  let sent = 0;
  const stopped = Promise.withResolvers<void>();
  const [a] = await deployment.pair(async (_request, response) => {
    response.writeHead(200).flushHeaders();
    const part = Buffer.alloc(64 * 1024);
    while (sent < 64 * 1024 * 1024) {
      sent += part.length;
      if (response.write(part)) continue;
      stopped.resolve();
      await once(response, 'drain');
    }
    response.end();
  });
  let isPaused = true;
  const received = await forward(a, B, { method: 'GET', isPaused: () => isPaused });
  await received.head.promise;
  await stopped.promise;
  for (let turns = 0; turns < 200; turns += 1) await turn();
  assert.ok(sent < 32 * 1024 * 1024, `${sent} bytes were sent to a client that does not read`);
  isPaused = false;
  received.forwarding?.resume();
  await received.over.promise;
  assert.is(received.bytes, 64 * 1024 * 1024);
});

test('the holder is told when the client leaves, before and after the head', async () => {
  for (const isBegun of [false, true]) {
    const arrived = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    deployment = new Deployment();
    const [a] = await deployment.pair((_request, response) => {
      if (isBegun) response.writeHead(200).flushHeaders();
      response.on('close', () => closed.resolve());
      arrived.resolve();
    });
    const received = await forward(a, B);
    await arrived.promise;
    if (isBegun) await received.head.promise;
    received.forwarding?.cancel();
    await closed.promise;
    await deployment.close();
  }
});

test('an answer to a greeting whose proof is not ASCII is not from a node with the key', () => {
  const {
    tokens: [key],
  } = channelKeys([Buffer.from('a secret of these nodes, 32 bytes or more')]);
  const { answered } = new TokenIssuer(key, systemClock.now, () => A, B).greeting();
  const proof = '\u00e9'.repeat(43); // as many characters as a proof has
  assert.is(answered(JSON.stringify({ now_ms: systemClock.now(), proof })), false);
});

test('a request that took a hop is not taken on after another one of the same kind', async () => {
  const serve = (_request: IncomingMessage, response: ServerResponse) => response.end('served');
  const b = await deployment.node(B, { serve, instances: { request: serve, exchange: () => {} } });
  await deployment.node(A);
  const {
    tokens: [key],
  } = channelKeys([Buffer.from('a secret of these nodes, 32 bytes or more')]);
  const issuer = new TokenIssuer(key, systemClock.now, () => A, B);
  const verifier = new TokenVerifier(
    [key],
    systemClock.now,
    () => B,
    () => true,
  );
  const { text: greeting, answered } = issuer.greeting();
  answered(verifier.greet(greeting) ?? '');
  const token = issuer.tokenFor(ADA);
  const { conversation } = INSTANCE_PATHS;
  for (const [path, hops, status] of [
    ['/', ['session'], 200],
    ['/', ['session, session'], 421],
    ['/', ['session', 'session'], 421],
    ['/', [''], 421],
    [conversation, ['instance'], 200],
    [conversation, ['instance, instance'], 421],
    [conversation, ['instance', 'instance'], 421],
    [conversation, [], 421],
  ] as const) {
    const lines = hops.map((hop) => `Peer-Hops: ${hop}\r\n`).join('');
    const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nPeer-Token: ${token}\r\n${lines}\r\n`;
    assert.match(await sendRaw(b.listener.port, head), `HTTP/1.1 ${status} `, `${path} ${hops}`);
    const refused = { reason: 'loop', status: 421, method: 'GET', path, address: '127.0.0.1' };
    assert.equal(b.refusals.splice(0), status === 421 ? [refused] : []);
  }
});

for (const isSecure of [false, true])
  test(`nodes in the steps of a rotation reach each other (${isSecure ? 'TLS' : 'plain'})`, async () => {
    const [old, next] = ['the old secret, 32 bytes or more', 'the next secret, 32 bytes or more'] as const;
    const serve = (_request: IncomingMessage, response: ServerResponse) => response.end('served');
    const lives = [A, B, 'CCCCCCCC'];
    const all: readonly (readonly [string, ...string[]])[] = [[old, next], [next, old], [next]];
    const nodes = await Promise.all(
      all.map((secrets, at) => deployment.node(lives[at] ?? '', { secrets, isSecure, serve })),
    );
    const [a, b, c] = nodes;
    assert.ok(a && b && c);
    for (const [from, to] of [
      [a, b],
      [b, a],
      [b, c],
      [c, b],
      [c, a],
    ] as const)
      assert.equal([(await ask(from, to.life)).text, to.refusals], ['served', []]);
    await forward(a, c.life); // which has the old secret no more
    await becomes(() => c.refusals[0]?.reason, isSecure ? 'failed handshake' : 'forged token');
  });

test('a request about an instance that is malformed is refused by name, as not delivered', async () => {
  const a = await deployment.node(A);
  const gateway = await createGateway();
  await deployment.node(B, { instances: new InstanceListener(gateway.internals.host, () => {}) });
  const head = (fields: object) => `${JSON.stringify({ conversation: 'x', method: 'ping', ...fields })}\n`;
  const bodies = ['', '{', 'null\n', '[]\n', head({ method: 1 }), head({ params: [] }), head({ texts: 7 })];
  for (const body of [
    ...bodies,
    head({ texts: [null] }),
    head({ texts: [['a', -1]] }),
    head({ texts: [['a', 9]] }),
  ]) {
    const answer = await ask(a, B, {
      hop: 'instance',
      target: INSTANCE_PATHS.exchange,
      principal: ADA,
      body,
    });
    assert.match(answer.text, '"code":"BACKEND_UNAVAILABLE"', body);
    assert.match(answer.text, 'does not understand the request');
  }
  await gateway.close({ graceMs: 0 });
});

test('of a connection whose request was refused nothing more is read', async () => {
  const b = await deployment.node('BBBBBBBB');
  const socket = await openRaw(b.listener.port);
  socket
    .on('error', () => {})
    .resume()
    .write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100));
  await untilClosed(socket);
  assert.is(b.refusals.length, 1);
});

test.run();
