// Calls over several instances: failover, the last event of a call, calls of a tool that not every instance has, and calls that
// are cancelled. What else may happen to calls is in call-stress.spec.ts.

import { mock } from 'node:test';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { CallEvents } from '../../../src/actors/calls/call-events.ts';
import { MAX_QUEUED_PER_INSTANCE } from '../../../src/actors/instances/call-counter.ts';
import type { ToolTrust } from '../../../src/actors/instances/tool-trust.ts';
import { toolOf } from '../../../src/domain/calls/exchange.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import type { Tool } from '../../../src/domain/mcp/mcp.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import {
  answers,
  ask,
  errorView,
  fails,
  Harness,
  type Script,
  silent,
} from '../../helpers/backends/harness.ts';
import { toolCall, WRITE } from '../../helpers/backends/profiles.ts';
import type { ScriptedExchange } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('call');
let harness = new Harness();

test.after.each(() => harness.close());
simulateTime(test, () => {
  harness = new Harness();
});

test('is retried max_retries times at most', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const id of ids) await harness.add(id, id < 'e' ? fails('no') : answers());
  await harness.call('write').end;
  const found = ids.map((id) => harness.asked(id));
  assert.equal(found, [1, 1, 1, 1, 0, 0]);
  assert.is(harness.eventsOf('call.retried').length, 3);
});

test('is not repeated once it was delivered', async () => {
  await harness.add('a', fails('yes'));
  await harness.add('b', answers());
  assert.equal(errorView(await harness.call('read').end), { code: 'BACKEND_UNAVAILABLE', delivered: 'yes' });
  assert.is(harness.asked('b'), 0);
});

for (const [what, delivered, repeats] of [
  ['without the retry budget when it was not delivered', 'no', 30],
  ['within the retry budget when it may have been delivered', 'unknown', 16],
] as const) {
  test(`is repeated ${what}`, async () => {
    for (const id of ['a', 'b']) await harness.add(id, fails(delivered));
    for (let call = 0; call < 30; call += 1) await harness.call('read').end;
    assert.is(harness.eventsOf('call.retried').length, repeats);
  });
}

test('emits one final event, which is the end of an attempt if one is under way', async () => {
  await harness.add('a');
  const ref = harness.ref('a');
  const end = { waitMs: 0, durationMs: 3, error: undefined };
  const types = (report: (events: CallEvents) => void) => {
    const emitted: unknown[] = [];
    const emit = (event: GatewayEvent) =>
      emitted.push([event.type, 'outcome' in event ? event.outcome : undefined]);
    report(new CallEvents(emit, systemClock.wall, 't', 7, { method: 'ping' }));
    return emitted;
  };
  assert.equal(
    types((events) => {
      const first = events.sent();
      const second = events.sent();
      events.refused('QUEUE_FULL', 1);
      events.finished(ref, second, { ...end, outcome: 'result' }, true);
      events.finished(ref, first, { ...end, outcome: 'failed' }, true);
      events.cancelled(1);
    }),
    [
      ['call.finished', 'result'],
      ['attempt.finished', 'failed'],
    ],
  );
  assert.equal(
    types((events) => {
      events.refused('QUEUE_FULL', 1);
      events.cancelled(1);
    }),
    [['call.finished', 'refused']],
  );
});

test('its end is its last event, also when every attempt fails at once', async () => {
  for (const id of ['a', 'b', 'c']) await harness.add(id, fails('no'));
  await harness.call('write').end;
  await settled();
  const ends = harness.events.filter(({ type }) => /^(attempt|call)\.finished$/.test(type));
  assert.equal(
    ends.map(({ type, ...end }) => [type, 'attempt' in end && end.attempt]),
    [
      ['attempt.finished', 1],
      ['attempt.finished', 2],
      ['call.finished', 3],
    ],
  );
});

const NEW = { name: 'new' };
const NOT_FOUND = { code: 'TOOL_NOT_FOUND', delivered: 'no' };

