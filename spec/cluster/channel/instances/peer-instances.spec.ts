// Instances of another node over the peer channel, between real listeners in one process: what an exchange and a conversation carry, who may
// use them, and how they end. Whole gateways: spec/system/nodes/programs/programs-elsewhere.spec.ts.

import { firstValueFrom, lastValueFrom, NEVER, Subject, toArray } from 'rxjs';
import * as assert from 'uvu/assert';
import { DedicatedConversation, sharedBy } from '../../../../src/actors/instances/dedicated-conversation.ts';
import { InstanceTransport } from '../../../../src/actors/instances/instance-transport.ts';
import type { InstanceHost } from '../../../../src/cluster/channel/instances/instance-host.ts';
import { InstanceListener } from '../../../../src/cluster/channel/instances/instance-listener.ts';
import { exchangeBody } from '../../../../src/cluster/channel/instances/peer-frames.ts';
import { INSTANCE_PATHS, MAX_QUESTIONS } from '../../../../src/cluster/channel/peer-protocol.ts';
import { ANONYMOUS, type Principal } from '../../../../src/domain/accounts/principal.ts';
import { GatewayError } from '../../../../src/domain/errors/errors.ts';
import type { InstanceDefinition } from '../../../../src/domain/instances/instance.ts';
import { type JsonObject, JsonText } from '../../../../src/domain/json/json.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import {
  type ClientAnswer,
  QUESTION_REFUSALS,
  type ServerMessage,
  type ServerRequest,
  serverRequest,
} from '../../../../src/domain/mcp/client.ts';
import type { Handshake } from '../../../../src/domain/mcp/mcp.ts';
import type { InstanceHeldBytes } from '../../../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { createGateway, type Gateway } from '../../../../src/gateway/gateway.ts';
import type { Transport } from '../../../../src/transports/transport.ts';
import { HeldTool, serving, text } from '../../../helpers/backends/function-backend.ts';
import { NO_RULES } from '../../../helpers/backends/tool-rules.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { messageOf } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';
import { untimedScheduler } from '../../../helpers/time/turns.ts';
import { scripted } from '../../../transports/stdio/open-stdio.ts';
import { ask, Deployment, forward, type PeerNode } from '../peer-nodes.ts';

const test = suite('instances over the peer channel');
const [A, B, C] = ['AAAAAAAA', 'BBBBBBBB', 'CCCCCCCC'] as const;
let deployment: Deployment;
let gateway: Gateway;
let held: HeldTool;
/** Requests about resources that the backend got. */
let resources: string[];
let hasResources: boolean;
let a: PeerNode;
let b: PeerNode;
test.before.each(async () => {
  held = new HeldTool();
  gateway = await createGateway();
  resources = [];
  hasResources = true;
  const tools = serving({
    held: held.body,
    echo: (args) => text(JSON.stringify(args)),
    log: (args, context) => {
      context.notify('notifications/message', { level: 'info', data: 'x'.repeat(1_000_000) });
      return held.body(args, context);
    },
    flood: (args, context) => {
      for (let sent = 0; sent < 40; sent += 1)
        context.notify('notifications/message', { level: 'info', data: 'x'.repeat(1_000_000) });
      return held.body(args, context);
    },
  });
  const handler: typeof tools = (request, context) => {
    if (!request.method.startsWith('resources/')) return tools(request, context);
    resources.push(request.method);
    if (!hasResources) throw { code: -32002, message: 'Resource not found' };
    return {};
  };
  await gateway.register('demo', { id: 'one', handler }, { waitMs: 5_000 });
  deployment = new Deployment();
  a = await deployment.node(A);
  b = await deployment.node(B, {
    instances: new InstanceListener(gateway.internals.host, (refusal) => b.refusals.push(refusal)),
  });
});
test.after.each(async () => {
  await deployment.close();
  await gateway.close({ graceMs: 0 });
});

