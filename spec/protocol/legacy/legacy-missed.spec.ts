// A client that opens its listening stream again gets each message once, or a notice of what may have changed: however late it comes, and
// whatever was not stored. Tested through the endpoint.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { MAX_UNREAD_BYTES } from '../../../src/protocol/client-bounds.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { HANDSHAKE } from '../scripted-backends.ts';
import { legacyHarness, pass } from './legacy-harness.ts';

const test = suite('messages that a listening client missed');

simulateTime(test);

/** The notices for a client that may have missed messages: its server announces changes of tools, and it has subscribed to one resource. */
const NOTICE = ['notifications/tools/list_changed', 'notifications/resources/updated'];

/** `say` sends a message of the backend: a number in place of its method. */
function subscribed(protocolVersion = '2025-11-25') {
  const harness = legacyHarness({ protocolVersion });
  const { session } = harness;
  session.handshake = {
    ...HANDSHAKE,
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
  };
  session.uris = ['news://all'];
  const say = (...numbers: readonly number[]): void => {
    for (const number of numbers)
      session.messages.next({ kind: 'notification', method: `${number}`, params: {} });
  };
  return { ...harness, say };
}

for (const awayMs of [0, 10_000, 50_000, 60_000, 70_000, 120_000, 130_000, 600_000]) {
  test(`a client that comes back after ${awayMs / 1_000} s gets what was said meanwhile, or a notice`, () => {
    const { listen, say } = subscribed();
    const { reply } = listen();
    say(1);
    reply.lose();
    say(2);
    pass(awayMs);
    say(3);
    const again = listen(reply.events.lastEventId).reply;
    say(4);
    const { methods } = again.events;
    const isWhole = methods.join() === '2,3,4';
    const isNoticed = NOTICE.every((method) => methods.filter((each) => each === method).length === 1);
    assert.ok(isWhole !== isNoticed, methods.join());
    assert.is(isWhole, awayMs < 60_000);
    assert.is(methods.at(-1), '4');
  });
}

test('without an event it gets the notices when it comes back, unless nothing was said', () => {
  for (const [awayMs, told] of [
    [10_000, 'later'],
    [200_000, [...NOTICE, 'later']],
  ] as const) {
    const { listen, session, endpoint } = subscribed('2025-06-18');
    const { reply } = listen();
    assert.equal(reply.events.events, []);
    reply.lose();
    pass(awayMs);
    assert.is(endpoint.openTraffic, awayMs === 10_000 ? 1 : 0);
    const again = listen().reply;
    session.messages.next({ kind: 'notification', method: 'later', params: {} });
    assert.equal(again.events.methods, [told].flat());
  }
});

test('without an event, after messages on the stream before, it gets the notices', () => {
  const { listen, say } = subscribed();
  const { reply } = listen();
  say(1);
  reply.lose();
  assert.equal(listen().reply.events.methods, NOTICE);
});

test('the first stream of a session brings no notice; with an event of a stream that is not known it does', () => {
  const { listen } = subscribed();
  assert.equal(listen().reply.events.methods, []);
  for (const event of ['1-get-x.7', '2-get-x.7'])
    assert.equal(subscribed().listen(event).reply.events.methods, NOTICE);
});

test('a session of an earlier life begins with a notice, again when its client did not get it', () => {
  const { listen, session } = subscribed();
  session.generation = 2;
  const { reply } = listen('1-get-x.7');
  assert.equal(reply.events.methods, NOTICE);
  reply.lose();
  const again = listen('1-get-x.7').reply;
  assert.equal(again.events.methods, NOTICE);
  again.lose();
  assert.equal(listen(again.events.lastEventId).reply.events.methods, []);
});

test('a message for which there was no room is replaced by a notice, once', () => {
  const { listen, say } = subscribed();
  const { reply } = listen();
  reply.lose();
  const numbers = Array.from({ length: LIMITS.undeliveredMessages + 1 }, (_, index) => index);
  say(...numbers);
  const again = listen(reply.events.lastEventId).reply;
  assert.equal(again.events.methods, [...NOTICE, ...numbers.slice(0, -1).map(String)]);
  again.lose();
  assert.equal(listen(again.events.lastEventId).reply.events.methods, []);
});

test('so is one that was sent on the lost stream and is not stored any more', () => {
  const { listen, say } = subscribed();
  const { reply } = listen();
  const first = reply.events.lastEventId;
  say(...Array.from({ length: 257 }, (_, index) => index));
  reply.lose();
  const { methods } = listen(first).reply.events;
  assert.equal([methods.slice(0, 1), methods.slice(-2)], [['1'], NOTICE]);
});

test('a client that reads too slowly gets the notices once it reads again', () => {
  const { listen, say } = subscribed();
  const { events } = listen().reply;
  events.unsentBytes = MAX_UNREAD_BYTES + 1;
  say(1, 2);
  pass(20_000);
  assert.equal(events.methods, []);
  events.unsentBytes = 0;
  pass(20_000);
  say(3);
  assert.equal(events.methods, [...NOTICE, '3']);
});

test.run();
