// The peer channel between real listeners and clients in one process: what happens to requests when the other node is away, silent or slow, or
// when its life has ended.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { PeerPings } from '../../../src/cluster/channel/peer-pings.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import { TokenVerifier } from '../../../src/cluster/channel/trust/peer-tokens.ts';
import { nodeUnavailable } from '../../../src/domain/errors/node-errors.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { ask, Deployment, forward } from './peer-nodes.ts';

const test = suite('absent peers');
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;
let deployment: Deployment;
test.before.each(() => {
  deployment = new Deployment();
});
test.after.each(() => deployment.close());

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

test('a request for a node that is gone waits until its life has ended', async () => {
  const [a, b] = await deployment.pair((_request, response) => response.end());
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
  const [a] = await deployment.pair((_request, response) => open.push(response));
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
  const [a, b] = await deployment.pair((request, response) => {
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

test('an answer that breaks off fails, perhaps delivered', async () => {
  const [a] = await deployment.pair((_request, response) => {
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
    const [a] = await deployment.pair((_request, response) => open.push(response), { clock });
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

test('a request whose answer a node withholds fails a minute after its longest time, a stream does not', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let nowMs = 0;
    const clock = { ...systemClock, now: () => nowMs };
    let served = 0;
    const [a] = await deployment.pair(
      (request, response) => {
        served += 1;
        if (request.url?.endsWith('begun') === true) response.write('a part');
      },
      { clock },
    );
    const longestMs = 700_000;
    const call = await forward(a, B, { longestMs });
    const begun = await forward(a, B, { longestMs, target: '/mcp/begun' });
    const stream = await forward(a, B, { longestMs, method: 'GET' });
    await becomes(() => served, 3);
    nowMs += longestMs + 50_000;
    const failed: unknown[] = [];
    for (let second = 0; second < 12; second += 1) {
      assert.equal(failed, []);
      nowMs += 1_000;
      mock.timers.tick(1_000);
      for (let turns = 0; turns < 20; turns += 1) await turn();
      failed.push(
        ...[call, begun, stream].flatMap(({ error }) => (error ? [error.code, error.delivered] : [])),
      );
      if (failed.length > 0) break;
    }
    assert.equal([nowMs, ...failed], [760_000, ...Array(2).fill(['NODE_UNAVAILABLE', 'unknown']).flat()]);
    assert.equal(
      [call.error === undefined, begun.error === undefined, stream.error],
      [false, false, undefined],
    );
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

for (const hop of ['session', 'instance'] as const)
  test(`after a cut nothing waits for the connections from before it (hop ${hop})`, async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      let nowMs = 0;
      const clock = { ...systemClock, now: () => nowMs };
      const a = await deployment.node(A, { clock });
      const b = await cutNode();
      deployment.rows.set(B, b.member);
      const pings = new PeerPings(KEYS, clock, () => A);
      const heard: number[] = [];
      const pass = async (seconds: number): Promise<void> => {
        for (let second = 0; second < seconds; second += 1) {
          nowMs += 1_000;
          mock.timers.tick(1_000);
          pings.ping(b.member, () => heard.push(nowMs));
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
      pings.close();
      a.peers.close();
      b.close();
    } finally {
      mock.timers.reset();
    }
  });

test('a request after a rest does not wait for a ping from before it', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let nowMs = 0;
    const a = await deployment.node(A, { clock: { ...systemClock, now: () => nowMs } });
    const b = await cutNode();
    deployment.rows.set(B, b.member);
    const left = await forward(a, B);
    for (let turns = 0; turns < 20; turns += 1) await turn(); // its ping is on the way
    left.forwarding?.cancel();
    b.heal();
    nowMs += 60_000;
    const later = await forward(a, B, { hop: 'instance' });
    for (let turns = 0; turns < 20; turns += 1) await turn();
    nowMs += 1_000;
    mock.timers.tick(1_000);
    await later.over.promise;
    assert.equal([later.error, later.text], [undefined, 'served']);
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
  const [a] = await deployment.pair((_request, response) => open.push(response));
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

test.run();