test('an exchange is one attempt at the instance, with the arguments as they were written', async () => {
  const transport = await open();
  const args = '{ "n": 12345678901234567890, "t": "\u00e9" }';
  const params = { name: 'echo', arguments: JsonText.ofText(args) };
  const events = await lastValueFrom(
    transport.exchange({ method: 'tools/call', params, callerId: 'ada' }).pipe(toArray()),
  );
  assert.is(events.length, 1);
  assert.match(JSON.stringify(events[0]), '\u00e9');
  const server = gateway.instance('demo', 'one');
  assert.equal([transport.handshake.era, server.snapshot.inFlight], ['legacy', 0]);
  await transport.close();
});

test('a call of an embedding program counts at the instance, and a request of the gateway itself does not', async () => {
  const transport = await open();
  const request = { method: 'tools/call', params: { name: 'held', arguments: {} } };
  const own = transport.exchange(request).subscribe();
  const call = transport.exchange({ ...request, longestMs: 60_000 }).subscribe();
  await becomes(() => held.waiting, 2);
  assert.is(gateway.instance('demo', 'one').snapshot.inFlight, 1);
  for (const each of [own, call]) each.unsubscribe();
  await transport.close();
});

test('a call that its caller leaves ends at the instance', async () => {
  const transport = await open();
  const request = { method: 'tools/call', params: { name: 'held', arguments: {} }, callerId: 'ada' };
  const call = transport.exchange(request).subscribe();
  await becomes(() => held.waiting, 1);
  assert.is(gateway.instance('demo', 'one').snapshot.inFlight, 1);
  call.unsubscribe();
  await becomes(() => gateway.instance('demo', 'one').snapshot.inFlight, 0);
  await transport.close();
});

test('an incomplete answer counts in memory until it is complete or its caller leaves, and a complete one as answered', async () => {
  let holdings = 0;
  let all = 0;
  const hold = () => {
    holdings += 1;
    all += 1;
    return { set: () => true, release: () => (holdings -= 1) };
  };
  const transport = await open('one', `node ${B}`, a, { refuses: () => false, hold });
  const call = (name: string, args: JsonObject) =>
    transport.exchange({ method: 'tools/call', params: { name, arguments: args }, callerId: 'ada' });
  const before = { ...a.counts.hops.instance };
  await lastValueFrom(call('echo', { long: 'x'.repeat(2_000_000) }));
  await becomes(() => a.counts.hops.instance, { ...before, answered: before.answered + 1 });
  assert.equal([all, holdings], [1, 0]);
  await firstValueFrom(call('log', {}));
  assert.equal([all, holdings], [2, 0]);
  await transport.close();
});

test('a node learns of the calls at the instance that are not its own', async () => {
  const request = { method: 'tools/call', params: { name: 'held', arguments: {} }, callerId: 'ada' };
  const c = await deployment.node('CCCCCCCC');
  const [ofA, ofC] = [await open(), await open('one', `node ${B}`, c)];
  const calls = [ofA, ofA, ofC].map((transport) => transport.exchange(request).subscribe());
  const atItsNode = gateway.call('demo', 'held');
  await becomes(() => held.waiting, 4);
  await becomes(() => [ofA.otherCalls, ofC.otherCalls], [2, 3]);
  for (const call of calls) call.unsubscribe();
  await becomes(() => [ofA.otherCalls, ofC.otherCalls], [1, 1]);
  held.answerAll();
  await atItsNode;
  await becomes(() => [ofA.otherCalls, ofC.otherCalls], [0, 0]);
  for (const transport of [ofA, ofC]) await transport.close();
});

test('when the node goes, its conversation is closed and a call under way has an unknown outcome', async () => {
  const transport = await open();
  const closed = firstValueFrom(transport.closed$);
  const request = { method: 'tools/call', params: { name: 'held', arguments: {} }, callerId: 'ada' };
  const failed = lastValueFrom(transport.exchange(request)).catch((error: unknown) => error);
  await becomes(() => held.waiting, 1);
  await b.listener.close(0);
  const { code, delivered } = Object(await failed);
  assert.equal([code, delivered, (await closed).isExpected], ['BACKEND_UNAVAILABLE', 'unknown', false]);
  const late = await lastValueFrom(transport.exchange(request)).catch((error: unknown) => error);
  assert.is(Object(late).delivered, 'no');
});

