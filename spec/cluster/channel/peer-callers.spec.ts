// The peer channel between real listeners and clients in one process: who may use it.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import * as assert from 'uvu/assert';
import { secretId } from '../../../src/auth/secrets/secrets.ts';
import { PeerPings } from '../../../src/cluster/channel/peer-pings.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import { pskTls } from '../../../src/cluster/channel/trust/peer-tls.ts';
import { TokenIssuer, TokenVerifier } from '../../../src/cluster/channel/trust/peer-tokens.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { sendRaw } from '../../helpers/clients/raw-http.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { ADA, ask, Deployment, forward } from './peer-nodes.ts';

const test = suite('callers of the peer channel');
const [A, B, C, D] = ['AAAAAAAA', 'BBBBBBBB', 'CCCCCCCC', 'DDDDDDDD'] as const;
let deployment: Deployment;
test.before.each(() => {
  deployment = new Deployment();
});
test.after.each(() => deployment.close());

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

test('a token is used for many requests, and made again before it expires', async () => {
  const tokens = new Set<unknown>();
  let nowMs = 1_000;
  const clock = { ...systemClock, now: () => nowMs };
  const [a] = await deployment.pair(
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
  const [a, b] = await deployment.pair((_request, response) => response.end('served'));
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
  const [a, b] = await deployment.pair((_request, response) => response.end('served'));
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
  const [a, b] = await deployment.pair(serve, { isSecure: true });
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
    const pings = new PeerPings(keys, systemClock, () => A);
    pings.askDatabase(member, (isAway) => {
      answers[life] = isAway;
    });
    const answered = Promise.withResolvers<void>();
    pings.ping(member, () => answered.resolve());
    await answered.promise;
    pings.close();
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
  const pings = new PeerPings(keys, systemClock, () => A);
  const results: string[] = [];
  const ping = () => pings.ping(b.member, (result) => results.push(result));
  ping();
  await becomes(() => results, ['failed']);
  await b.listener.close(0);
  ping();
  await becomes(() => results, ['failed', 'refused']);
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

test.run();
