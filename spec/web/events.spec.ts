// How the console reads its event stream: whole events from any chunks; the changes of an instance by an event, without another
// request; and the sums of the last minute.

import { mock } from 'node:test';
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { Calls } from '../../web/src/calls.ts';
import { updateOf } from '../../web/src/instance-updates.ts';
import { LastMinute } from '../../web/src/minute.ts';
import { readEvents, type ServerEvent } from '../../web/src/sse.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the event stream of the console');

async function eventsOf(chunks: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of readEvents(ReadableStream.from(chunks))) events.push(event);
  return events;
}

test('yields names, ids and data of several lines, and skips comments', async () => {
  const text =
    ': keep-alive\n\nevent: instance.healthy\nid: run-7\ndata: {"a":\ndata: 1}\n\ndata: x\r\n\r\nevent: empty\n\n';
  assert.equal(await eventsOf([new TextEncoder().encode(text)]), [
    { name: 'instance.healthy', id: 'run-7', data: '{"a":\n1}' },
    { name: 'message', id: undefined, data: 'x' },
  ]);
});

test('keeps the line separators of Unicode, which end no line', async () => {
  const [event] = await eventsOf([new TextEncoder().encode('data: "a\u2028b\u2029"\n\n')]);
  assert.is(event?.data, '"a\u2028b\u2029"');
});

test('yields the same events for any chunks of bytes', async () => {
  const bytes = new TextEncoder().encode('event: a\ndata: ä€😀\r\n\r\nevent: b\nid: 2\ndata: two\n\n');
  const expected = await eventsOf([bytes]);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
      const ends = [...new Set([0, ...cuts, bytes.length])].sort((one, other) => one - other);
      const chunks = ends.slice(1).map((end, index) => bytes.slice(ends[index], end));
      assert.equal(await eventsOf(chunks), expected);
    }),
    { numRuns: 200 },
  );
});

test('cancels the stream when the loop over its events ends', async () => {
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('data: again\n\n')),
    cancel: () => {
      isCancelled = true;
    },
  });
  for await (const { data } of readEvents(endless)) {
    assert.is(data, 'again');
    break;
  }
  assert.ok(isCancelled);
});

test('keeps the calls of two nodes with the same number apart; a start ends those of its node', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const calls = new Calls();
  const call = { at: '2026-11-21T12:00:00.000Z', call: 7, template: 't', method: 'tools/call' };
  calls.add({ type: 'call.started', ...call });
  calls.add({ type: 'call.started', ...call, node: 'b' });
  calls.add({ type: 'call.started', ...call, node: 'c' });
  calls.add({ type: 'call.finished', ...call, node: 'c', outcome: 'result' });
  mock.timers.tick(1_000);
  const shown = () => calls.shown.value.map(({ node, outcome }) => [node, outcome]);
  assert.equal(shown(), [
    ['c', 'result'],
    ['b', 'running'],
    [undefined, 'running'],
  ]);
  assert.is(new Set(calls.shown.value.map(({ key }) => key)).size, 3);
  calls.forgetRunning('b');
  assert.equal(shown(), [
    ['c', 'result'],
    [undefined, 'running'],
  ]);
  calls.forgetRunning(undefined);
  assert.equal(shown(), [['c', 'result']]);
  mock.timers.reset();
});

const ONE = { requests: 1, failures: 0 };
const at = '2026-11-21T12:00:00.000Z';
const event = (type: string, fields: object = {}) => ({ type: `instance.${type}`, at, ...fields });

test('shows an instance that lost its process as unhealthy with the reason', () => {
  for (const type of ['unhealthy', 'restarting', 'crashed'])
    assert.equal(updateOf(event(type, { reason: 'exited with code 1' }), 'healthy'), {
      ...{ state: 'unhealthy', healthy: false, reason: 'exited with code 1' },
    });
});

test('keeps the reason of the last failure while an instance starts, and clears it when healthy', () => {
  assert.equal(updateOf(event('starting'), 'unhealthy'), { state: 'starting', healthy: false });
  assert.equal(updateOf(event('healthy', { era: 'modern' }), 'starting'), {
    ...{ state: 'healthy', healthy: true, reason: null },
  });
});

test('shows a drained instance as draining until it is stopped, for any event of its connection', () => {
  for (const type of ['healthy', 'unhealthy', 'starting', 'restarting'])
    assert.equal(updateOf(event(type), 'draining'), {});
  assert.equal(updateOf(event('stopped'), 'draining'), { state: 'stopped', healthy: false });
});

test('shows the ejection of an instance with its end, and clears it at the readmission', () => {
  assert.equal(updateOf(event('ejected', { reason: 'five failures', for_ms: 30_000 }), 'healthy'), {
    ejection: { reason: 'five failures', until: '2026-11-21T12:00:30.000Z' },
  });
  assert.equal(updateOf(event('readmitted'), 'healthy'), { ejection: null });
});

test('changes nothing of an instance by other events', () => {
  for (const type of ['registered', 'changed']) assert.equal(updateOf(event(type), 'healthy'), {});
});

test('sums the last minute by key, and drops older samples', () => {
  const minute = new LastMinute();
  const atMs = (second: number): number => 1e12 + second * 1_000;
  minute.add(atMs(0), [
    ['a', { requests: 5, failures: 1 }],
    ['b', { requests: 0, failures: 0 }],
  ]);
  for (let second = 1; second < 60; second += 1) minute.add(atMs(second), [['a', ONE]]);
  assert.equal(minute.of('a'), { requests: 64, failures: 1 });
  assert.equal(minute.of('b'), { requests: 0, failures: 0 });
  minute.add(atMs(60), [['a', { requests: 2, failures: 0 }]]);
  assert.equal(minute.of('a'), { requests: 61, failures: 0 });
  minute.add(atMs(100), [['a', ONE]]); // after a lost connection
  assert.equal(minute.of('a'), { requests: 22, failures: 0 });
  minute.add(atMs(-3_600), []); // the clock of the gateway was set back
  assert.equal(minute.of('a'), { requests: 0, failures: 0 });
});

test.run();
