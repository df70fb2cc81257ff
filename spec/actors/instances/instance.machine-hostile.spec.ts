// Transports that break their contract: it costs a call or a session, never the instance, and nobody waits for ever.
// What honest transports do is in the other specs of the machine.

import * as assert from 'uvu/assert';
import { JsonText } from '../../../src/domain/json.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, hostile transports');
const check = onHarness(test);

const fault = new TypeError('a fault of the transport');

/** The instance opened a second session after what happened to the first. */
async function opensAgain(stage: Harness): Promise<void> {
  assert.equal([stage.actor.getSnapshot().status, stage.ref.state], ['active', 'unhealthy']);
  await stage.pass(500);
  assert.is(stage.opener.openings.length, 2);
  await stage.healthy();
  assert.is(stage.ref.state, 'healthy');
}

check('opens again when opening throws instead of rejecting', async (stage) => {
  stage.opener.thrownByOpen = fault;
  stage.opener.last.fail();
  await settled();
  await stage.pass(500);
  assert.equal([stage.ref.state, stage.ref.reason], ['unhealthy', 'a fault of the transport']);
  stage.opener.thrownByOpen = undefined;
  await stage.pass(1_000);
  await stage.healthy();
  assert.is(stage.ref.state, 'healthy');
});

check('opens again when what was opened cannot even be looked at', async (stage) => {
  const transport = new ScriptedTransport();
  Object.defineProperty(transport, 'peer', {
    get: () => {
      throw fault;
    },
  });
  await stage.healthy(transport);
  assert.equal([stage.ref.reason, transport.isClosed], ['a fault of the transport', true]);
  await opensAgain(stage);
});

check('answers the caller when exchanging throws, and carries the next call', async (stage) => {
  const transport = await stage.healthy();
  transport.thrownByExchange = fault;
  const caller = stage.call();
  assert.equal([caller.ends, caller.error?.code, caller.error?.delivered], [1, 'INTERNAL_ERROR', 'unknown']);
  transport.thrownByExchange = undefined;
  const next = stage.call();
  transport.last.result();
  assert.equal([next.ends, next.error, stage.ref.inFlight, stage.ref.state], [1, undefined, 0, 'healthy']);
});

check('takes a probe that throws for one that failed', async (stage) => {
  const transport = await stage.healthy();
  transport.thrownByExchange = fault;
  for (const ms of [30_000, 1_000]) await stage.pass(ms);
  assert.equal([stage.ref.state, stage.ref.reason], ['unhealthy', 'a fault of the transport']);
  transport.thrownByExchange = undefined;
  transport.onExchange = (probe) => probe.result();
  await stage.pass(500);
  assert.is(stage.ref.state, 'healthy');
});

check('answers the caller when an exchange ends without an answer', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  transport.last.complete();
  assert.equal([caller.ends, caller.error?.delivered, stage.ref.inFlight], [1, 'unknown', 0]);
});

check('answers the caller once when an exchange is answered twice', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  const { last } = transport;
  last.say({ kind: 'result', result: JsonText.ofValue(1) });
  last.say({ kind: 'result', result: JsonText.ofValue(2) });
  last.fail(fault);
  assert.equal([caller.events.length, caller.ends, caller.error], [1, 1, undefined]);
  assert.equal(
    caller.endings.map(({ outcome }) => outcome),
    ['result'],
  );
});

check('goes on when the messages end with an error', async (stage) => {
  const transport = await stage.healthy();
  transport.breakMessages(fault);
  const caller = stage.call();
  transport.last.result();
  await settled();
  assert.equal([caller.error, stage.ref.state], [undefined, 'healthy']);
});

check('takes an end that is an error, or no value at all, for a lost session', async (stage) => {
  (await stage.healthy()).breakClosed(fault);
  await settled();
  assert.is(stage.ref.reason, 'a fault of the transport');
  await opensAgain(stage);
  stage.opener.transports.at(-1)?.breakClosed();
  await settled();
  assert.is(stage.ref.state, 'unhealthy');
  assert.ok(stage.opener.transports.every(({ isClosed }) => isClosed));
});

check('answers its callers when the session ends in such a way', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  transport.breakClosed(fault);
  await settled();
  assert.equal([caller.ends, stage.ref.inFlight], [1, 0]);
});

check('opens again, and ends, when closing rejects', async (stage) => {
  const transport = await stage.healthy();
  transport.thrownByClose = fault;
  transport.lose();
  await settled();
  await opensAgain(stage);
  const second = stage.opener.transports.at(-1);
  if (second !== undefined) second.thrownByClose = fault;
  stage.ref.leave(0);
  await settled();
  assert.is(stage.ref.state, 'stopped');
});

check('is not harmed when its facts cannot be told, and neither is who asks', async (stage) => {
  const transport = await stage.healthy();
  transport.thrownByFacts = fault;
  const { pid, stderr, unmatchedMessages, state } = stage.ref.snapshot(0);
  assert.equal([pid, stderr, unmatchedMessages, state], [null, [], 0, 'healthy']);
  const caller = stage.call();
  transport.last.result();
  assert.equal([stage.ref.state, caller.error], ['healthy', undefined]);
});

test.run();
