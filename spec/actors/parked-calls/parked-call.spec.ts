// One parked call where its surroundings are at their worst: clients that act inside an event, exchanges that go on
// talking after their end. What a client sees of it is in parked-calls.spec.ts.

import { mock } from 'node:test';
import { take } from 'rxjs';
import * as assert from 'uvu/assert';
import { NO_REPLY } from '../../../src/actors/parked-calls/parked-call.ts';
import { ParkedCalls } from '../../../src/actors/parked-calls/parked-calls.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { Client, Exchange, replies } from './parked-harness.ts';

const test = suite('a parked call');
const ANN = { id: 'ann' };
const CALL = 'tools/call book';

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('can be gone on with from within its question', () => {
  const { calls, exchange } = harness();
  let second: Client | undefined;
  calls.follow(ANN, CALL, exchange.answers$).subscribe((asked) => {
    if ('kind' in asked)
      second = new Client(calls.resume(asked.id, ANN, CALL, replies(...asked.requests.keys())));
  });
  exchange.ask('roots/list');
  mock.timers.tick(5);
  exchange.result('done');
  assert.equal([second?.heard, exchange.replies.length, calls.size], [['done', 'end'], 1, 0]);
});

test('asks again when the backend asks from within the reply', () => {
  const { calls, exchange } = harness();
  const first = new Client(calls.follow(ANN, CALL, exchange.answers$));
  exchange.say({
    kind: 'request',
    method: 'roots/list',
    params: {},
    answer: () => exchange.ask('sampling/createMessage'),
  });
  mock.timers.tick(5);
  const second = new Client(calls.resume(first.id, ANN, CALL, replies(first.key('roots/list'))));
  mock.timers.tick(5);
  assert.equal(second.heard, ['sampling/createMessage', 'end']);
});

test('ends when its client leaves on hearing what was kept, without the replies', () => {
  const { calls, exchange } = harness();
  const first = new Client(calls.follow(ANN, CALL, exchange.answers$));
  exchange.ask('roots/list');
  mock.timers.tick(5);
  exchange.notify(1);
  calls
    .resume(first.id, ANN, CALL, replies(first.key('roots/list')))
    ?.pipe(take(1))
    .subscribe();
  assert.equal([calls.size, exchange.isCancelled, exchange.replies], [0, true, [['roots/list', NO_REPLY]]]);
});

test('takes in only so many questions', () => {
  const { calls, exchange } = harness();
  const first = new Client(calls.follow(ANN, CALL, exchange.answers$));
  for (let n = 0; n < 66; n += 1) exchange.ask('roots/list');
  assert.equal([exchange.replies.length, exchange.replies[0]], [2, ['roots/list', NO_REPLY]]);
  mock.timers.tick(5);
  assert.is(first.asked?.requests.size, 64);
});

test('keeps no more of what was said than it has room for', () => {
  const { calls, exchange } = harness();
  const first = new Client(calls.follow(ANN, CALL, exchange.answers$));
  exchange.ask('roots/list');
  mock.timers.tick(5);
  const half = 'x'.repeat(LIMITS.undeliveredBytes / 2);
  for (let progress = 0; progress < 3; progress += 1)
    exchange.say({ kind: 'notification', method: 'notifications/progress', params: { progress, half } });
  const second = new Client(calls.resume(first.id, ANN, CALL, replies(first.key('roots/list'))));
  assert.equal(second.heard, [2]);
});

test('hears nothing of an exchange that talks on behind its answer', () => {
  const { calls, exchange } = harness();
  const client = new Client(calls.follow(ANN, CALL, exchange.answers$));
  exchange.ask('roots/list');
  exchange.result('done');
  exchange.notify(1);
  exchange.ask('roots/list');
  mock.timers.tick(5);
  assert.equal([client.heard, calls.size], [['done', 'end'], 0]);
});

test.run();

function harness(): { readonly calls: ParkedCalls; readonly exchange: Exchange } {
  return { calls: new ParkedCalls(), exchange: new Exchange() };
}
