// The events of a gateway: order, content, listeners that throw, health, and no secret in any of them. Two tests start real
// children: one that fails, and a modern server.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { filter, firstValueFrom, map, mergeMap, take } from 'rxjs';
import * as assert from 'uvu/assert';
import type { GatewayEvent } from '../../src/domain/events/events.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { everythingProgram } from '../fixtures/everything-server.ts';
import { HeldTool, rpcError, serving, text } from '../helpers/backends/function-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('gateway: events');
const WAIT = { waitMs: 5_000 };
let gateway: Gateway;
let events: GatewayEvent[] = [];

test.before.each(async () => {
  gateway = await createGateway();
  events = [];
  gateway.events$.subscribe((event) => events.push(event));
});
test.after.each(() => gateway.close({ graceMs: 0 }));

test('emits the events of a registration, a call and a deregistration in order', async () => {
  await gateway.register('t', { id: 'a', handler: serving({ echo: () => ({}) }) }, WAIT);
  await gateway.call('t', 'echo');
  await gateway.deregister('t', 'a');
  await turn();
  const types = events.map(({ type }) => type);
  assert.equal(types, [
    ...['template.changed', 'instance.registered', 'instance.starting', 'probe.finished'],
    ...['instance.healthy', 'call.started', 'call.finished'],
    ...['instance.draining', 'instance.deregistered', 'instance.stopped'],
  ]);
});

test('events of calls have their time, instance and outcome', async () => {
  const before = Date.now();
  await gateway.register('t', { id: 'a', handler: serving({ echo: () => ({}) }) }, WAIT);
  await gateway.call('t', 'echo');
  await codeOf(gateway.call('t', 'unknown'));
  for (const { atMs } of events) assert.ok(atMs >= before && atMs <= Date.now());
  const healthy = events.find((event) => event.type === 'instance.healthy');
  assert.is(healthy?.era, 'legacy');
  const [finished] = events.flatMap((event) => (event.type === 'call.finished' ? [event] : []));
  const { atMs: _, waitMs = -1, durationMs = -1, ...facts } = finished ?? {};
  assert.ok(durationMs >= 0 && waitMs >= 0);
  const none = { view: undefined, requestId: undefined };
  const call = { template: 't', method: 'tools/call', principal: 'anonymous', ...none };
  assert.equal(facts, {
    ...{ type: 'call.finished', ...call, instanceId: 'a', serverId: 'a', call: 1, tool: 'echo' },
    ...{ attempt: 1, outcome: 'result', isLast: true, code: undefined, alias: 'exchange.finished' },
  });
  const { atMs: __, waitMs: ___, ...refused } = Object(events.at(-1));
  assert.equal(refused, {
    ...{
      type: 'call.finished',
      ...call,
      instanceId: undefined,
      serverId: undefined,
      call: 2,
      tool: 'unknown',
    },
    ...{ attempt: undefined, outcome: 'refused', durationMs: 0, isLast: true },
    ...{ code: 'TOOL_NOT_FOUND', alias: 'exchange.refused' },
  });
});

test('listeners whose promises reject do not end the process, and are warned about', async () => {
  const { mock: warned } = mock.method(process, 'emitWarning', () => {});
  const explode = async () => {
    throw new Error('an async listener of the embedder');
  };
  try {
    const bombs = [
      gateway.events$.subscribe(explode),
      gateway.on('call.started').subscribe({ next: explode }),
      gateway.on('call.finished').subscribe({ complete: explode }),
    ];
    await gateway.register('t', { id: 'a', handler: serving({ echo: () => ({}) }) }, WAIT);
    assert.is((await gateway.call('t', 'echo')).instanceId, 'a');
    await gateway.close({ graceMs: 0 });
    await turn();
    const texts = warned.calls.map((call) => String(call.arguments[0]));
    assert.equal([...new Set(texts)], ['Error: an async listener of the embedder']);
    assert.ok(texts.length >= events.length + 2);
    for (const bomb of bombs) bomb.unsubscribe();
  } finally {
    warned.restore();
  }
});