test('a call that still waits for a ping when its conversation ends was not delivered', async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const d = await deployment.node('DDDDDDDD', { clock });
  const transport = await open('one', `node ${B}`, d);
  aheadMs = 1_000; // the node was not heard just now
  const request = { method: 'tools/call', params: { name: 'held', arguments: {} }, callerId: 'ada' };
  const failed = lastValueFrom(transport.exchange(request)).catch((error: unknown) => error);
  await transport.close();
  assert.is(Object(await failed).delivered, 'no');
});

test('the same backend is recognized when the link to it is opened again', async () => {
  const { definition } = gateway.instance('demo', 'one');
  const openLink = a.peers.openInstance({ ...definition, nodeId: `node ${B}` });
  const handshakes: Handshake[] = [];
  for (const restarts of [false, false, true]) {
    if (restarts) gateway.restart('demo', 'one');
    if (restarts) await becomes(() => gateway.instance('demo', 'one').snapshot.restarts, 1);
    const transport = await openLink(new AbortController().signal);
    handshakes.push(transport.handshake);
    await transport.close();
  }
  assert.equal([handshakes[0] === handshakes[1], handshakes[1] === handshakes[2]], [true, false]);
});

test('an instance that its node does not have, or a node that is away, is an opening that failed', async () => {
  for (const [id, nodeId] of [
    ['two', `node ${B}`],
    ['one', 'gone'],
  ] as const) {
    const failed = await open(id, nodeId).catch((error: unknown) => error);
    assert.equal([Object(failed).code, Object(failed).delivered], ['BACKEND_UNAVAILABLE', 'no']);
  }
  assert.equal(
    b.refusals.map(({ reason, instance }) => [reason, instance]),
    [['unknown instance', 'demo/two']],
  );
});

test('a question of the backend that no client can answer is refused, as at its own node', async () => {
  const messages$ = new Subject<ServerMessage>();
  const c = await deployment.node('CCCCCCCC', {
    instances: new InstanceListener(hostOf(messages$), () => {}),
  });
  const transport = await open('one', c.member.node);
  const opened = await transport.openConversation?.({
    profile: PROFILE,
    signal: new AbortController().signal,
    ownerId: 'ada',
  });
  assert.ok(opened);
  const question = () =>
    new Promise<ClientAnswer>((resolve) => {
      messages$.next(serverRequest({ method: 'roots/list', params: {} }, resolve));
    });
  assert.equal(await question(), QUESTION_REFUSALS.undeclared, 'nothing receives it');
  // A client that leaves all of them open.
  const received: ServerMessage[] = [];
  opened.messages$.subscribe((message) => received.push(message));
  const replies: ClientAnswer[] = [];
  for (let sent = 0; sent < MAX_QUESTIONS + 2; sent += 1)
    void question().then((reply) => replies.push(reply));
  await becomes(() => replies, [QUESTION_REFUSALS.undeclared, QUESTION_REFUSALS.undeclared]);
  await becomes(() => received.length, MAX_QUESTIONS);
  await transport.close();
});

