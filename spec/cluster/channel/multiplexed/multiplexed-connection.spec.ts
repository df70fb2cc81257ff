// Multiplexed connections, which exchanges share, between real listeners in one process: which requests take it, and what
// happens to them when it is lost, left, full of a large answer, or not read. ADR 170.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { InstanceListener } from '../../../../src/cluster/channel/instances/instance-listener.ts';
import { exchangeBody, frameOf } from '../../../../src/cluster/channel/instances/peer-frames.ts';
import {
  MESSAGE,
  MessageWriter,
  MULTIPLEXED_PROTOCOL,
} from '../../../../src/cluster/channel/multiplexed/multiplexed-wire.ts';
import type { ServedInstances } from '../../../../src/cluster/channel/peer-admission.ts';
import { INSTANCE_PATHS } from '../../../../src/cluster/channel/peer-protocol.ts';
import { channelKeys } from '../../../../src/cluster/channel/trust/channel-keys.ts';
import { TokenIssuer, TokenVerifier } from '../../../../src/cluster/channel/trust/peer-tokens.ts';
import { ANONYMOUS } from '../../../../src/domain/accounts/principal.ts';
import { JsonText } from '../../../../src/domain/json/json.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { createGateway, type Gateway } from '../../../../src/gateway/gateway.ts';
import type { Transport } from '../../../../src/transports/transport.ts';
import { HeldTool, serving, text } from '../../../helpers/backends/function-backend.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { suite } from '../../../helpers/suite.ts';
import { ask, Deployment, forward, type PeerNode } from '../peer-nodes.ts';

const test = suite('multiplexed connections');
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;
const SECRET = 'a secret of these nodes, 32 bytes or more';
let deployment: Deployment;
let gateway: Gateway;
let held: HeldTool;
let a: PeerNode;
let b: PeerNode;
/** Ways that requests took. */
let ways: { alone: string[]; multiplexed: string[] };

test.before.each(async () => {
  held = new HeldTool();
  gateway = await createGateway();
  const handler = serving({
    held: held.body,
    echo: (args) => text(JSON.stringify(args)),
    large: () => text('x'.repeat(20_000_000)),
    flood: (args, context) => {
      for (let sent = 0; sent < 40; sent += 1)
        context.notify('notifications/message', { level: 'info', data: 'x'.repeat(1_000_000) });
      return held.body(args, context);
    },
  });
  await gateway.register('demo', { id: 'one', handler }, { waitMs: 5_000 });
  deployment = new Deployment();
  ways = { alone: [], multiplexed: [] };
  a = await deployment.node(A);
  b = await deployment.node(B, { instances: instancesOf(gateway) });
});
test.after.each(async () => {
  await deployment.close();
  await gateway.close({ graceMs: 0 });
});

test('after the first exchange, exchanges share a connection; a large request takes its own', async () => {
  const transport = await sharing();
  const before = ways.alone.length;
  for (let n = 0; n < 5; n += 1) assert.match(await echo(transport, { n }), `\\"n\\":${n}`);
  assert.equal([ways.multiplexed.length >= 5, ways.alone.length], [true, before]);
  assert.match(await echo(transport, { t: 'y'.repeat(100_000) }), 'yyyy');
  assert.is(ways.alone.at(-1), INSTANCE_PATHS.exchange);
  assert.is(ways.alone.length, before + 1);
  await transport.close();
});

test('so does one with the largest token, and the others go on', async () => {
  const transport = await sharing();
  const call = lastValueFrom(transport.exchange(calling('held')));
  await becomes(() => held.waiting, 1);
  const templates = new Set(Array.from({ length: 1_000 }, (_, n) => String(n).padStart(128, 't')));
  const principal = { ...ANONYMOUS, id: 'eve', templates };
  const target = INSTANCE_PATHS.exchange;
  const body = exchangeBody('none', { method: 'tools/list' });
  const { status, text: answer } = await ask(a, B, {
    ...{ hop: 'instance', target, body, principal, mayShare: true },
  });
  assert.is(status, 200);
  assert.match(answer, 'its conversation has ended');
  held.answer();
  assert.is((await call).kind, 'result');
  await transport.close();
});

test('exchanges of one turn of the event loop each get their answer', async () => {
  const transport = await sharing();
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => echo(transport, { n })));
  for (const [n, answer] of answers.entries()) assert.match(answer, `\\"n\\":${n}`);
  assert.is(gateway.instance('demo', 'one').snapshot.inFlight, 0);
  assert.is(gateway.internals.host.requestBytes.held('ada'), 0);
  await transport.close();
});

