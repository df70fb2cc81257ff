// The correlator: who gets which message of a shared channel.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import type { GatewayError } from '../../../src/domain/errors.ts';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import { type JsonObject, JsonText, type JsonValue } from '../../../src/domain/json.ts';
import type { JsonRpcId } from '../../../src/domain/jsonrpc.ts';
import { META } from '../../../src/domain/mcp.ts';
import { Correlator } from '../../../src/transports/stdio/correlator.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('correlator');

test('fails an exchange whose own request comes back', () => {
  const correlator = new Correlator();
  const [one, other] = [caller(), caller()];
  const { id } = correlator.open({ method: 'initialize' }, one);
  correlator.open({ method: 'ping' }, other);
  const request = (method: string, number: number | string = id) =>
    ({ kind: 'request', id: number, method, params: {} }) as const;
  assert.not(correlator.takeEcho(request('ping', id + 1)));
  assert.not(correlator.takeEcho(request('roots/list')));
  assert.not(correlator.takeEcho(request('initialize', 77)));
  assert.ok(correlator.takeEcho(request('initialize')));
  assert.equal(one.seen, ['BACKEND_UNAVAILABLE unknown suspicious']);
  assert.equal(other.seen, []);
});

test('takes an error without an id for the only exchange there is', () => {
  const correlator = new Correlator();
  const [one, two] = [caller(), caller()];
  const unreadable = { kind: 'error', id: null, error: { code: -32700, message: 'Parse error' } } as const;
  const first = correlator.open({ method: 'a' }, one);
  correlator.open({ method: 'b' }, two);
  correlator.takeAnswer(unreadable);
  assert.equal([one.seen, two.seen, correlator.unmatchedMessages], [[], [], 1]);
  correlator.forget(first);
  correlator.takeAnswer(unreadable);
  assert.equal(two.seen, ['error -32700', 'completed']);
});

test('puts its own progress token into calls, and leaves the rest of params alone', () => {
  const correlator = new Correlator();
  const params = { name: 'x', _meta: { progressToken: 'mine', traceparent: 't' } };
  const call = correlator.open({ method: 'tools/call', params }, caller());
  assert.equal(call.params, { name: 'x', _meta: { progressToken: call.id, traceparent: 't' } });
  assert.is(params._meta.progressToken, 'mine');
});

test('puts a token into other requests only when the caller did', () => {
  const correlator = new Correlator();
  for (const method of ['ping', 'resources/read', 'prompts/get'])
    assert.is(correlator.open({ method }, caller()).params, undefined);
  const params = { _meta: { progressToken: 0 } };
  const { id, params: sent } = correlator.open({ method: 'tools/list', params }, caller());
  assert.equal(sent, { _meta: { progressToken: id } });
});

test('ignores and counts progress that nobody asked for', () => {
  const correlator = new Correlator();
  const one = caller();
  const call = correlator.open({ method: 'tools/call' }, one);
  const ping = correlator.open({ method: 'ping' }, one);
  correlator.forget(call);
  for (const token of [call.id, ping.id, String(call.id), 77]) {
    assert.ok(correlator.takeNotification(progress(token)));
  }
  assert.ok(correlator.takeNotification(notification('notifications/progress', {})));
  assert.equal(one.seen, []);
  assert.is(correlator.unmatchedMessages, 5);
});

test('gives what the protocol does not know to an exchange only when no other can have caused it', () => {
  const correlator = new Correlator();
  const [one, two] = [caller(), caller()];
  const custom = notification('notifications/vendor', { n: 1 });
  assert.not(correlator.takeNotification(custom));
  correlator.open({ method: 'tools/call' }, one);
  assert.ok(correlator.takeNotification(custom));
  for (const known of ['tools/list_changed', 'resources/updated', 'elicitation/complete', 'tasks/status'])
    assert.not(correlator.takeNotification(notification(`notifications/${known}`, {})));
  correlator.open({ method: 'tools/call' }, two);
  assert.not(correlator.takeNotification(custom));
  assert.equal([one.seen, two.seen], [['notifications/vendor {"n":1}'], []]);
});

