// The channel: which exchange gets which message.

import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../src/domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../src/domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../src/domain/errors/backend-errors.ts';
import type { GatewayError } from '../../src/domain/errors/errors.ts';
import { type JsonObject, JsonText, type JsonValue } from '../../src/domain/json/json.ts';
import type { BackendMessage } from '../../src/domain/mcp/jsonrpc.ts';
import { META } from '../../src/domain/mcp/mcp.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { EDGE_BYTES } from '../../src/programs/line-decoder.ts';
import { Channel, type ExchangeObserver, type PendingExchange } from '../../src/transports/channel.ts';
import { idsAtEdges } from '../../src/transports/stdio/message-edges.ts';
import { collectGarbage } from '../helpers/garbage.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('channel');

test('gives an error without an id to the exchange under way if there is only one', () => {
  const channel = make();
  const [one, two] = [caller(), caller()];
  const unreadable = { kind: 'error', id: null, error: { code: -32700, message: 'Parse error' } } as const;
  const first = channel.call({ method: 'a' }, one);
  channel.call({ method: 'b' }, two);
  channel.receive(unreadable);
  assert.equal([one.seen, two.seen], [[], []]);
  channel.forget(first);
  channel.receive(unreadable);
  assert.equal(two.seen, ['error -32700', 'completed']);
});

test('fails a list whose page has too many values, and passes other results', () => {
  const result = JsonText.ofText(`{"tools":[${Array(1_000_000).fill(0)}]}`);
  const seenOf = (method: string) => {
    const channel = make();
    const one = caller();
    const { id } = channel.call({ method }, one);
    channel.receive({ kind: 'result', id, result });
    return one.seen[0]?.slice(0, 20);
  };
  assert.is(seenOf('tools/list'), 'BACKEND_UNAVAILABLE ');
  assert.match(seenOf('tools/call') ?? '', /^result/);
});

test('ignores progress that belongs to no exchange', () => {
  const channel = make();
  const one = caller();
  const call = channel.call({ method: 'tools/call', wantsProgress: true }, one);
  const ping = channel.call({ method: 'ping' }, one);
  channel.forget(call);
  for (const token of [call.id, ping.id, String(call.id), 77]) {
    assert.ok(channel.takes(progress(token)));
  }
  assert.ok(channel.takes(notification('notifications/progress', {})));
  assert.equal(one.seen, []);
});

test('takes the decimal text of a number for the number, and no other text', () => {
  const channel = make();
  const one = caller();
  const call = channel.call({ method: 'tools/call', wantsProgress: true }, one);
  const result = JsonText.ofText('{}');
  for (const id of [`0${call.id}`, `${call.id}.0`, `+${call.id}`, ` ${call.id}`, '', '9'.repeat(20)]) {
    channel.receive({ kind: 'result', id, result });
    channel.takes(progress(id));
  }
  assert.equal(one.seen, []);
  channel.takes(progress(String(call.id)));
  channel.receive({ kind: 'result', id: String(call.id), result });
  assert.equal(one.seen.length, 3);
});

test('gives a custom notification to an exchange only when it is the only one under way', () => {
  const channel = make();
  const [one, two] = [caller(), caller()];
  const custom = notification('notifications/vendor', { n: 1 });
  assert.not(channel.takes(custom));
  channel.call({ method: 'tools/call' }, one);
  assert.ok(channel.takes(custom));
  for (const known of ['tools/list_changed', 'resources/updated', 'elicitation/complete', 'tasks/status'])
    assert.not(channel.takes(notification(`notifications/${known}`, {})));
  channel.call({ method: 'tools/call' }, two);
  assert.not(channel.takes(custom));
  assert.equal([one.seen, two.seen], [['notifications/vendor {"n":1}'], []]);
});

test('gives notifications of a subscription, and its end, to the exchange that opened it', () => {
  const channel = make();
  const [one, two, about] = [caller(), caller(), caller()];
  const first = channel.call({ method: 'subscriptions/listen' }, one);
  channel.call({ method: 'subscriptions/listen' }, two);
  const call = channel.call({ method: 'tools/call' }, about);
  const changed = (id: JsonValue) =>
    notification('notifications/tools/list_changed', { _meta: { [META.subscriptionId]: id } });
  for (const id of [first.id, String(first.id)]) assert.ok(channel.takes(changed(id)));
  for (const id of [77, `0${first.id}`, call.id]) assert.not(channel.takes(changed(id)));
  const asked = { kind: 'request', id: 1, method: 'roots/list', params: {} } as const;
  assert.ok(channel.takes(asked), 'a subscription causes no question: it is about the call');
  assert.equal([one.seen.length, two.seen], [2, []]);
  for (const requestId of [String(first.id), call.id])
    assert.ok(channel.takes(notification('notifications/cancelled', { requestId })));
  assert.equal([one.seen[2], about.seen.length], ['BACKEND_UNAVAILABLE unknown suspicious', 1]);
});

test('keeps nothing of a question besides its id until it is answered', () => {
  const channel = make();
  const answers: unknown[] = [];
  const next = (event: ExchangeEvent) => event.kind === 'request' && answers.push(event.answer);
  channel.call({ method: 'tools/call' }, { ...caller(), next });
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < 32; at += 1) {
    const params = { text: Buffer.alloc(1_000_000, 'x').toString('latin1') };
    channel.receive({ kind: 'request', id: `question ${at}`, method: 'roots/list', params });
  }
  collectGarbage();
  const kept = process.memoryUsage().heapUsed - before;
  assert.is(answers.length, 32);
  assert.ok(kept < 8_000_000, `${kept} bytes`);
});