test('a call that its caller leaves ends at the instance, and the others go on', async () => {
  const transport = await sharing();
  const call = transport.exchange(calling('held')).subscribe();
  const other = lastValueFrom(transport.exchange(calling('held')));
  await becomes(() => held.waiting, 2);
  call.unsubscribe();
  await becomes(() => held.cancelled, 1);
  held.answerAll();
  assert.is((await other).kind, 'result');
  await transport.close();
});

test('a call that its caller leaves in the same turn is not sent', async () => {
  const transport = await sharing();
  const before = ways.multiplexed.length;
  transport.exchange(calling('held')).subscribe().unsubscribe();
  await echo(transport, {});
  assert.equal([ways.multiplexed.length, held.cancelled], [before + 1, 0]);
  await transport.close();
});

test('a request that may not be sent any more when there is a connection for it is not', async () => {
  const transport = await sharing();
  const large = 'y'.repeat(100_000);
  for (const tool of [{}, { large }]) {
    let asked = 0;
    const mayBeSent = () => {
      asked += 1;
      return false;
    };
    const refused = lastValueFrom(transport.exchange({ ...calling('held', tool), mayBeSent }));
    const { code, delivered, message } = Object(await refused.catch((error: unknown) => error));
    assert.equal([code, delivered, asked], ['BACKEND_UNAVAILABLE', 'no', 1]);
    assert.match(message, 'this node stood still while it waited for a connection');
  }
  await echo(transport, {});
  assert.equal([held.waiting, held.cancelled], [0, 0]);
  await transport.close();
});

test('a connection that is lost leaves its calls with an unknown outcome', async () => {
  const transport = await sharing();
  const failed = lastValueFrom(transport.exchange(calling('held'))).catch((error: unknown) => error);
  await becomes(() => held.waiting, 1);
  await b.listener.close(0);
  const { code, delivered } = Object(await failed);
  assert.equal([code, delivered], ['BACKEND_UNAVAILABLE', 'unknown']);
  await becomes(() => held.cancelled, 1);
});

test('a node that stops answers the calls under way, after which the connection ends', async () => {
  const transport = await sharing();
  const call = lastValueFrom(transport.exchange(calling('held')));
  await becomes(() => held.waiting, 1);
  const closed = b.listener.close(60_000);
  held.answer();
  assert.is((await call).kind, 'result');
  await transport.close();
  await closed; // before the end of its time
});

test('small answers do not wait for the end of a large one', async () => {
  const transport = await sharing();
  const order: string[] = [];
  const large = lastValueFrom(transport.exchange(calling('large'))).then((event) => {
    order.push('large');
    return JSON.stringify(event).length;
  });
  const small = echo(transport, {}).then(() => order.push('small'));
  await small;
  assert.ok((await large) > 20_000_000);
  assert.equal(order, ['small', 'large']);
  await transport.close();
});

test('a life that its receiver does not know is asked for again, as on a connection of its own', async () => {
  const transport = await sharing();
  const { member } = a;
  deployment.rows.delete(A);
  const failed = await echo(transport, {}).catch((error: unknown) => error);
  assert.equal([Object(failed).code, Object(failed).delivered], ['BACKEND_UNAVAILABLE', 'no']);
  assert.is(b.refusals.at(-1)?.reason, 'token of an unknown sender');
  deployment.rows.set(A, member);
  assert.match(await echo(transport, {}), 'result');
  await transport.close();
});

test('a node of the previous release, without such connections, gets a request per exchange', async () => {
  const old = await deployment.node('CCCCCCCC', { instances: withoutSharing(instancesOf(gateway)) });
  const { definition } = gateway.instance('demo', 'one');
  const openLink = a.peers.openInstance({ ...definition, nodeId: old.member.node });
  const transport = await openLink(new AbortController().signal);
  for (let n = 0; n < 5; n += 1) assert.match(await echo(transport, { n }), `\\"n\\":${n}`);
  assert.equal([ways.multiplexed, ways.alone.length, old.refusals], [[], 6, []]);
  await transport.close();
});

test('after a cut exchanges do not wait for the connection from before it', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let nowMs = 0;
    const clock = { ...systemClock, now: () => nowMs };
    const c = await deployment.node('CCCCCCCC', { clock });
    const relay = await relayTo(b.listener.port);
    deployment.rows.set(B, { ...b.member, address: `http://127.0.0.1:${relay.port}` });
    const transport = await sharing(c);
    const pass = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second += 1) {
        nowMs += 1_000;
        mock.timers.tick(1_000);
        for (let turns = 0; turns < 50; turns += 1) await turn();
      }
    };
    relay.cut();
    const lost = lastValueFrom(transport.exchange(calling('held'))).catch((error: unknown) => error);
    await pass(6);
    relay.heal();
    let again: Transport | undefined;
    for (let tries = 0; tries < 3 && again === undefined; tries += 1) {
      const opening = sharing(c).catch(() => undefined); // the first ping may take a connection from before
      await pass(10);
      again = await opening;
    }
    assert.ok(again);
    assert.is(Object(await lost).delivered, 'unknown');
    await again.close();
    c.peers.close();
    relay.close();
  } finally {
    mock.timers.reset();
  }
});