test('looks up an unknown tool at most once a second, however many callers ask for it', async () => {
  await harness.add('a', answers());
  mock.timers.tick(1_000);
  const calls = Array.from({ length: 50 }, () => harness.call('new'));
  for (const { end } of calls) assert.equal(errorView(await end), NOT_FOUND);
  for (let time = 0; time < 50; time += 1) await harness.call('new').end;
  assert.is(lists('a'), 2);
  mock.timers.tick(1_000);
  await harness.call('new').end;
  assert.is(lists('a'), 3);
});

test('fails with TOOL_NOT_FOUND when the look-up takes too long', async () => {
  await harness.add('a', answers());
  mock.timers.tick(1_000);
  listsSlowly('a');
  const call = harness.call('new');
  mock.timers.tick(5_000);
  assert.equal(errorView(await call.end), NOT_FOUND);
  mock.timers.tick(30_000);
  const asked = harness.backend('a').exchanges.filter(({ request }) => request.method === 'tools/list');
  assert.is(asked.at(-1)?.isCancelled, true, 'the list itself ends later');
});

test('fails with TOOL_NOT_FOUND also in a session when the look-up takes too long', async () => {
  const trust: ToolTrust = {
    isRequiredFor: () => true,
    isApproved: () => false,
    digestsOf: async (tools) => new Map(tools.map((tool) => [tool, { own: tool.name, shown: tool.name }])),
    areUsedEverywhere: async () => false,
    listed: async () => {},
  };
  harness = new Harness({ trustOf: () => trust });
  await harness.add('a', answers());
  const session = await harness.openSession();
  mock.timers.tick(1_000);
  listsSlowly('a');
  const call = ask(session, 'read');
  await pass(5_000);
  assert.equal(errorView(await call.end), NOT_FOUND);
});

test('fails with QUEUE_FULL at once when too many calls wait for one tool look-up', async () => {
  await harness.add('a', answers());
  mock.timers.tick(1_000);
  const slow = listsSlowly('a');
  const calls = Array.from({ length: MAX_QUEUED_PER_INSTANCE + 2 }, () => harness.call('new'));
  for (const late of calls.splice(-2)) {
    assert.equal(errorView(await late.end), { code: 'QUEUE_FULL', delivered: 'no', retryAfterSeconds: 1 });
  }
  assert.equal([lists('a'), harness.asked('a')], [2, 0]);
  slow.finish();
  for (const { end } of calls) assert.equal(errorView(await end), NOT_FOUND);
});

test('does not fail with TOOL_NOT_FOUND while an unavailable instance may have the tool', async () => {
  await harness.add('a', answers());
  await harness.add('b', { tools: [NEW] });
  harness.backend('b').disconnect();
  await settled();
  const end = await harness.call('new').end;
  assert.equal(errorView(end), { code: 'NO_HEALTHY_INSTANCE', delivered: 'no', retryAfterSeconds: 2 });
  assert.match(end instanceof Error ? end.message : end, 'b: exited with code 7');
  assert.equal(errorView(await harness.call('new', { instanceId: 'a' }).end), NOT_FOUND);
  harness.ref('b').drain();
  assert.equal(errorView(await harness.call('new').end), NOT_FOUND, 'a draining instance is not waited for');
});

test('a misspelt tool is not found, with the nearest name, although an instance is down', async () => {
  const end = async (tool: string) => harness.call(tool).end;
  await harness.add('a', { tools: [{ name: 'forecast' }] });
  await harness.add('b', { tools: [{ name: 'forecast' }, { name: 'forecasts' }] });
  harness.backend('b').disconnect();
  await settled();
  const error = await end('forcast');
  assert.equal(errorView(error), NOT_FOUND);
  assert.match(
    error instanceof Error ? error.message : '',
    /has no tool named "forcast"; did you mean "forecast"\?$/,
  );
  assert.equal(errorView(await end('other')), NOT_FOUND);
  assert.equal(errorView(await end('forecasts')), {
    ...{ code: 'NO_HEALTHY_INSTANCE', delivered: 'no', retryAfterSeconds: 2 },
  });
});