test('each question gets its reply, however many are answered at once', async () => {
  const messages$ = new Subject<ServerMessage>();
  const c = await deployment.node('CCCCCCCC', {
    instances: new InstanceListener(hostOf(messages$), () => {}),
  });
  const transport = await open('one', c.member.node);
  const opened = await transport.openConversation?.({
    profile: PROFILE,
    signal: new AbortController().signal,
    ownerId: 'ada',
  });
  assert.ok(opened);
  const asked: ServerRequest[] = [];
  opened.messages$.subscribe((message) => void (message.kind === 'request' && asked.push(message)));
  const replies: ClientAnswer[] = [];
  const question = () =>
    messages$.next(serverRequest({ method: 'roots/list', params: {} }, (reply) => replies.push(reply)));
  for (let sent = 0; sent < 300; sent += 1) question();
  await becomes(() => asked.length, 300);
  const large = { result: { roots: 'x'.repeat(10_000) } } as const;
  for (const { answer } of asked) answer(large);
  await becomes(() => replies.length, 300);
  // 64 are under way, and the next ones are kept up to 1 MiB.
  const refused = replies.filter(
    (reply) => JSON.stringify(reply) === JSON.stringify(QUESTION_REFUSALS.undeclared),
  ).length;
  assert.ok(refused > 0 && refused <= 300 - 64 - 100, `${refused} were refused`);
  await transport.close();
});

test('a caller needs the right to call tools of the template', async () => {
  const body = JSON.stringify({ template: 'demo', id: 'one' });
  const sent = { hop: 'instance', target: INSTANCE_PATHS.conversation, body } as const;
  const of = (rights: Partial<Principal>) => ask(a, B, { ...sent, principal: { ...ANONYMOUS, ...rights } });
  const other = await of({ id: 'key:1', templates: new Set(['other']) });
  assert.match(other.text, 'TEMPLATE_NOT_FOUND');
  assert.is((await of({ scopes: new Set(['gateway:read']) })).status, 403);
  const path = INSTANCE_PATHS.conversation;
  assert.equal(
    b.refusals.map((refusal) => [refusal.reason, refusal.status, refusal.path, refusal.instance]),
    [
      ['unauthorized caller', 404, path, 'demo/one'],
      ['unauthorized caller', 403, path, undefined],
    ],
  );
  assert.is(b.refusals[0]?.callerId, 'key:1');
});

test('the body of a request has a bound, and counts for its caller until the answer', async () => {
  const principal = { ...ANONYMOUS, id: 'ada' };
  const sent = { hop: 'instance', target: INSTANCE_PATHS.exchange, principal } as const;
  const { text: answer } = await ask(a, B, { ...sent, body: Buffer.alloc(2 * LIMITS.requestBodyBytes + 1) });
  assert.match(answer, 'QUEUE_FULL');
  const transport = await open();
  const request = { method: 'tools/call', params: { name: 'held', arguments: {} }, callerId: 'ada' };
  const answered = lastValueFrom(transport.exchange(request));
  await becomes(() => held.waiting, 1);
  const { requestBytes } = gateway.internals.host;
  assert.ok(requestBytes.held('ada') > 0);
  held.answer();
  await answered;
  await becomes(() => requestBytes.held('ada'), 0);
  await transport.close();
});

test('the bytes of a request whose sender left before it was admitted are given back', async () => {
  const listener = new InstanceListener(gateway.internals.host, () => {});
  const [arrived, served] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const request: InstanceListener['request'] = (...admitted) => {
    arrived.resolve();
    admitted[1].once('close', () => {
      listener.request(...admitted);
      served.resolve();
    });
  };
  await deployment.node(C, { instances: { request, exchange: listener.exchange } });
  const principal = { ...ANONYMOUS, id: 'ada' };
  const body = Buffer.alloc(60_000);
  const sent = await forward(a, C, { hop: 'instance', target: INSTANCE_PATHS.exchange, body, principal });
  await arrived.promise;
  sent.forwarding?.cancel();
  await served.promise;
  assert.is(gateway.internals.host.requestBytes.held('ada'), 0);
});