test('listeners behind operators, and what operators throw, do not end the process, and are warned about', async () => {
  const { mock: warned } = mock.method(process, 'emitWarning', () => {});
  const fatal: unknown[] = [];
  const note = (thrown: unknown) => fatal.push(String(thrown));
  process.on('uncaughtException', note).on('unhandledRejection', note);
  const explode = (how: string) => () => raise(new Error(how));
  const reject = (how: string) => async () => raise(new Error(how));
  try {
    const piped$ = gateway.events$.pipe(filter(() => true));
    const bombs = [
      piped$.subscribe(explode('thrown')),
      piped$.subscribe(reject('rejected')),
      piped$.pipe(map(() => 1)).subscribe(reject('rejected behind two')),
      gateway
        .on('call.started')
        .pipe(take(1))
        .subscribe({ complete: reject('rejected at the end') }),
      gateway.events$.pipe(mergeMap(reject('rejected in an operator'))).subscribe(),
    ];
    void gateway.events$.forEach(reject('rejected in forEach'));
    const received: string[] = [];
    piped$.subscribe(({ type }) => received.push(type));
    await gateway.register('t', { id: 'a', handler: serving({ echo: () => ({}) }) }, WAIT);
    assert.is((await gateway.call('t', 'echo')).instanceId, 'a');
    await new Promise((resolve) => setTimeout(resolve)); // rxjs throws what it does not handle from a timer
    assert.equal(
      received,
      events.map(({ type }) => type),
    );
    const texts = new Set(warned.calls.map((call) => String(Object(call.arguments[0]).message)));
    const told = [
      'thrown',
      'rejected',
      'rejected behind two',
      'rejected at the end',
      'rejected in an operator',
      'rejected in forEach',
    ];
    assert.equal([[...texts].sort(), fatal], [told.sort(), []]);
    for (const bomb of bombs) bomb.unsubscribe();
  } finally {
    process.off('uncaughtException', note).off('unhandledRejection', note);
    warned.restore();
  }
});

test('an event goes to those that listened before it, of thousands that come and go', async () => {
  const received: string[] = [];
  const late = () => gateway.events$.subscribe(() => received.push('late'));
  const first = gateway.on('template.changed').subscribe(() => late());
  const before = performance.now();
  const many = Array.from({ length: 20_000 }, () => gateway.events$.subscribe(() => received.push('many')));
  for (const each of many.slice(1)) each.unsubscribe();
  assert.ok(performance.now() - before < 5_000, 'a copy of all at each took over 10 s');
  await gateway.register('t', { id: 'a', handler: serving({}) }, WAIT);
  first.unsubscribe();
  const { length } = events;
  assert.is(received.filter((each) => each === 'many').length, length);
  assert.is(received.filter((each) => each === 'late').length, length - 1);
});

test('listeners that throw affect neither the gateway nor other listeners', async () => {
  const { mock: warned } = mock.method(process, 'emitWarning', () => {});
  const explode = () => {
    throw new Error('a listener of the embedder');
  };
  try {
    const explodeWithText = () => {
      throw 'a text';
    };
    const bombs = [gateway.events$.subscribe(explode), gateway.on('call.started').subscribe(explodeWithText)];
    const received: string[] = [];
    gateway.events$.subscribe(({ type }) => received.push(type));
    await gateway.register('t', { id: 'a', handler: serving({ echo: () => ({}) }) }, WAIT);
    bombs.push(gateway.health$('t').subscribe(explode), gateway.health$('no').subscribe(explode));
    assert.is((await gateway.call('t', 'echo')).instanceId, 'a');
    gateway.drain('t', 'a');
    const types = events.map(({ type }) => type);
    assert.equal(received, types);
    assert.ok(warned.callCount() > received.length);
    const texts = new Set(warned.calls.map((call) => String(call.arguments[0])));
    const unknown = 'GatewayError: No template named "no" is registered.';
    assert.equal([...texts], ['Error: a listener of the embedder', unknown, 'Error: a text']);
    for (const bomb of bombs) bomb.unsubscribe();
  } finally {
    warned.restore();
  }
});

test('listeners that throw values without a text do not end the process, and are warned about', async () => {
  const { mock: warned } = mock.method(process, 'emitWarning', () => {});
  const fatal: unknown[] = [];
  const note = (thrown: unknown) => fatal.push(thrown);
  process.on('uncaughtException', note).on('unhandledRejection', note);
  const unreadable = Object.defineProperty(new Error(), 'message', { get: () => raise(Object.create(null)) });
  const values = [Object.create(null), { toString: () => raise(new Error('no text')) }, unreadable];
  try {
    for (const value of values) {
      gateway.events$.subscribe(() => raise(value));
      gateway.events$.subscribe(() => Promise.reject(value));
    }
    await gateway.register('t', { id: 'a', handler: serving({}) }, WAIT);
    await gateway.close({ graceMs: 0 });
    for (let turns = 0; turns < 5; turns += 1) await turn();
    assert.equal(fatal, []);
    const texts = new Set(warned.calls.map((call) => String(call.arguments[0])));
    assert.equal([...texts], ['Error: an error without a text']);
  } finally {
    warned.restore();
    process.off('uncaughtException', note).off('unhandledRejection', note);
  }
});