test('when the multiplexed connection alone is cut, exchanges soon go another way, and those on it fail', async () => {
  const { transport, relay, pass, close } = await behindRelay();
  relay.cutMultiplexed();
  let answer = '';
  const failures: unknown[] = [];
  for (let tries = 0; tries < 5 && answer === ''; tries += 1) {
    // The first one is lost.
    transport.exchange(calling('echo', { tries })).subscribe({
      next: (event) => {
        answer = JSON.stringify(event);
      },
      error: (error: unknown) => failures.push(error),
    });
    await pass(10);
  }
  assert.match(answer, 'tries');
  await pass(20);
  assert.ok(failures.length > 0);
  for (const failure of failures) assert.is(Object(failure).delivered, 'unknown');
  await close();
});

test('a call on a multiplexed connection that was silent for some seconds goes on there', async () => {
  const { transport, relay, pass, close } = await behindRelay();
  const call = lastValueFrom(transport.exchange(calling('held')));
  await becomes(() => held.waiting, 1);
  relay.cutMultiplexed();
  await pass(10);
  relay.healMultiplexed();
  await pass(60);
  held.answer();
  assert.is((await call).kind, 'result');
  await close();
});

test('a request of a program without the key opens none', async () => {
  for (const token of ['', 'forged.token']) {
    const { status } = await upgraded(token);
    assert.is(status, '401');
  }
  assert.equal(
    b.refusals.map(({ reason, path }) => [reason, path]),
    [
      ['forged token', INSTANCE_PATHS.multiplexed],
      ['forged token', INSTANCE_PATHS.multiplexed],
    ],
  );
});

test('exchanges that took a hop to another instance are not taken on', async () => {
  for (const hops of ['instance, instance', 'session', '']) {
    const { status } = await upgraded(undefined, hops);
    assert.is(status, '421', hops);
  }
  const loop = ['loop', 421, INSTANCE_PATHS.multiplexed];
  assert.equal(
    b.refusals.map(({ reason, status, path }) => [reason, status, path]),
    [loop, loop, loop],
  );
});

test('a program without the key does not keep its connection open', async () => {
  const socket = connect({ port: b.listener.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.write('GET / HTTP/1.1\r\nHost: b\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n');
  socket.resume();
  await once(socket, 'end');
  await b.listener.close(60_000); // before the end of its time
  socket.destroy();
});

test('each request needs a token; bytes that are no messages end the connection', async () => {
  const { socket, writer, token } = await upgraded();
  const [forged, good] = ['forged', token].map((one) => Buffer.from(one));
  writer.message(MESSAGE.token, 0, forged ?? Buffer.alloc(0));
  writer.message(MESSAGE.token, 1, good ?? Buffer.alloc(0));
  for (const place of [0, 2]) writer.message(MESSAGE.request, place, Buffer.from([0, place, 0, 0]));
  await becomes(() => b.refusals.map(({ reason }) => reason), ['forged token', 'forged token']);
  socket.write('GET / HTTP/1.1\r\n\r\n');
  await once(socket, 'close');
});

test('an answer whose messages the other node does not read is ended', async () => {
  const transport = await sharing();
  const body = JSON.stringify({ template: 'demo', id: 'one' });
  const opened = await forward(a, B, { hop: 'instance', target: INSTANCE_PATHS.conversation, body });
  const nameIn = () => /"conversation":"([^"]+)"/.exec(opened.text)?.[1];
  await becomes(() => nameIn() !== undefined, true);
  const { socket, writer, token } = await upgraded();
  socket.pause();
  const params = { name: 'flood', arguments: {} };
  const exchange = exchangeBody(nameIn() ?? '', { method: 'tools/call', params });
  writer.message(MESSAGE.token, 0, Buffer.from(token));
  writer.message(MESSAGE.request, 1, Buffer.from([0, 0, 0, 0]), exchange);
  await becomes(() => held.waiting, 1); // all messages were sent, and it is not answered
  await becomes(() => gateway.instance('demo', 'one').snapshot.inFlight, 0);
  socket.destroy();
  opened.forwarding?.cancel();
  await transport.close();
});

test.run();

/** Notes the ways of requests. */
function instancesOf({ internals }: Gateway): ServedInstances {
  const { request, exchange } = new InstanceListener(internals.host, (refusal) => b.refusals.push(refusal));
  return {
    request: (...given) => {
      ways.alone.push(given[0].url ?? '');
      request(...given);
    },
    exchange: (...given) => {
      ways.multiplexed.push(given[0]);
      exchange(...given);
    },
  };
}