test('gives what belongs to a subscription to the exchange that opened it', () => {
  const correlator = new Correlator();
  const [one, two] = [caller(), caller()];
  const first = correlator.open({ method: 'subscriptions/listen' }, one);
  correlator.open({ method: 'subscriptions/listen' }, two);
  const call = correlator.open({ method: 'tools/call' }, caller());
  const changed = (id: JsonValue) =>
    notification('notifications/tools/list_changed', { _meta: { [META.subscriptionId]: id } });
  assert.ok(correlator.takeNotification(changed(first.id)));
  for (const id of [77, String(first.id), call.id]) assert.not(correlator.takeNotification(changed(id)));
  const asked = { kind: 'request', method: 'roots/list', params: {}, answer: () => {} } as const;
  assert.ok(correlator.takeRequest(asked), 'a subscription causes no question: it is about the call');
  assert.equal([one.seen.length, two.seen], [1, []]);
});

test('fails all that is pending, but for what has no error, and not what observers start meanwhile', () => {
  const correlator = new Correlator();
  const [sent, waiting, started] = [caller(), caller(), caller()];
  const retrying = { ...sent, error: () => void correlator.open({ method: 'again' }, started) };
  correlator.open({ method: 'a' }, retrying).delivered = 'unknown';
  correlator.open({ method: 'b' }, waiting);
  correlator.failAll(({ delivered }) =>
    delivered === 'no' ? undefined : backendUnavailable('gone', { delivered }),
  );
  assert.equal([waiting.seen, started.seen], [[], []]);
  correlator.failAll(({ delivered }) => backendUnavailable('gone', { delivered }));
  assert.equal(waiting.seen, ['BACKEND_UNAVAILABLE no']);
  assert.equal(started.seen, ['BACKEND_UNAVAILABLE no']);
});

/** An observer that writes down what it was told. */
function caller() {
  const seen: string[] = [];
  return {
    seen,
    next: (event: ExchangeEvent) => void seen.push(describe(event)),
    error: ({ code, delivered, facts }: GatewayError) =>
      void seen.push(`${code} ${delivered}${facts.suspicious ? ' suspicious' : ''}`),
    complete: () => void seen.push('completed'),
  };
}

function describe(event: ExchangeEvent): string {
  if (event.kind === 'result') return `result ${event.result.value}`;
  if (event.kind === 'error') return `error ${event.error.code}`;
  if (event.kind === 'interrupted') return event.kind;
  return `${event.method} ${JSON.stringify(event.params)}`;
}

function resultFor(id: JsonRpcId, value: unknown) {
  return { kind: 'result', id, result: JsonText.ofValue(value) } as const;
}

function notification(method: string, params: JsonObject) {
  return { kind: 'notification', method, params } as const;
}

function progress(progressToken: string | number) {
  return notification('notifications/progress', { progressToken, progress: 1 });
}

test('keeps a log line from who called after somebody else, until a minute has passed', () => {
  const clock = { nowMs: 0 };
  const correlator = new Correlator(() => clock.nowMs);
  const log = notification('notifications/message', { data: 'x' });
  const [ada, bo] = [caller(), caller()];
  const first = correlator.open({ method: 'a', caller: 'ada' }, ada);
  assert.is(correlator.takeNotification(log), true);
  correlator.takeAnswer(resultFor(first.id, 1));
  correlator.open({ method: 'b', caller: 'bo' }, bo);
  assert.is(correlator.takeNotification(log), false);
  clock.nowMs = 59_999;
  assert.is(correlator.takeNotification(log), false);
  clock.nowMs = 60_000;
  assert.is(correlator.takeNotification(log), true);
  assert.equal(bo.seen, ['notifications/message {"data":"x"}']);
});

test('counts what nobody in particular asks, such as a probe, as no other caller', () => {
  const correlator = new Correlator(() => 0);
  const probe = correlator.open({ method: 'ping' }, caller());
  correlator.takeAnswer(resultFor(probe.id, 1));
  const ada = caller();
  const first = correlator.open({ method: 'a', caller: 'ada' }, ada);
  correlator.takeAnswer(resultFor(first.id, 1));
  const again = correlator.open({ method: 'ping' }, caller());
  correlator.takeAnswer(resultFor(again.id, 1));
  correlator.open({ method: 'b', caller: 'ada' }, ada);
  assert.is(correlator.takeNotification(notification('notifications/message', {})), true);
});

test.run();