test('an exchange whose messages the other node does not read is ended', async () => {
  const body = JSON.stringify({ template: 'demo', id: 'one' });
  const opened = await forward(a, B, { hop: 'instance', target: INSTANCE_PATHS.conversation, body });
  const nameIn = () => /"conversation":"([^"]+)"/.exec(opened.text)?.[1];
  await becomes(() => nameIn() !== undefined, true);
  const params = { name: 'flood', arguments: {} };
  const exchange = exchangeBody(nameIn() ?? '', { method: 'tools/call', params });
  const principal = { ...ANONYMOUS, id: 'ada' };
  const sent = { hop: 'instance', target: INSTANCE_PATHS.exchange, body: exchange, principal } as const;
  const { forwarding } = await forward(a, B, { ...sent, isPaused: () => true });
  await becomes(() => held.cancelled, 1);
  assert.is(gateway.instance('demo', 'one').snapshot.inFlight, 0);
  forwarding?.cancel();
  opened.forwarding?.cancel();
});

test('subscriptions of several nodes in the shared conversation end at the backend with the last one', async () => {
  const [first, second] = [await open(), await open()];
  const send = (transport: Transport, method: string) =>
    lastValueFrom(transport.exchange({ method, params: { uri: 'test://one' } }));
  await send(first, 'resources/subscribe');
  await send(second, 'resources/subscribe');
  await send(first, 'resources/unsubscribe');
  assert.equal(resources, ['resources/subscribe']);
  await second.close();
  await becomes(() => resources, ['resources/subscribe', 'resources/unsubscribe']);
  await first.close();
});

test('a subscription that the backend refuses is not kept, and is asked for again', async () => {
  const [first, second] = [await open(), await open()];
  const subscribe = async (transport: Transport) => {
    const request = { method: 'resources/subscribe', params: { uri: 'test://one' }, callerId: 'user:ada' };
    return (await lastValueFrom(transport.exchange(request))).kind;
  };
  hasResources = false;
  assert.is(await subscribe(first), 'error');
  hasResources = true;
  assert.is(await subscribe(second), 'result');
  await second.close();
  await becomes(() => resources.slice(1), ['resources/subscribe', 'resources/unsubscribe']);
  await first.close();
});

test('an owner has one share of the resources of an instance, through however many nodes it subscribes', async () => {
  const transports = [await open(), await open()];
  const timing = { clock: systemClock, scheduler: untimedScheduler() };
  // As an instance does: it passes on parts of the transport.
  const feeds = transports.map(
    (transport) => new InstanceTransport(transport, timing, NO_RULES, () => {}).feed,
  );
  const subscribe = (owner: string, from: number, count: number) =>
    Array.from({ length: count }, (_, index) =>
      feeds[index % feeds.length]?.subscribe(`test://${from + index}`, owner),
    );
  const taken = subscribe('user:ada', 0, 2_500);
  await Promise.all(taken.map((part) => part?.answer));
  const [over] = subscribe('user:ada', 2_500, 1);
  assert.match(await messageOf(() => over?.answer, GatewayError), '2500');
  over?.release(); // it takes no place later
  const [same, other] = [subscribe('user:bob', 0, 1)[0], subscribe('user:bob', 3_000, 1)[0]];
  await Promise.all([same?.answer, other?.answer]);
  assert.is(resources.length, 2_501, 'the backend is asked once for a resource of two owners');
  for (const part of taken) part?.release();
  await becomes(() => resources.length, 5_000);
  for (const transport of transports) await transport.close();
  await becomes(() => resources.length, 5_002);
});

