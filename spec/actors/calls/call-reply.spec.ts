// What becomes of the answers of a call: the end that is reported, its events, and the answer as a promise.

import { NEVER, Observable, of, Subject, type Subscriber, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { CallEvents, type ReportedCall } from '../../../src/actors/calls/call-events.ts';
import { CallReply, type ExchangeEnding } from '../../../src/actors/calls/call-reply.ts';
import { finalAnswer, isUnknownMethod, resultOf } from '../../../src/actors/calls/requests.ts';
import { backendTimeout, backendUnavailable, queueFull } from '../../../src/domain/error-catalogue.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import type { Answer, ExchangeEvent, FinalAnswer, FinalEvent } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { told, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call: reply');
const notification: ExchangeEvent = { kind: 'notification', method: 'notifications/progress', params: {} };
const result: ExchangeEvent = { kind: 'result', result: JsonText.ofValue({}) };
const refusal: ExchangeEvent = { kind: 'error', error: { code: -1, message: 'no' } };
const broken = backendUnavailable('it broke', { delivered: 'unknown' });
/** One caller with a reply, on a clock the spec turns. */
function waiting() {
  const clock = { nowMs: 100 };
  const heard: string[] = [];
  const endings: ExchangeEnding[] = [];
  let signsOfLife = 0;
  let made: CallReply | undefined;
  const subscription = new Observable<ExchangeEvent>((subscriber: Subscriber<ExchangeEvent>) => {
    const reply = new CallReply(subscriber, () => clock.nowMs);
    made = reply;
    return () => endings.push(reply.end());
  }).subscribe({
    next: ({ kind }) => heard.push(kind),
    error: (error: GatewayError) => heard.push(error.code),
    complete: () => heard.push('completed'),
  });
  if (made === undefined) throw new Error('nobody subscribed');
  const reply: CallReply = made;
  const follow = (source: Observable<ExchangeEvent>): void =>
    reply.follow(source, () => {
      signsOfLife += 1;
    });
  return { reply, follow, subscription, clock, heard, endings, signsOfLife: () => signsOfLife };
}
const INSTANCE = { template: 't', id: 'a', serverId: 'a-1' };
const PING = { method: 'ping', caller: 'user:1', requestId: 'r-1' };
const AT = { template: 't', instanceId: 'a', serverId: 'a-1' };
const PINGED = { call: 7, method: 'ping', tool: undefined, principal: 'user:1', requestId: 'r-1' };
const ANSWERED = { outcome: 'result', durationMs: 3, error: undefined } as const;
const FAILED = { outcome: 'failed', durationMs: 3, error: queueFull('t') } as const;
const NOTIFICATION = answer({ kind: 'notification', method: 'notifications/progress', params: {} });
const RESULT = final({ kind: 'result', result: JsonText.ofValue({ ok: true }) });
const REQUEST = toolCall('write');

test('passes every event on inside the emission', () => {
  const source = new Subject<ExchangeEvent>();
  const { follow, heard, signsOfLife } = waiting();
  follow(source);
  source.next(notification);
  assert.equal(heard, ['notification']);
  source.next(result);
  assert.equal(heard, ['notification', 'result']);
  source.complete();
  assert.equal(heard, ['notification', 'result', 'completed']);
  assert.is(signsOfLife(), 2);
});

test('sends nothing for a caller that has left', () => {
  let subscriptions = 0;
  const source = new Observable<ExchangeEvent>(() => {
    subscriptions += 1;
  });
  const { follow, subscription } = waiting();
  subscription.unsubscribe();
  follow(source);
  assert.is(subscriptions, 0);
});

test('takes an answer that comes inside the subscription', () => {
  const { follow, heard, endings } = waiting();
  follow(of(notification, result));
  assert.equal(heard, ['notification', 'result', 'completed']);
  assert.is(endings[0]?.outcome, 'result');
});

test('lets go of a backend whose first word made the caller leave', () => {
  let isReleased = false;
  const source = new Observable<ExchangeEvent>((subscriber) => {
    subscriber.next(notification);
    return () => {
      isReleased = true;
    };
  });
  const { follow, subscription, reply } = waiting();
  reply.follow(source, () => subscription.unsubscribe());
  assert.is(isReleased, true);
  follow(NEVER);
});

test('is answered once: what comes behind the answer is not passed on', () => {
  const source = new Subject<ExchangeEvent>();
  const { follow, heard, endings } = waiting();
  follow(source);
  for (const event of [result, result, notification, refusal]) source.next(event);
  source.error(broken);
  assert.equal(heard, ['result', 'completed']);
  assert.equal(endings, [{ outcome: 'result', durationMs: 0, error: undefined }]);
});

test('turns an end without an answer into a failure', () => {
  const { follow, heard, endings } = waiting();
  follow(of(notification));
  assert.equal(heard, ['notification', 'BACKEND_UNAVAILABLE']);
  const error = endings[0]?.error;
  assert.equal([endings[0]?.outcome, error?.delivered, error?.facts.suspicious], ['failed', 'unknown', true]);
});

test('never reports an unknown error as not delivered', () => {
  const fault = new TypeError('a fault of ours');
  const { follow, endings } = waiting();
  follow(throwError(() => fault));
  const error = endings[0]?.error;
  assert.instance(error, GatewayError);
  assert.equal([error?.code, error?.delivered, error?.cause], ['INTERNAL_ERROR', 'unknown', fault]);
});

test('fails an exchange that the gateway itself gave up', () => {
  const overdue = backendTimeout(30_000);
  const { reply } = waiting();
  reply.follow(NEVER, () => undefined);
  assert.equal(reply.end(overdue), { outcome: 'failed', durationMs: 0, error: overdue });
});

