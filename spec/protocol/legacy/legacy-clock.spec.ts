// Legacy sessions while somebody sets the wall clock. Tested through the endpoint.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientAnswer } from '../../../src/domain/mcp/client.ts';
import { suite } from '../../helpers/suite.ts';
import { answer, legacyHarness } from './legacy-harness.ts';

const test = suite('legacy sessions while the wall clock is set');
const MINUTE_MS = 60_000;
const STEPS_MS = [11 * MINUTE_MS, 2 * MINUTE_MS, -24 * 60 * MINUTE_MS, 100 * 24 * 60 * MINUTE_MS];

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }));
test.after.each(() => mock.reset());

for (const stepMs of STEPS_MS) {
  const name = `a step of ${stepMs / MINUTE_MS} min`;

  test(`${name} answers no open question, and delays none`, () => {
    const { call, session, passTime, setWallClock } = steppable();
    const { reply } = call(0);
    session.last.ask('elicitation/create');
    const replies: ClientAnswer[] = [];
    session.messages.next({
      kind: 'request',
      method: 'roots/list',
      params: {},
      answer: (it) => replies.push(it),
    });
    const counts = () => [session.last.replies.length, replies.length];
    passTime(MINUTE_MS);
    setWallClock(stepMs);
    passTime(MINUTE_MS);
    assert.equal(counts(), [0, 0]);
    setWallClock(-stepMs);
    passTime(7 * MINUTE_MS);
    assert.equal(counts(), [0, 0]);
    passTime(2 * MINUTE_MS);
    assert.equal(counts(), [1, 1]);
    session.last.result();
    assert.equal(reply.events.messages.at(-1), answer(0));
  });

  test(`${name} drops no broken stream, and keeps none longer`, () => {
    const { call, listen, session, passTime, setWallClock } = steppable();
    const [one, two] = [call(0), call(1)];
    for (const exchange of session.exchanges) exchange.notify('notifications/x');
    for (const { reply } of [one, two]) reply.lose();
    for (const exchange of session.exchanges) exchange.result();
    passTime(20_000);
    setWallClock(stepMs);
    passTime(30_000);
    const again = listen(one.reply.events.lastEventId);
    assert.equal(again.reply.events.messages, [answer(0)]);
    passTime(20_000);
    assert.is(listen(two.reply.events.lastEventId).reply.opened, undefined, 'a minute is over');
  });

  test(`${name} takes no client for absent`, () => {
    const { call, session, passTime, setWallClock } = steppable();
    const { reply } = call(0);
    session.last.notify('notifications/x');
    reply.lose();
    passTime(30_000);
    setWallClock(stepMs);
    passTime(20_000);
    assert.equal(session.away, []);
    passTime(MINUTE_MS);
    assert.equal(session.away, [true]);
  });

  test(`${name} neither hastens nor delays the stream of a waiting call`, () => {
    const { call, setWallClock } = steppable();
    const { reply } = call(0);
    mock.timers.tick(500);
    setWallClock(stepMs);
    mock.timers.tick(499);
    assert.is(reply.opened, undefined);
    mock.timers.tick(1);
    assert.ok(reply.opened);
  });
}

/** A legacy session whose monotonic clock is not the wall clock. */
function steppable() {
  const harness = legacyHarness({ capabilities: { elicitation: {} } });
  let passedMs = 0;
  let wallMs = 1_900_000_000_000;
  harness.session.isShared = false;
  harness.now = () => passedMs;
  mock.method(Date, 'now', () => wallMs);
  return {
    ...harness,
    passTime: (ms: number) => {
      for (const endMs = passedMs + ms; passedMs < endMs; ) {
        passedMs += 10_000;
        wallMs += 10_000;
        mock.timers.tick(10_000);
      }
    },
    setWallClock: (byMs: number) => {
      wallMs += byMs;
    },
  };
}

test.run();
