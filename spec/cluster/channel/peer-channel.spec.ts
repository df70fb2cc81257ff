// The peer channel between real listeners and clients in one process: what crosses and what does not, who may use it, and what happens to
// requests when the other node is away, silent or slow.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import * as assert from 'uvu/assert';
import { secretId } from '../../../src/auth/secrets/secrets.ts';
import { InstanceListener } from '../../../src/cluster/channel/instances/instance-listener.ts';
import { PeerProber } from '../../../src/cluster/channel/peer-prober.ts';
import { INSTANCE_PATHS } from '../../../src/cluster/channel/peer-protocol.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import { pskTls } from '../../../src/cluster/channel/trust/peer-tls.ts';
import { TokenIssuer, TokenVerifier } from '../../../src/cluster/channel/trust/peer-tokens.ts';
import type { Principal } from '../../../src/domain/accounts/account.ts';
import { nodeUnavailable } from '../../../src/domain/errors/session-errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { sendRaw } from '../../helpers/clients/raw-http.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { ask, Deployment, forward, type PeerNode } from './peer-nodes.ts';

const test = suite('peer channel');
const [A, B, C, D] = ['AAAAAAAA', 'BBBBBBBB', 'CCCCCCCC', 'DDDDDDDD'] as const;
let deployment: Deployment;
test.before.each(() => {
  deployment = new Deployment();
});
test.after.each(() => deployment.close());

const ADA: Principal = {
  id: 'key:0123456789abcdef',
  kind: 'api-key',
  name: 'ada\u00e9',
  userId: 'u1',
  scopes: new Set(['tools:call']),
  templates: new Set(['demo', 'other']),
  hourlyLimit: 5,
};

/** The same user, through an MCP client that it has allowed. */
const CLIENT: Principal = {
  ...{ id: 'grant:g1@u1', kind: 'user', name: 'ada', userId: 'u1', scopes: new Set(['tools:call']) },
  client: {
    ...{ name: 'Example Client', countedId: 'user:u1', audience: '/mcp/demo' },
    obtainable: new Set(['tools:call']),
  },
};

/** Two nodes; the second one serves. */
async function pair(
  serve: (request: IncomingMessage, response: ServerResponse) => void,
  options: { readonly isSecure?: boolean; readonly clock?: Clock } = {},
): Promise<[PeerNode, PeerNode]> {
  return [await deployment.node(A, options), await deployment.node(B, { ...options, serve })];
}