test('can be called from within its own events', async () => {
  const answered = new Promise<string>((resolve, reject) => {
    gateway.on('instance.healthy').subscribe(() => {
      gateway.call('t', 'echo').then(({ instanceId }) => resolve(instanceId), reject);
    });
  });
  await gateway.register('t', { id: 'a', handler: serving({ echo: () => ({}) }) });
  assert.is(await answered, 'a');
});

test('health$ emits the health of a template at once and at every change', async () => {
  await gateway.register('t', { id: 'a', handler: serving({}) }, WAIT);
  const received: string[] = [];
  gateway.health$('t').subscribe(({ healthy, total }) => received.push(`${healthy} of ${total}`));
  assert.equal(received, ['1 of 1']);
  await gateway.register('t', { id: 'b', handler: serving({}) }, WAIT);
  gateway.drain('t', 'a');
  gateway.resume('t', 'a');
  await gateway.deregister('t', 'b');
  await gateway.register('other', { id: 'c', handler: serving({}) }, WAIT);
  const changes = received.filter((value, index) => value !== received[index - 1]);
  assert.equal(changes, ['1 of 1', '1 of 2', '2 of 2', '1 of 1', '2 of 2', '1 of 1']);
  assert.is(gateway.health('t').healthPercentage, 100);
  await gateway.deregister('t', 'a');
  await gateway.deleteTemplate('t');
  for (const method of ['health', 'countInstances'] as const)
    assert.throws(() => gateway[method]('t'), 'No template named "t" is registered.');
  gateway.health$('other').subscribe(null, null, () => received.push('completed'));
  await gateway.close();
  assert.is(received.at(-1), 'completed');
});

test('events have no secret, whatever fails: no argument, result, header, variable or error text', async () => {
  const secret = 'S3CR3T';
  const held = new HeldTool();
  const handler = serving({
    echo: () => text(secret),
    refuses: () => {
      throw rpcError(-32602, secret, secret);
    },
    held: held.body,
  });
  await gateway.register('t', { id: 'a', handler, metadata: { secret } }, WAIT);
  for (const tool of ['echo', 'refuses', 'unknown']) await codeOf(gateway.call('t', tool, { secret }));
  const controller = new AbortController();
  const aborted = codeOf(gateway.call('t', 'held', { secret }, { signal: controller.signal }));
  await turn();
  controller.abort(new Error(secret));
  await aborted;
  await codeOf(gateway.call('t', 'held', { secret }, { timeoutMs: 1 }));
  const unhealthy = firstValueFrom(
    gateway.on('instance.unhealthy').pipe(filter(({ instanceId }) => instanceId === 'child')),
  );
  const args = ['-e', 'console.error(process.env.TOKEN); process.exit(7)', secret];
  await gateway.register('s', { id: 'child', command: process.execPath, args, env_vars: { TOKEN: secret } });
  const headers = { authorization: `Bearer ${secret}` };
  await gateway.register('s', { id: 'web', endpoint: `http://127.0.0.1:1/mcp?key=${secret}`, headers });
  await unhealthy;
  await codeOf(gateway.call('s', 'echo', { secret }));
  await gateway.changeInstance('t', 'a', { metadata: { secret, more: secret } });
  await gateway.close({ graceMs: 0 });
  assert.ok(events.length > 20);
  const found = events.filter((event) => JSON.stringify(event).includes(secret));
  assert.equal(found, []);
});

test('gets list changes of a modern server without a call in flight for them', async () => {
  const { command, args } = everythingProgram({ era: 'modern' });
  await gateway.register('t', { id: 'a', command, args }, WAIT);
  const changed = firstValueFrom(gateway.on('tools.changed'));
  await gateway.call('t', 'test_trigger_tool_change');
  assert.is((await changed).instanceId, 'a');
  assert.is(gateway.stats().activeConnections, 0);
});

test.run();

function raise(value: unknown): never {
  throw value;
}