test('nodes that share one process of equal extensions share its subscriptions, too', async () => {
  const { command, args } = scripted(
    "if (method.startsWith('resources/')) seen.push(method); say({ jsonrpc: '2.0', id, result: { seen } });",
    'const seen = [];',
  );
  await gateway.register('demo', { id: 'program', command, args: [...args] }, { waitMs: 30_000 });
  const capabilities = { extensions: { 'com.example/one': {} } };
  const request = { ownerId: 'user:ada', ...sharedBy(capabilities) };
  const transports = [await open('program'), await open('program')];
  const deps = { clock: systemClock, scheduler: untimedScheduler() };
  // As an instance does.
  const shared = transports.map((transport) => {
    const opening = (signal: AbortSignal) =>
      transport.openConversation({ profile: request.profile, signal, isShared: true });
    const listener = { opened: () => {}, ended: () => {}, gone: () => {} };
    return new DedicatedConversation(deps, { request, key: 'shared', open: opening, listener });
  });
  const [first] = await Promise.all(shared.map((each) => each.requiredOpening));
  const [atFirst, atSecond] = shared.map(({ feed }) => feed);
  const seen = async () => {
    const event = first && (await lastValueFrom(first.exchange({ method: 'seen', callerId: 'ada' })));
    assert.ok(event?.kind === 'result');
    return JSON.parse(event.result.text).seen;
  };
  const parts = [
    atFirst?.subscribe('test://one', 'user:ada'),
    atFirst?.subscribe('test://one', 'user:bob'),
    atSecond?.subscribe('test://one', 'user:ada'),
  ];
  await Promise.all(parts.map((part) => part?.answer));
  parts[0]?.release();
  parts[2]?.release();
  const again = atSecond?.subscribe('test://one', 'user:eve');
  await again?.answer;
  assert.equal(await seen(), ['resources/subscribe'], 'the other owners have it still');
  await shared[1]?.close();
  assert.equal(await seen(), ['resources/subscribe'], 'and the owner at the other node');
  parts[1]?.release();
  await becomes(seen, ['resources/subscribe', 'resources/unsubscribe']);
  for (const transport of transports) await transport.close();
});

test('a request with the hop of another kind is refused', async () => {
  for (const [hop, target] of [
    ['session', INSTANCE_PATHS.exchange],
    ['instance', '/mcp/demo'],
  ] as const) {
    const { error } = await ask(a, B, { hop, target, body: '{}' });
    assert.is(error?.code, 'NODE_UNAVAILABLE');
  }
  assert.equal(
    b.refusals.map(({ reason }) => reason),
    ['loop', 'loop'],
  );
});

test('an instance that runs at a third node is not reached through this one: two nodes that name each other make no loop', async () => {
  const nodeId = `node ${C}`;
  const openElsewhere = (definition: InstanceDefinition) => c.peers.openInstance(definition);
  const between = await createGateway({ node: { id: nodeId }, others: { openElsewhere } });
  const c = await deployment.node(C, {
    instances: new InstanceListener(between.internals.host, (refusal) => c.refusals.push(refusal)),
  });
  const there = { id: 'one', command: 'run', node: `node ${B}` };
  await between.register('demo', there, { waitMs: 5_000 });
  assert.is(between.instance('demo', 'one').snapshot.state, 'healthy');
  const failed = await open('one', nodeId).catch((error: unknown) => error);
  assert.equal([Object(failed).code, Object(failed).delivered], ['BACKEND_UNAVAILABLE', 'no']);
  assert.match(Object(failed).message, 'its node does not run it');
  await between.close({ graceMs: 0 });
});

test.run();

const PROFILE = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: {} };

/** An instance whose dedicated conversations have these messages. */
function hostOf(messages$: Subject<ServerMessage>): InstanceHost {
  const { protocolVersion } = PROFILE;
  const serverInfo = { name: 'one', version: '1' };
  const handshake: Handshake = { era: 'legacy', protocolVersion, capabilities: {}, serverInfo, greeting: {} };
  return {
    requestBytes: gateway.internals.host.requestBytes,
    has: () => true,
    open: async ({ profile }) => ({
      conversation: { handshake, messages$: profile === undefined ? NEVER : messages$, notify: () => {} },
      ...{ duty$: NEVER, otherCalls$: NEVER, closed$: NEVER, exchange: () => NEVER, release: () => {} },
    }),
  };
}

function open(id = 'one', nodeId = `node ${B}`, from = a, answers?: InstanceHeldBytes): Promise<Transport> {
  const { definition } = gateway.instance('demo', 'one');
  return from.peers.openInstance({ ...definition, id, nodeId }, answers)(new AbortController().signal);
}
