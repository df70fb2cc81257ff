// Which conversation a call without a session takes, what is heard of it there, and what becomes of it when that ends.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { NO_SUBSCRIBER } from '../../../src/actors/stateless/stateless-upstream.ts';
import { queueFull } from '../../../src/domain/error-catalogue.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { META } from '../../../src/domain/mcp.ts';
import type { BalancerPolicy } from '../../../src/domain/policy.ts';
import { answers, fails, silent, told } from '../../helpers/failing-backend.ts';
import type { ScriptedExchange } from '../../helpers/scripted-transport.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  LOGGING,
  MODERN,
  modernCall,
  profile,
  StatelessHarness,
  settled,
} from './stateless-harness.ts';

const test = suite('guests');
const LEVEL = (level: string) => modernCall({ [META.logLevel]: level });

const TOO_LATE = { code: 'BACKEND_TIMEOUT', delivered: 'no', retryAfterSeconds: 1 };

let harness = new StatelessHarness();

simulateTime(test, () => {
  harness = new StatelessHarness();
});
test.after.each(async () => {
  const closed = harness.close();
  await settled();
  mock.timers.tick(1);
  await closed;
});

const LIST = { method: 'tools/list', params: {} };
const LISTING = { capabilities: { tools: {} } };

/** A program that lists so many tools in its shared process, and so many in each other one, where it asks before it does. */
function lists(shared: number, own: number) {
  return (exchange: ScriptedExchange): void => {
    const isOwn = harness.upstreams('a').some(({ exchanges }) => exchanges.includes(exchange));
    if (isOwn) exchange.ask('roots/list');
    const tools = Array.from({ length: isOwn ? own : shared }, (_, n) => ({ name: `tool ${n}` }));
    exchange.result(exchange.request.method === 'tools/list' ? { tools } : {});
  };
}

async function listed(capabilities: JsonObject = {}, owner = 'ann'): Promise<unknown> {
  const listing = harness.call(LIST, { profile: profile(capabilities), owner });
  await listing.end;
  const [answer] = listing.answers;
  assert.is(listing.answers.length, 1, 'it is asked nothing');
  return answer?.event.kind === 'result' ? Object(answer.event.result.value).tools.length : answer;
}

test('lists the tools of a program that it offers to a client with these capabilities', async () => {
  await harness.add('a', 'stdio', lists(13, 17), LISTING);
  await settled();
  const asking = { elicitation: {}, roots: {} };
  assert.equal([await listed(), await listed(asking), await listed(asking, 'bob')], [13, 17, 17]);
  const [own] = harness.upstreams('a');
  assert.equal(own?.exchanges[0]?.replies, [NO_SUBSCRIBER]);
  assert.equal([harness.upstreams('a').length, harness.backend('a').profiles[0]?.capabilities], [2, asking]);
});

test('lists in the shared process once it is known that capabilities make no difference', async () => {
  await harness.add('a', 'stdio', lists(13, 13), LISTING);
  await settled();
  const asking = { elicitation: {} };
  assert.equal([await listed(asking), await listed(asking, 'bob')], [13, 13]);
  assert.is(harness.upstreams('a').length, 1);
  assert.equal([await listed({ sampling: {} }), harness.upstreams('a').length], [13, 2]);
});

test('lists in the shared process where there is no room for another one', async () => {
  await harness.add('a', 'stdio', lists(13, 17), LISTING);
  harness.backend('a').openUpstream = () => Promise.reject(queueFull('t'));
  assert.is(await listed({ elicitation: {} }), 13);
});

test('keeps tasks in dedicated conversations, or refuses them', async () => {
  await harness.add('a', 'stdio', answers());
  const task = { method: 'tasks/list', params: {} };
  await harness.call(task).end;
  assert.equal(
    [harness.backend('a').asked.includes('tasks/list'), harness.upstreams('a').length],
    [false, 1],
  );
  await harness.close();
  harness = new StatelessHarness({ session: 'shared' });
  await harness.add('a', 'stdio', answers());
  const refused = harness.call(task);
  assert.is(await refused.end, 'a');
  const [answer] = refused.answers;
  assert.equal(answer?.event.kind === 'error' && answer.event.error.code, -32601);
  assert.equal(
    [harness.backend('a').asked.includes('tasks/list'), harness.upstreams('a').length],
    [false, 0],
  );
});