test('failAll fails pending exchanges, except those without an error and those that start meanwhile', () => {
  const channel = make();
  const [sent, waiting, started] = [caller(), caller(), caller()];
  const retrying = { ...sent, error: () => void channel.call({ method: 'again' }, started) };
  channel.call({ method: 'a' }, retrying).delivered = 'unknown';
  channel.call({ method: 'b' }, waiting);
  channel.failAll(({ delivered }) =>
    delivered === 'no' ? undefined : backendUnavailable('gone', { delivered }),
  );
  assert.equal([waiting.seen, started.seen], [[], []]);
  channel.failAll(({ delivered }) => backendUnavailable('gone', { delivered }));
  assert.equal(waiting.seen, ['BACKEND_UNAVAILABLE no']);
  assert.equal(started.seen, ['BACKEND_UNAVAILABLE no']);
});

class Fake extends Channel {
  send(): undefined {}
  notify(): void {}
  protected reply(): void {}

  call(request: ExchangeRequest, observer: ExchangeObserver): PendingExchange {
    const pending = this.begin(request, observer);
    if (pending === undefined) throw new Error('it was not begun');
    return pending;
  }

  /** False for a message that was passed on to the client in general. */
  takes(message: BackendMessage): boolean {
    let isTaken = true;
    const subscription = this.messages$.subscribe(() => {
      isTaken = false;
    });
    this.receive(message);
    subscription.unsubscribe();
    return isTaken;
  }
}

/** A channel whose client may be asked. */
function make(now = systemClock.now): Fake {
  return new Fake({ capabilities: { roots: {} } }, now);
}

/** An observer that records its events. */
function caller() {
  const seen: string[] = [];
  return {
    seen,
    next: (event: ExchangeEvent) => void seen.push(describe(event)),
    error: ({ code, delivered, facts }: GatewayError) =>
      void seen.push(`${code} ${delivered}${facts.health === undefined ? '' : ` ${facts.health}`}`),
    complete: () => void seen.push('completed'),
  };
}

function describe(event: ExchangeEvent): string {
  if (event.kind === 'result') return `result ${event.result.value}`;
  if (event.kind === 'error') return `error ${event.error.code}`;
  if (event.kind === 'interrupted') return event.kind;
  return `${event.method} ${JSON.stringify(event.params)}`;
}

function notification(method: string, params: JsonObject) {
  return { kind: 'notification', method, params } as const;
}

function progress(progressToken: string | number) {
  return notification('notifications/progress', { progressToken, progress: 1 });
}

test('withholds log lines from a caller until a minute after the call of another caller', () => {
  const clock = { nowMs: 0 };
  const channel = make(() => clock.nowMs);
  const log = notification('notifications/message', { data: 'x' });
  const [ada, bo] = [caller(), caller()];
  const first = channel.call({ method: 'a', callerId: 'ada' }, ada);
  assert.is(channel.takes(log), true);
  channel.receive({ kind: 'result', id: first.id, result: JsonText.ofValue(1) });
  channel.call({ method: 'b', callerId: 'bo' }, bo);
  assert.is(channel.takes(log), false);
  clock.nowMs = 59_999;
  assert.is(channel.takes(log), false);
  clock.nowMs = 60_000;
  assert.is(channel.takes(log), true);
  assert.equal(bo.seen, ['notifications/message {"data":"x"}']);
});

test('finds the ids of a message that cannot be read at its head and its tail', () => {
  const filler = `{"text":"${'x'.repeat(2 * EDGE_BYTES)}","id":9}`;
  const lines: readonly (readonly [string, readonly number[] | undefined])[] = [
    ['{"jsonrpc":"2.0","id":5}', [5]],
    ['{"result":{},"jsonrpc":"1.0","id":5}', [5]],
    ['{"jsonrpc":"2.0","id":5,"result":{"cut of', [5]],
    ['{"jsonrpc":"2.0","id":1,"result":{"content":["half{"result":{},"jsonrpc":"2.0","id":2}', [1, 2]],
    ['{"jsonrpc":"2.0","id":"5"}', [5]],
    ['{"jsonrpc":"2.0","id":"5","result":{"cut of', [5]],
    [`{"result":${filler},"jsonrpc":"2.0","id":"5"}`, [5]],
    ['{"jsonrpc":"2.0","id":"a5"}', []],
    ['{"result":{"id":5,"cut of', []],
    [`{"result":${filler}, "id": 5, "jsonrpc": "2.0" }\r`, [5]],
    [`{"id":5,"jsonrpc":"2.0","result":${filler}}`, [5]],
    [`{"result":${filler},"id":5}`, []],
    [filler, []],
    [`{"method":"notifications/message","params":${filler},"jsonrpc":"2.0"}`, undefined],
    [`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":${filler}}`, undefined],
    [`{"method":"x","params":${filler},"jsonrpc":"2.0","id":5}`, undefined],
  ];
  for (const [line, ids] of lines) {
    const bytes = Buffer.from(line);
    const found = idsAtEdges(bytes.subarray(0, EDGE_BYTES), bytes.subarray(-EDGE_BYTES));
    assert.equal(found, ids, line.slice(0, 60));
  }
});

test.run();
