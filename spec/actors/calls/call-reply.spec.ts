// One caller waiting for one exchange: it is answered once, at once, and its ending is remembered.
// Who feeds it is in session.spec.ts, who counts it in instance-ref.spec.ts.

import { NEVER, Observable, of, Subject, type Subscriber, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeEnding } from '../../../src/actors/calls/call-reply.ts';
import { CallReply } from '../../../src/actors/calls/call-reply.ts';
import { backendTimeout, backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call reply');

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

test('does not ask a backend for a caller who went away before', () => {
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

test('never says of an unknown fault that the request was not delivered', () => {
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

test.run();