test('does not reuse a program that may still ask about a cancelled call', async () => {
  await harness.add('a', 'stdio', silent);
  const first = harness.call(modernCall(), { profile: ASKABLE });
  await settled();
  first.subscription.unsubscribe();
  harness.call(modernCall(), { profile: ASKABLE });
  await settled();
  assert.equal(harness.calls('a'), [0, 1, 1]);
  assert.equal([harness.upstreams('a')[0]?.isClosed, harness.pool.size], [true, 1]);
});

test('chooses and counts in one block where a conversation is at hand', async () => {
  await restage({ strategy: 'least_connections' });
  for (const id of ['a', 'b', 'c', 'd']) {
    await harness.add(id, 'http', silent);
    harness.call(modernCall(), { instanceId: id });
  }
  await settled();
  for (let n = 0; n < 396; n += 1) harness.call(modernCall());
  const found = harness.inner.fleet.refs('t').map(({ inFlight }) => inFlight);
  assert.equal(found, [100, 100, 100, 100]);
});

for (const [transport, peer] of [
  ['http', {}],
  ['stdio', {}],
  ['http', MODERN],
] as const) {
  test(`goes on at the ${peer.era ?? 'legacy'} instance over ${transport} that is named while it is drained`, async () => {
    await harness.add('a', transport, answers(), peer);
    harness.inner.ref('a').drain();
    assert.is(await harness.call(modernCall(), { instanceId: 'a' }).end, 'a');
    assert.equal(told(await harness.call(modernCall()).end), {
      code: 'NO_HEALTHY_INSTANCE',
      delivered: 'no',
      retryAfterSeconds: 2,
    });
  });
}

test('tries another instance when no conversation can be opened, or the call did not arrive', async () => {
  await harness.add('a', 'http', answers());
  await harness.add('b', 'http', fails('no'));
  await harness.add('c', 'http', answers());
  harness.backend('a').thrownByOpenUpstream = new Error('no conversation');
  for (let n = 0; n < 3; n += 1) assert.is(await harness.call(modernCall()).end, 'c');
  assert.ok(harness.inner.told('exchange.retried').length > 0);
});

test('reopens, once, a conversation that had ended unnoticed', async () => {
  let isLost = false;
  await harness.add('a', 'http', (exchange) => (isLost ? fails('no')(exchange) : answers()(exchange)));
  await harness.call(modernCall()).end;
  isLost = true;
  assert.equal(told(await harness.call(modernCall()).end), {
    code: 'BACKEND_UNAVAILABLE',
    delivered: 'no',
    retryAfterSeconds: 1,
  });
  assert.equal(harness.calls('a'), [0, 2, 1]);
});