test('a node with another database, and the same secret, at the address of a member carries nothing out, and records it', async () => {
  const a = await deployment.node(A);
  const others = new Deployment();
  let served = 0;
  const serve = (_: IncomingMessage, response: ServerResponse) => {
    served += 1;
    response.end();
  };
  const foreign = await others.node(B, { serve });
  deployment.rows.set(B, foreign.member);
  const { error } = await ask(a, B);
  assert.equal([error?.code, error?.delivered, served], ['NODE_UNAVAILABLE', 'no', 0]);
  assert.match(String(error?.facts.reason), 'token of an unknown sender');
  assert.is(foreign.refusals.at(-1)?.reason, 'token of an unknown sender');
  await others.close();
});

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
  const [a] = await pair(async (request, response) => {
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
  const [a] = await pair(async (_request, response) => {
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
    const [a] = await pair((_request, response) => {
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

test('a token is used for many requests, and made again before it expires', async () => {
  const tokens = new Set<unknown>();
  let nowMs = 1_000;
  const clock = { ...systemClock, now: () => nowMs };
  const [a] = await pair(
    (request, response) => {
      tokens.add(request.headers['peer-token']);
      response.end();
    },
    { clock },
  );
  for (const passedMs of [0, 0, 15_000, 15_000]) {
    nowMs += passedMs;
    assert.is((await ask(a, B, { principal: ADA, isRepeatable: true })).status, 200);
  }
  assert.is(tokens.size, 2);
});

test('clocks of nodes are not compared: only that of the receiver counts', async () => {
  const a = await deployment.node(A, { clock: { ...systemClock, now: () => systemClock.now() + 3_600_000 } });
  await deployment.node(B);
  assert.is((await ask(a, B)).status, 200);
});

test('a token that the holder takes for expired is made again, once', async () => {
  let aheadMs = 0;
  const a = await deployment.node(A);
  const b = await deployment.node(B, { clock: { ...systemClock, now: () => systemClock.now() + aheadMs } });
  assert.is((await ask(a, B)).status, 200);
  aheadMs = 60_000; // the machine of the sender was suspended
  assert.is((await ask(a, B)).status, 200);
  assert.equal(
    b.refusals.map(({ reason }) => reason),
    ['expired token'],
  );
});

test('every request without a valid token is refused with 401, and reported', async () => {
  const [a, b] = await pair((_request, response) => response.end('served'));
  await deployment.node('CCCCCCCC');
  const {
    tokens: [key],
  } = channelKeys([Buffer.from('a secret of these nodes, 32 bytes or more')]);
  const {
    tokens: [other],
  } = channelKeys([Buffer.from('another secret, which has 32 bytes or more')]);
  const issued = (from: string, to: string, aheadMs = 0, signing = key): string => {
    const now = () => systemClock.now() + aheadMs;
    const issuer = new TokenIssuer(signing, systemClock.now, () => from, to);
    const verifier = new TokenVerifier(
      [signing],
      now,
      () => to,
      () => true,
    );
    const { text: greeting, answered } = issuer.greeting();
    assert.ok(answered(verifier.greet(greeting) ?? ''));
    return issuer.tokenFor(ADA);
  };
  const good = issued(A, B);
  const [payload = '', signature = ''] = good.split('.');
  const richer = Buffer.from(payload, 'base64url').toString().replace('tools:call', 'admin');
  const cases: [reason: string, headers: string][] = [
    ['no token', ''],
    ['no token', 'Authorization: Bearer x\r\nPeer-Hops: session\r\n'],
    ['no token', 'Expect: 100-continue\r\n'],
    ['no token', 'Expect: anything\r\n'],
    ['forged token', 'Peer-Token: x.y\r\n'],
    ['forged token', `Peer-Token: ${issued(A, B, 0, other)}\r\n`],
    ['forged token', `Peer-Token: ${Buffer.from(richer).toString('base64url')}.${signature}\r\n`],
    ['expired token', `Peer-Token: ${issued(A, B, -31_000)}\r\n`],
    ['expired token', `Peer-Token: ${issued(A, B, 31_000)}\r\n`],
    ['token for another node', `Peer-Token: ${issued(A, 'CCCCCCCC')}\r\n`],
    ['token of an unknown sender', `Peer-Token: ${issued('DDDDDDDD', B)}\r\n`],
  ];
  for (const [reason, headers] of cases) {
    const raw = `POST /mcp/demo?sessionId=secret HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: 2\r\n\r\n{}`;
    const answer = await sendRaw(b.listener.port, raw);
    assert.match(answer, /^HTTP\/1\.1 401 /, reason);
    assert.match(answer, reason);
    const refusal = { reason, status: 401, method: 'POST', path: '/mcp/demo', address: '127.0.0.1' };
    assert.equal(b.refusals.splice(0), [refusal]);
  }
  const tunnel = await sendRaw(
    b.listener.port,
    `CONNECT x:80 HTTP/1.1\r\nHost: x\r\nPeer-Token: ${good}\r\n\r\n`,
  );
  assert.match(tunnel, /^HTTP\/1\.1 421 /);
  assert.equal(
    b.refusals.splice(0).map(({ reason, method, path }) => [reason, method, path]),
    [['loop', 'CONNECT', 'x:80']],
  );
  const greeting = await sendRaw(b.listener.port, 'GET /peer/greeting HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(greeting, /^HTTP\/1\.1 401 /);
  assert.is((await ask(a, B)).text, 'served');
});

test('unfinished headers without a token are bounded in their sum; members are served beside them', async () => {
  const [a, b] = await pair((_request, response) => response.end('served'));
  assert.is((await ask(a, B)).text, 'served');
  const headers = Buffer.from(`POST / HTTP/1.1\r\nHost: x\r\nx: ${'x'.repeat(180 * 1024)}`);
  const count = Math.ceil(LIMITS.unfinishedBytes / headers.length) + 10;
  const closed: number[] = [];
  const sockets = Array.from({ length: count }, (_, index) => {
    const socket = connect(b.listener.port, '127.0.0.1', () => socket.write(headers));
    socket.on('error', () => {}).once('close', () => closed.push(index));
    return socket;
  });
  try {
    await becomes(() => closed.length > 0, true, 8_000);
    assert.ok(closed.length < count / 2, `${closed.length} of ${count} were closed`);
    assert.is((await ask(a, B)).text, 'served');
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test('unfinished handshakes are bounded in their sum, are recorded with their address, and do not delay a stop', async () => {
  const serve = (_request: IncomingMessage, response: ServerResponse) => response.end('served');
  const [a, b] = await pair(serve, { isSecure: true });
  assert.is((await ask(a, B)).text, 'served');
  // A record of 16 KiB, of which the end does not come.
  const part = Buffer.concat([
    Buffer.from([22, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, 3, 3]),
    Buffer.alloc(16_000),
  ]);
  const closed: number[] = [];
  const open = (index: number) =>
    connect(b.listener.port, '127.0.0.1')
      .on('error', () => {})
      .once('connect', function (this: Socket) {
        this.write(part);
      })
      .once('close', () => closed.push(index));
  const sockets = Array.from({ length: 900 }, (_, index) => open(index));
  try {
    await becomes(() => closed.length > 100, true, 8_000);
    assert.ok(closed.length < 600, `${closed.length} were closed`);
    assert.is((await ask(a, B)).text, 'served');
    await becomes(() => b.refusals.length, closed.length);
    for (const { reason, address } of b.refusals)
      assert.equal([reason, address], ['failed handshake', '127.0.0.1']);
    const fromMs = performance.now();
    await b.listener.close(0);
    assert.ok(performance.now() - fromMs < 5_000);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test('a node whose life others ended sends its request again, under its next life, and those under way are answered', async () => {
  const held = Promise.withResolvers<ServerResponse>();
  const seen: string[] = [];
  const a = await deployment.node(A, { nextLife: 'aaaaaaaa' });
  await deployment.node(B, {
    serve: (request, response, { requestId }) => {
      seen.push(`${request.method} ${requestId}`);
      if (request.url === '/held') held.resolve(response);
      else response.end('served');
    },
  });
  const underWay = forward(a, B, { target: '/held' });
  const answer = await held.promise;
  deployment.end(A);
  assert.is((await ask(a, B)).text, 'served');
  answer.end('late');
  const first = await underWay;
  await first.over.promise;
  assert.equal([first.text, seen.length], ['late', 2]);
});

test('a node that another one does not know, though its life goes on, is refused after one repetition', async () => {
  const a = await deployment.node(A);
  const b = await deployment.node(B, { serve: (_request, response) => response.end('served') });
  deployment.rows.delete(A);
  const { error } = await ask(a, B);
  assert.equal([error?.code, error?.delivered, b.refusals.length], ['NODE_UNAVAILABLE', 'no', 2]);
});

test('a node that does not know whether its life goes on serves nothing, and sends nothing under it', async () => {
  const inDoubt = () => Promise.reject(nodeUnavailable('b', 'its life is in doubt', 'no'));
  const a = await deployment.node(A);
  const b = await deployment.node(B, {
    untilLifeKnown: inDoubt,
    serve: (_request, response) => response.end('served'),
  });
  const refused = await ask(a, B, { isRepeatable: true });
  assert.equal([refused.error?.code, refused.error?.delivered], ['NODE_UNAVAILABLE', 'no']);
  deployment.rows.delete(B); // the other node does not know its life
  const { error } = await ask(b, A, { isRepeatable: true });
  assert.equal([error?.code, error?.facts.reason], ['NODE_UNAVAILABLE', 'its life is in doubt']);
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

test('a member says whether the database is away, to members only', async () => {
  await deployment.node(A);
  const keys = channelKeys([Buffer.from('a secret of these nodes, 32 bytes or more')]);
  const answers: Record<string, boolean> = {};
  for (const [life, word] of [
    [B, { isDatabaseAway: true }],
    [C, { isDatabaseAway: false }],
    [D, {}],
  ] as const) {
    const { member, refusals, listener } = await deployment.node(life, word);
    const prober = new PeerProber({ keys, clock: systemClock, life: () => A });
    prober.askDatabase(member, (isAway) => {
      answers[life] = isAway;
    });
    const answered = Promise.withResolvers<void>();
    prober.ping(member, () => answered.resolve());
    await answered.promise;
    prober.close();
    assert.match(
      await sendRaw(listener.port, 'GET /peer/database?x HTTP/1.1\r\nHost: x\r\n\r\n'),
      /^HTTP\/1\.1 401 /,
    );
    assert.equal(
      refusals.map(({ reason, path }) => [reason, path]),
      [['forged token', '/peer/database']],
    );
  }
  await becomes(() => answers, { [B]: true, [C]: false });
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

test('what names the secret in the handshake says nothing about it to readers of the network', async () => {
  const secret = Buffer.from('a secret of these nodes, 32 bytes or more');
  const identities: string[] = [];
  const listener = createTlsServer({
    ...{ ciphers: 'PSK', maxVersion: 'TLSv1.2' },
    pskCallback: (_socket, identity) => {
      identities.push(identity);
      return null;
    },
  }).listen(0, '127.0.0.1');
  listener.on('tlsClientError', () => {});
  await once(listener, 'listening');
  const { port } = Object(listener.address());
  for (const salt of ['one salt', 'one salt', 'another salt']) {
    const socket = connectTls({ port, ...pskTls([secret], salt).connection('127.0.0.1') });
    await once(socket, 'error');
  }
  listener.close();
  const [first, second, third] = identities;
  assert.equal([first === second, first === third], [true, false]);
  for (const identity of identities) {
    assert.match(identity, /^stagedoor [0-9a-f]{16}$/);
    assert.is(identity.includes(secretId(secret)), false, 'the database and tokens have this one');
  }
});

test('another secret, and plain HTTP, are refused by the handshake of TLS', async () => {
  const b = await deployment.node(B, { isSecure: true });
  const stranger = await deployment.node(A, {
    isSecure: true,
    secrets: ['another secret, which has 32 bytes or more'],
  });
  const waiting = await forward(stranger, B);
  await becomes(() => b.refusals.length, 1);
  deployment.end(B);
  assert.is(waiting.isNotHolder, true);
  assert.is(await sendRaw(b.listener.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'), '');
  const socket = connectTls({ port: b.listener.port, host: '127.0.0.1', rejectUnauthorized: false });
  const [error] = await once(socket, 'error');
  assert.instance(error, Error);
  assert.equal(
    b.refusals.map(({ reason }) => reason),
    ['failed handshake', 'failed handshake', 'failed handshake'],
  );
});

test('a node that refuses the handshake is not taken for one that is gone', async () => {
  const b = await deployment.node(B, { isSecure: true });
  const keys = channelKeys([Buffer.from('another secret, which has 32 bytes or more')]);
  const prober = new PeerProber({ keys, clock: systemClock, life: () => A });
  const results: string[] = [];
  const ping = () => prober.ping(b.member, (result) => results.push(result));
  ping();
  await becomes(() => results, ['failed']);
  await b.listener.close(0);
  ping();
  await becomes(() => results, ['failed', 'refused']);
});

test('a request for a node that is gone waits until its life has ended', async () => {
  const [a, b] = await pair((_request, response) => response.end());
  assert.is((await ask(a, B)).status, 200);
  await b.listener.close(0);
  const waiting = await forward(a, B);
  await becomes(() => deployment.suspected.includes(B), true);
  assert.equal([waiting.error, waiting.isNotHolder], [undefined, false]);
  deployment.end(B);
  await waiting.over.promise;
  assert.equal([waiting.error, waiting.isNotHolder], [undefined, true]);
});

test('when a life ends, what may be carried out twice moves, and the rest gets its answer, or fails with its connection', async () => {
  const open: ServerResponse[] = [];
  const [a] = await pair((_request, response) => open.push(response));
  const first = await forward(a, B);
  await becomes(() => open.length, 1);
  const [second, third] = [await forward(a, B, { isRepeatable: true }), await forward(a, B)];
  await becomes(() => open.length, 3);
  deployment.end(B);
  await second.over.promise;
  assert.equal([second.error, second.isNotHolder], [undefined, true]);
  assert.equal([first.error, first.isNotHolder], [undefined, false]);
  open[0]?.end('its last answer');
  await first.over.promise;
  assert.equal([first.error, first.text], [undefined, 'its last answer']);
  for (const response of open) response.destroy();
  await third.over.promise;
  assert.equal([third.error?.code, third.error?.delivered], ['NODE_UNAVAILABLE', 'unknown']);
});

test('hops are counted once each by their outcome, and the time of those that were answered, without streams', async () => {
  const open: ServerResponse[] = [];
  const [a, b] = await pair((request, response) => {
    if (request.url === '/open') open.push(response);
    else response.end();
  });
  await ask(a, B);
  await ask(a, B, { method: 'GET' });
  await ask(a, B, { hop: 'instance' });
  const [left, broken, moved] = [
    await forward(a, B, { target: '/open' }),
    await forward(a, B, { target: '/open' }),
    await forward(a, B, { target: '/open', isRepeatable: true }),
  ];
  await becomes(() => open.length, 3);
  left.forwarding?.cancel();
  deployment.end(B);
  for (const response of open) response.destroy();
  await Promise.all([broken.over.promise, moved.over.promise]);
  assert.equal(a.counts.hops, {
    session: { answered: 2, failed: 1, moved: 1, cancelled: 1 },
    instance: { answered: 0, failed: 1, moved: 0, cancelled: 0 }, // B serves no instance
  });
  assert.is(a.counts.times.session.count, 1);
  assert.is(b.counts.hops.session.answered, 0);
});

test('another program at the address of a node gets no token', async () => {
  const got: string[] = [];
  const program = createServer((socket) => {
    socket.on('data', (part) => {
      got.push(part.toString());
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
    });
    socket.on('error', () => socket.destroy());
  });
  program.listen(0, '127.0.0.1');
  await once(program, 'listening');
  const address = program.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const a = await deployment.node(A);
  deployment.rows.set(B, { node: 'b', life: B, address: `http://127.0.0.1:${port}` });
  const waiting = await forward(a, B, { principal: ADA });
  await becomes(() => got.length, 1);
  deployment.end(B);
  assert.equal([waiting.isNotHolder, got.join().includes(ADA.id)], [true, false]);
  a.peers.close();
  program.close();
});

test('an answer that breaks off fails, perhaps delivered', async () => {
  const [a] = await pair((_request, response) => {
    response.writeHead(200).flushHeaders();
    setImmediate(() => response.destroy());
  });
  const { status, error } = await ask(a, B);
  assert.equal([status, error?.code, error?.delivered], [200, 'NODE_UNAVAILABLE', 'unknown']);
});

test('requests wait for a silent node, 15 s at most, and go on when it answers', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let nowMs = 0;
    let isFrozen = false;
    const held: (() => void)[] = [];
    const a = await deployment.node(A, { clock: { ...systemClock, now: () => nowMs } });
    // A node that is frozen accepts connections and answers nothing, not even a ping.
    const b = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', (part) => {
        const answer = () => socket.write(answerTo(part.toString()));
        if (isFrozen) held.push(answer);
        else answer();
      });
    });
    const verifier = new TokenVerifier(
      channelKeys([Buffer.from('a secret of these nodes, 32 bytes or more')]).tokens,
      () => 0,
      () => B,
      () => true,
    );
    const answerTo = (request: string): string => {
      const greeting = verifier.greet(/peer-token: (\S+)/.exec(request)?.[1]);
      const body = request.startsWith('GET /peer/greeting') ? (greeting ?? '') : 'served';
      return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    };
    b.listen(0, '127.0.0.1');
    await once(b, 'listening');
    const address = b.address();
    const port = typeof address === 'object' ? address?.port : 0;
    deployment.rows.set(B, { node: 'b', life: B, address: `http://127.0.0.1:${port}` });
    const pass = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second += 1) {
        nowMs += 1_000;
        mock.timers.tick(1_000);
        for (let turns = 0; turns < 20; turns += 1) await turn();
      }
    };
    assert.is((await ask(a, B)).text, 'served');
    isFrozen = true;
    const first = await forward(a, B);
    nowMs += 21; // what must not be carried out twice waits for a ping then
    const unsent = await forward(a, B);
    await pass(5);
    const second = await forward(a, B);
    const [hurried, late] = await Promise.all(
      [8, 0].map((s) => forward(a, B, { untilMs: nowMs + s * 1_000 })),
    );
    const many = await Promise.all(Array.from({ length: 1_000 }, () => forward(a, B, { untilMs: nowMs })));
    for (let turns = 0; turns < 20; turns += 1) await turn();
    const refused = many.filter(({ error }) => error?.message.includes('too many requests wait for it'));
    assert.ok(refused.length > 0 && refused.length < 10, `1,000 wait with those before: ${refused.length}`);
    await pass(1);
    assert.equal([hurried?.error, late?.error?.code], [undefined, 'NODE_UNAVAILABLE']);
    await pass(8);
    assert.equal([hurried?.error?.code, hurried?.error?.delivered], ['NODE_UNAVAILABLE', 'no']);
    await pass(3);
    assert.equal([first.error?.code, first.error?.delivered], ['NODE_UNAVAILABLE', 'unknown']);
    assert.equal([first.error?.status, first.error?.facts.retryAfterSeconds], [503, 1]);
    assert.equal([unsent.error?.code, unsent.error?.delivered], ['NODE_UNAVAILABLE', 'no']);
    assert.is(second.error, undefined);
    isFrozen = false;
    for (const answer of held.splice(0)) answer();
    await second.over.promise;
    assert.is(second.text, 'served');
    a.peers.close();
    b.close();
  } finally {
    mock.timers.reset();
  }
});

test('a node that slept hears what the other one sent meanwhile, before it takes it for silent', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let nowMs = 0;
    const open: ServerResponse[] = [];
    const clock = { ...systemClock, now: () => nowMs };
    const [a] = await pair((_request, response) => open.push(response), { clock });
    const sent = await forward(a, B, { isRepeatable: true });
    await becomes(() => open.length, 1);
    nowMs += 1_000;
    mock.timers.tick(1_000); // a ping
    nowMs += 20_000;
    const unsent = await forward(a, B); // it arrived while the node slept
    mock.timers.tick(1_000);
    await becomes(() => open.length, 2);
    for (const response of open) response.end('served');
    await Promise.all([sent.over.promise, unsent.over.promise]);
    assert.equal(
      [sent.error, sent.text, unsent.error, unsent.text],
      [undefined, 'served', undefined, 'served'],
    );
  } finally {
    mock.timers.reset();
  }
});

for (const hop of ['session', 'instance'] as const)
  test(`after a cut nothing waits for the connections from before it (hop ${hop})`, async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      let nowMs = 0;
      const clock = { ...systemClock, now: () => nowMs };
      const a = await deployment.node(A, { clock });
      const b = await cutNode();
      deployment.rows.set(B, b.member);
      const prober = new PeerProber({ keys: KEYS, clock, life: () => A });
      const heard: number[] = [];
      const pass = async (seconds: number): Promise<void> => {
        for (let second = 0; second < seconds; second += 1) {
          nowMs += 1_000;
          mock.timers.tick(1_000);
          prober.ping(b.member, () => heard.push(nowMs));
          if (nowMs - (heard.at(-1) ?? 0) >= 3_000) deployment.silent.add(B);
          else deployment.silent.delete(B);
          for (let turns = 0; turns < 20; turns += 1) await turn();
        }
      };
      const sent = await forward(a, B, { hop });
      await pass(10);
      assert.is(sent.error?.code, hop === 'instance' ? 'NODE_UNAVAILABLE' : undefined);
      assert.equal(heard, []);
      b.heal();
      let later = sent;
      for (let second = 0; second < 5 && later.text === ''; second += 1) {
        if (hop === 'instance') later = await forward(a, B, { hop });
        await pass(1);
      }
      await later.over.promise;
      assert.equal([later.error, later.text], [undefined, 'served']);
      assert.ok(heard.length > 0 && heard[0] !== undefined && heard[0] <= 15_000, `${heard}`);
      prober.close();
      a.peers.close();
      b.close();
    } finally {
      mock.timers.reset();
    }
  });

test('calls of programs of a node that is silent for its members end at once, until it is heard', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let nowMs = 10_000;
    const a = await deployment.node(A, { clock: { ...systemClock, now: () => nowMs } });
    const b = await cutNode();
    deployment.rows.set(B, b.member);
    const pass = async (seconds: number): Promise<void> => {
      nowMs += seconds * 1_000;
      mock.timers.tick(seconds * 1_000);
      for (let turns = 0; turns < 20; turns += 1) await turn();
    };
    const early = await forward(a, B, { hop: 'instance' });
    const session = await forward(a, B);
    await pass(1);
    assert.is(early.error, undefined);
    deployment.silent.add(B);
    await pass(1);
    assert.equal([early.error?.code, early.error?.delivered], ['NODE_UNAVAILABLE', 'no']);
    assert.is(session.error, undefined, 'it waits for the holder');
    session.forwarding?.cancel();
    for (const isRepeatable of [false, true]) {
      const { error } = await ask(a, B, { hop: 'instance', isRepeatable });
      assert.equal([error?.code, error?.delivered], ['NODE_UNAVAILABLE', 'no']);
    }
    b.heal();
    deployment.silent.delete(B);
    assert.is((await ask(a, B, { hop: 'instance' })).text, 'served');
    deployment.silent.add(B); // its pings come late
    assert.is((await ask(a, B, { hop: 'instance' })).text, 'served', 'it was heard just now');
    a.peers.close();
    b.close();
  } finally {
    mock.timers.reset();
  }
});

const KEYS = channelKeys([Buffer.from('a secret of these nodes, 32 bytes or more')]);

/** A node that gets nothing over connections from before `heal`, as TCP after a long cut, and answers over others. */
async function cutNode() {
  let isHealed = false;
  const sockets: Socket[] = [];
  const verifier = new TokenVerifier(
    KEYS.tokens,
    () => 0,
    () => B,
    () => true,
  );
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => socket.destroy()));
    if (isHealed)
      socket.on('data', (part) => {
        const greeting = verifier.greet(/peer-token: (\S+)/.exec(part.toString())?.[1]);
        const body = part.toString().startsWith('GET /peer/greeting') ? (greeting ?? '') : 'served';
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    member: { node: 'b', life: B, address: `http://127.0.0.1:${port}` },
    heal: () => {
      isHealed = true;
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

test('calls beyond 1,024 to one node are refused with 503', async () => {
  const open: ServerResponse[] = [];
  const [a] = await pair((_request, response) => open.push(response));
  const calls = await Promise.all(Array.from({ length: 1_024 }, () => forward(a, B)));
  const { error } = await ask(a, B);
  assert.equal([error?.code, error?.facts.retryAfterSeconds], ['NODE_UNAVAILABLE', 1]);
  for (const { forwarding } of calls) forwarding?.cancel();
  const stream = await forward(a, B, { method: 'GET' });
  stream.forwarding?.cancel();
});

test('a life that no member has leads nowhere, and its own life to itself', async () => {
  const a = await deployment.node(A);
  const unknown = newSessionId('ZZZZZZZZ');
  const reading = a.peers.ofSession(unknown);
  assert.instance(reading, Promise);
  assert.is(await reading, undefined);
  assert.is(a.peers.ofSession(unknown), undefined); // without another look for a second
  await deployment.node(B);
  assert.is((await ask(a, B)).status, 200);
  deployment.rows.delete(B); // its life has ended
  assert.is(await a.peers.ofSession(newSessionId(B)), undefined);
  assert.is(a.peers.ofSession(newSessionId(A)), undefined);
  assert.is(a.peers.ofSession('not a session id'), undefined);
});

test('a session that a live node released leads where it went on, and to this node while it is open here', async () => {
  const open = new Set<string>();
  const a = await deployment.node(A, { hasSession: (id) => open.has(id) });
  const C = 'CCCCCCCC';
  for (const life of [B, C]) await deployment.node(life);
  const nodeOf = (id: string) => Object(a.peers.ofSession(id)).node;
  for (const id of [newSessionId(B), newSessionId(A)]) {
    a.peers.noteHolder(id, C);
    assert.is(nodeOf(id), `node ${C}`);
    open.add(id);
    assert.is(nodeOf(id), undefined);
  }
  assert.is(nodeOf(newSessionId(B)), `node ${B}`);
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

test.run();