test('reports the failure of one instance rather than the missing tool of the others', async () => {
  const fails: Script = (exchange) => exchange.fail(new Error('a fault of ours'));
  await harness.add('a', { script: fails, tools: [NEW] });
  await harness.add('b', answers());
  assert.equal(errorView(await harness.call('new').end), { code: 'INTERNAL_ERROR', delivered: 'unknown' });
});

test('the next queued call is sent when the first one has to look up its tool', async () => {
  await harness.add('a', silent);
  harness.fill('a');
  mock.timers.tick(1_000);
  const slow = listsSlowly('a');
  const lookingUp = harness.call('new');
  const next = harness.call('write');
  harness.backend('a').open[0]?.result();
  assert.equal([harness.fleet.templates.group('t').queue.length, harness.ref('a').activeCalls], [1, 256]);
  slow.finish();
  assert.equal(errorView(await lookingUp.end), NOT_FOUND);
  next.subscription.unsubscribe();
});

test('a call that looks up its tool keeps its place before later calls', async () => {
  await harness.add('a', silent);
  mock.timers.tick(1_000);
  const slow = listsSlowly('a');
  const calls = [harness.call('new')]; // looks up its tool before it is in the queue
  harness.fill('a');
  calls.push(harness.call('write'));
  slow.finish([NEW, WRITE]);
  await settled();
  calls.push(harness.call('write'));
  assert.is(harness.fleet.templates.group('t').queue.length, 3);
  const served: unknown[] = [];
  harness.rewrite('a', ({ request }) => served.push(toolOf(request)));
  for (const open of harness.backend('a').open.splice(0, 2)) open.result();
  assert.equal(served, ['new', 'write']);
  for (const { subscription } of calls) subscription.unsubscribe();
});

test('makes no second attempt when the caller disconnects while the retry is reported', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  const call = harness.call('write');
  harness.onEvent = ({ type }) => type === 'call.retried' && call.subscription.unsubscribe();
  harness.backend('a').last.fail(backendUnavailable('it broke', { delivered: 'no' }));
  assert.equal([harness.asked('b'), harness.ref('a').activeCalls, harness.ref('b').activeCalls], [0, 0, 0]);
  await nothingIsLeft();
});

test('is cancelled at the backend when the caller leaves at a message that came at once', async () => {
  await harness.add('a', (exchange) => exchange.notify('notifications/progress'));
  await firstValueFrom(harness.dispatcher.exchange('t', toolCall('write')));
  assert.equal([harness.backend('a').last.isCancelled, harness.ref('a').activeCalls], [true, 0]);
});

test.run();

function lists(id: string): number {
  return harness.asked(id, 'tools/list');
}

/** From now on the backend lists its tools only after `finish`. */
function listsSlowly(id: string): { readonly finish: (tools?: readonly Tool[]) => void } {
  const held: ScriptedExchange[] = [];
  const backend = harness.backend(id);
  const before = backend.onExchange;
  backend.onExchange = (exchange) => {
    if (exchange.request.method === 'tools/list') held.push(exchange);
    else before?.(exchange);
  };
  return {
    finish: (tools) => {
      for (const exchange of held.splice(0)) {
        if (tools === undefined) before?.(exchange);
        else exchange.result({ tools });
      }
    },
  };
}

/** Eleven minutes later: no deadline has fired, no instance was asked, nothing is in flight. */
async function nothingIsLeft(): Promise<void> {
  const before = harness.events.length;
  const asked = harness.fleet.templates.group('t').refs.map(({ id }) => harness.asked(id));
  for (let minute = 0; minute < 11; minute += 1) {
    mock.timers.tick(60_000);
    await settled();
  }
  const after = harness.events.slice(before).filter(({ type }) => type.startsWith('exchange.'));
  assert.equal(after, []);
  assert.equal(
    harness.fleet.templates.group('t').refs.map(({ id, activeCalls }) => [harness.asked(id), activeCalls]),
    asked.map((count) => [count, 0]),
  );
}