test('leaves no process of its own behind when its instance goes, whatever becomes of the shared one', async () => {
  await harness.add('a', 'stdio', silent);
  harness.backend('a').upstreamsAreIndependent = true;
  const call = harness.call(modernCall(), { profile: ASKABLE });
  await settled();
  const [own] = harness.upstreams('a');
  harness.backend('a').lose();
  await settled();
  const removed = harness.inner.fleet.remove('t', 'a', 0);
  await settled();
  mock.timers.tick(1);
  await removed;
  assert.equal(told(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.equal([own?.isClosed, harness.pool.size], [true, 0]);
});

test('sets the level of log lines before the first call that wants them, and when one wants more', async () => {
  await harness.add('a', 'stdio', answers(), LOGGING);
  await harness.call(LEVEL('warning')).end;
  await harness.call(LEVEL('error')).end;
  await harness.call(LEVEL('debug')).end;
  await harness.call(LEVEL('debug')).end;
  assert.equal(heard(0), [
    'logging/setLevel warning',
    'tools/call',
    'tools/call',
    'logging/setLevel debug',
    'tools/call',
    'tools/call',
  ]);
});

test('delivers the log messages that a client opted in to, and no others', async () => {
  await harness.add('a', 'http', silent, LOGGING);
  const [deaf, picky] = [harness.call(modernCall()), harness.call(LEVEL('error'))];
  await settled();
  for (const exchange of harness.upstreams('a')[0]?.open ?? []) {
    exchange.notify('notifications/message', { level: 'info' });
    exchange.notify('notifications/message', { level: 'error' });
    exchange.notify('notifications/progress', {});
    exchange.result();
  }
  assert.equal([await deaf.end, await picky.end], ['a', 'a']);
  assert.equal([deaf.answers.length, picky.answers.length], [2, 3]);
});

test('ends a conversation after a minute without use', async () => {
  await harness.add('a', 'http', answers());
  await harness.call(modernCall()).end;
  mock.timers.tick(LIMITS.statelessIdleMs - 1);
  await harness.call(modernCall()).end;
  mock.timers.tick(LIMITS.statelessIdleMs - 1);
  assert.is(harness.pool.size, 1);
  mock.timers.tick(1);
  await settled();
  assert.equal([harness.pool.size, harness.upstreams('a').map(({ closings }) => closings)], [0, [1]]);
});

test('leaves half of its time to another instance over the network, where there is one', async () => {
  await restage({ callTimeoutMs: 4_000 });
  for (const id of ['a', 'b']) await harness.add(id, 'http', answers());
  const thaw = harness.freeze('a');
  const calls = [harness.call(modernCall()), harness.call(modernCall())];
  await settled();
  mock.timers.tick(2_000);
  assert.equal(await Promise.all(calls.map(({ end }) => end)), ['b', 'b']);
  thaw();
  await settled();
  assert.equal(
    [harness.calls('a'), harness.calls('b')],
    [
      [0, 0],
      [0, 2],
    ],
  );
  for (const id of ['a', 'b']) harness.freeze(id);
  const late = harness.call(modernCall(), { owner: 'bob' });
  for (const waitMs of [2_000, 1_999]) {
    mock.timers.tick(waitMs);
    await settled();
  }
  assert.is(late.subscription.closed, false);
  mock.timers.tick(1);
  assert.equal(told(await late.end), TOO_LATE);
});

test('sends what may be repeated to a second instance, too, when the first is silent and a conversation is at hand', async () => {
  await restage({ callTimeoutMs: 6_000 });
  await harness.add('a', 'http', silent);
  await harness.add('b', 'http', answers());
  const list = () => harness.call({ method: 'resources/list' });
  await harness.call(modernCall(), { instanceId: 'b' }).end;
  const first = list();
  await settled();
  mock.timers.tick(2_000);
  assert.is(await first.end, 'b');
  assert.is(harness.upstreams('a')[0]?.last.isCancelled, true);
  await harness.pool.endOf('ann');
  const second = [list(), list()];
  await settled();
  mock.timers.tick(2_000);
  await settled();
  mock.timers.tick(2_000);
  assert.equal(await Promise.all(second.map(({ end }) => end)), ['b', 'b'], 'it was opened meanwhile');
  mock.timers.tick(2 * LIMITS.statelessIdleMs);
  await settled();
  assert.is(harness.pool.size, 0);
});

test('waits for a program, or the instance that is named, all of its time', async () => {
  await restage({ callTimeoutMs: 4_000 });
  for (const id of ['a', 'b']) await harness.add(id, 'stdio', answers());
  for (const id of ['a', 'b']) harness.freeze(id);
  await harness.add('c', 'http', answers());
  harness.freeze('c');
  const calls = [
    harness.call(modernCall(), { profile: ASKABLE, instanceId: 'c' }),
    harness.call(modernCall(), { profile: ASKABLE, instanceId: 'a' }),
  ];
  mock.timers.tick(3_999);
  await settled();
  const found = calls.map(({ subscription }) => subscription.closed);
  assert.equal(found, [false, false]);
  mock.timers.tick(1);
  for (const { end } of calls) assert.equal(told(await end), TOO_LATE);
});

test.run();

async function restage(policy: Partial<BalancerPolicy>): Promise<void> {
  await harness.close();
  harness = new StatelessHarness(policy);
}

function heard(index: number): string[] {
  return (harness.upstreams('a')[index]?.exchanges ?? []).map(({ request: { method, params } }) =>
    method === 'logging/setLevel' ? `${method} ${params?.level}` : method,
  );
}