/** Says nothing of multiplexed connections when a conversation opens. */
function withoutSharing({ request, exchange }: ServedInstances): ServedInstances {
  return {
    exchange,
    request: (incoming, response, caller) => {
      const { write } = response;
      const said = frameOf({ kind: 'duty', isDraining: false }).subarray(0, 1);
      response.write = (frame: Buffer, ...others: unknown[]) => {
        const content = frame.subarray(5).toString().replace(',"sharesExchanges":true', '');
        const shorter = Buffer.concat([said, Buffer.alloc(4), Buffer.from(content)]);
        shorter.writeUInt32BE(shorter.length - 5, 1);
        return Reflect.apply(write, response, [shorter, ...others]);
      };
      request(incoming, response, caller);
    },
  };
}

function calling(name: string, args: object = {}) {
  const params = { name, arguments: JsonText.ofText(JSON.stringify(args)) };
  return { method: 'tools/call', params, callerId: 'ada' };
}

async function echo(transport: Transport, args: object): Promise<string> {
  return JSON.stringify(await lastValueFrom(transport.exchange(calling('echo', args))));
}

/** A link to the instance whose exchanges share a connection now. */
async function sharing(from = a): Promise<Transport> {
  const { definition } = gateway.instance('demo', 'one');
  const openLink = from.peers.openInstance({ ...definition, nodeId: `node ${B}` });
  const transport = await openLink(new AbortController().signal);
  const before = ways.multiplexed.length;
  await becomes(async () => {
    await echo(transport, {});
    return ways.multiplexed.length > before;
  }, true);
  return transport;
}

/** A connection to the second node, by hand, with a token of the first one. */
async function upgraded(given?: string, hops = 'instance') {
  const [key = Buffer.alloc(0)] = channelKeys([Buffer.from(SECRET)]).tokens;
  const issuer = new TokenIssuer(key, systemClock.now, () => A, B);
  const { text: greeting, answered } = issuer.greeting();
  const verifier = new TokenVerifier(
    [key],
    systemClock.now,
    () => B,
    () => true,
  );
  answered(verifier.greet(greeting) ?? '');
  const token = given ?? issuer.tokenFor({ ...ANONYMOUS, id: 'ada', scopes: new Set(['tools:call']) });
  const socket = connect(b.listener.port, '127.0.0.1');
  const head =
    `GET ${INSTANCE_PATHS.multiplexed} HTTP/1.1\r\nHost: b\r\nPeer-Token: ${token}\r\nPeer-Hops: ${hops}\r\n` +
    `Connection: upgrade\r\nUpgrade: ${MULTIPLEXED_PROTOCOL}\r\n\r\n`;
  socket.write(head);
  const [answer] = await once(socket, 'data');
  return { socket, writer: new MessageWriter(socket), token, status: String(answer).slice(9, 12) };
}

/** A node that reaches B through a relay, and whose clock goes on by `pass`, in which what was sent arrives. */
async function behindRelay() {
  let nowMs = 0;
  const ticks = new Map<() => void, number>();
  const every = (everyMs: number, tick: () => void) => {
    ticks.set(tick, everyMs);
    return () => ticks.delete(tick);
  };
  const background = { ...systemClock.background, every };
  const c = await deployment.node('CCCCCCCC', { clock: { ...systemClock, now: () => nowMs, background } });
  const relay = await relayTo(b.listener.port);
  deployment.rows.set(B, { ...b.member, address: `http://127.0.0.1:${relay.port}` });
  const transport = await sharing(c);
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      nowMs += 1_000;
      for (const [tick, everyMs] of [...ticks]) if (nowMs % everyMs === 0) tick();
      for (let trip = 0; trip < 3; trip += 1)
        await (await fetch(`http://127.0.0.1:${b.listener.port}/`)).text();
    }
  };
  const close = async (): Promise<void> => {
    await transport.close();
    c.peers.close();
    relay.close();
  };
  return { transport, relay, pass, close };
}

/** Passes bytes on; after `cut` none of the connections that are open passes any, and new ones pass them after `heal`. */
async function relayTo(port: number) {
  let isCut = false;
  const multiplexed = new Map<Socket, Socket>();
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    if (isCut) return;
    const far = connect(port, '127.0.0.1');
    near.once('data', (head: Buffer) => {
      if (head.includes(INSTANCE_PATHS.multiplexed)) multiplexed.set(near, far).set(far, near);
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('error', () => from.destroy());
      from.on('close', () => to.destroy());
      from.pipe(to);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.unpipe();
    },
    cutMultiplexed: () => {
      for (const from of multiplexed.keys()) from.unpipe();
    },
    healMultiplexed: () => {
      for (const [from, to] of multiplexed) from.pipe(to);
    },
    heal: () => {
      isCut = false;
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