test('are about a template until an instance is asked', () => {
  assert.equal(
    eventsOf((events) => {
      events.started();
      events.refused('QUEUE_FULL', 12);
    }),
    [
      { type: 'exchange.started', template: 't', ...PINGED },
      { type: 'exchange.refused', template: 't', ...PINGED, waitMs: 12, code: 'QUEUE_FULL' },
    ],
  );
  assert.equal(
    eventsOf((events) => events.cancelled(13)),
    [{ type: 'exchange.cancelled', template: 't', ...PINGED, waitMs: 13 }],
  );
});

test('name the anonymous principal where the request has no caller', () => {
  assert.equal(
    eventsOf((events) => events.started(), { method: 'ping' }),
    [{ type: 'exchange.started', template: 't', ...PINGED, principal: 'anonymous', requestId: undefined }],
  );
});

test('name the instance whose failure is retried', () => {
  assert.equal(
    eventsOf((events) => events.retried(INSTANCE, 2, 'BACKEND_TIMEOUT')),
    [{ type: 'exchange.retried', ...AT, ...PINGED, attempt: 2, code: 'BACKEND_TIMEOUT' }],
  );
});

test('show the end at an instance, with a code only when it failed', () => {
  const finished = { type: 'exchange.finished', ...AT, ...PINGED, waitMs: 2, durationMs: 3 };
  assert.equal(
    eventsOf((events) => {
      events.finished(INSTANCE, { attempt: events.sent(), waitMs: 2 }, FAILED, false);
      events.finished(INSTANCE, { attempt: events.sent(), waitMs: 2 }, ANSWERED, true);
    }),
    [
      { ...finished, attempt: 1, isLast: false, outcome: 'failed', code: 'QUEUE_FULL' },
      { ...finished, attempt: 2, isLast: true, outcome: 'result', code: undefined },
    ],
  );
});

test('have one last event, which is the end of an attempt while one is under way', () => {
  const types = (report: (events: CallEvents) => void) =>
    eventsOf(report).map(({ type, isLast }) => [type, isLast]);
  assert.equal(
    types((events) => {
      const first = { attempt: events.sent(), waitMs: 0 };
      const second = { attempt: events.sent(), waitMs: 0 };
      events.refused('QUEUE_FULL', 1);
      events.finished(INSTANCE, second, ANSWERED, true);
      events.finished(INSTANCE, first, FAILED, true);
      events.cancelled(1);
    }),
    [
      ['exchange.finished', true],
      ['exchange.finished', false],
    ],
  );
  assert.equal(
    types((events) => {
      events.refused('QUEUE_FULL', 1);
      events.cancelled(1);
    }),
    [['exchange.refused', undefined]],
  );
});

test('rejects when the exchange ends without an answer', async () => {
  const answers = new Subject<Answer>();
  const promise = finalAnswer(answers);
  answers.next(NOTIFICATION);
  answers.complete();
  assert.equal(codeOf(await rejection(promise)), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
});

test('does not even start when the signal was aborted before', async () => {
  const answers = new Subject<Answer>();
  const reason = new Error('too late');
  assert.is(await rejection(finalAnswer(answers, AbortSignal.abort(reason))), reason);
  assert.is(answers.observed, false);
});

test('leaves no listener on the signal', async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...parameters: Parameters<typeof addEventListener>) => {
    listeners += 1;
    addEventListener.apply(signal, parameters);
  };
  signal.removeEventListener = (...parameters: Parameters<typeof removeEventListener>) => {
    listeners -= 1;
    removeEventListener.apply(signal, parameters);
  };
  const answers = new Subject<Answer>();
  const promise = finalAnswer(answers, signal);
  assert.is(listeners, 1);
  answers.next(RESULT);
  answers.complete();
  await promise;
  assert.is(listeners, 0);
});

test('throws what an error answer means to the caller', () => {
  const refusal = final({ kind: 'error', error: { code: -32602, message: 'bad' } });
  assert.equal(codeThrownBy(refusal), { code: 'INVALID_TOOL_ARGUMENTS', delivered: 'yes' });
});

test('throws a GatewayError, not a SyntaxError, when the result is no JSON after all', () => {
  const broken = final({ kind: 'result', result: JsonText.ofBytes(Buffer.from('{"a":')) });
  assert.equal(codeThrownBy(broken), { code: 'BACKEND_UNAVAILABLE', delivered: 'yes' });
});

test('knows the answer to an unknown method', () => {
  const refusal = (code: number) => final({ kind: 'error', error: { code, message: '' } });
  assert.equal(
    [refusal(-32601), refusal(-32602), RESULT].map((one) => isUnknownMethod(one)),
    [true, false, false],
  );
});

test.run();

/** What is emitted of the call 7, without its time, which is now. */
function eventsOf(report: (events: CallEvents) => void, request: ReportedCall['request'] = PING) {
  const emitted: Record<string, unknown>[] = [];
  const emit = ({ atMs, ...event }: GatewayEvent): void => {
    assert.ok(Math.abs(Date.now() - atMs) < 60_000);
    emitted.push(event);
  };
  report(new CallEvents(emit, { template: 't', number: 7, request }));
  return emitted;
}

function answer(event: ExchangeEvent): Answer {
  return { event, instanceId: 'a', serverId: 'a' };
}

function final(event: FinalEvent): FinalAnswer {
  return { event, instanceId: 'a', serverId: 'a' };
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { resolvedWith: await promise };
  } catch (thrown) {
    return thrown;
  }
}

function codeOf(thrown: unknown): unknown {
  return thrown instanceof GatewayError ? told(thrown) : thrown;
}

function codeThrownBy(final: FinalAnswer): unknown {
  try {
    return { returned: resultOf(final, REQUEST) };
  } catch (thrown) {
    return codeOf(thrown);
  }
}
