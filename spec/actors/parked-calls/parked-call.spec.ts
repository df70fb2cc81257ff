// One parked call where its surroundings are at their worst: clients that act inside an event, exchanges that go on
// talking after their end. What a client sees of it is in parked-calls.spec.ts.

import { mock } from 'node:test';
import { take } from 'rxjs';
import * as assert from 'uvu/assert';
import { NO_REPLY } from '../../../src/actors/parked-calls/parked-call.ts';
import { ParkedCalls } from '../../../src/actors/parked-calls/parked-calls.ts';
import { suite } from '../../helpers/suite.ts';
import { Client, Exchange, replies } from './parked-harness.ts';

const test = suite('a parked call');
const ANN = { id: 'ann' };
const CALL = 'tools/call book';

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

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

test.run();

function harness(): { readonly calls: ParkedCalls; readonly exchange: Exchange } {
  return { calls: new ParkedCalls(), exchange: new Exchange() };
}
