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
async function opensAgain(harness: Harness): Promise<void> {
  assert.equal([harness.actor.getSnapshot().status, harness.ref.state], ['active', 'unhealthy']);
  await harness.pass(500);
  assert.is(harness.opener.openings.length, 2);
  await harness.healthy();
  assert.is(harness.ref.state, 'healthy');
}

check('opens again when opening throws instead of rejecting', async (harness) => {
  harness.opener.thrownByOpen = fault;
  harness.opener.last.fail();
  await settled();
  await harness.pass(500);
  assert.equal([harness.ref.state, harness.ref.reason], ['unhealthy', 'a fault of the transport']);
  harness.opener.thrownByOpen = undefined;
  await harness.pass(1_000);
  await harness.healthy();
  assert.is(harness.ref.state, 'healthy');
});

check('opens again when what was opened cannot even be looked at', async (harness) => {
  const transport = new ScriptedTransport();
  Object.defineProperty(transport, 'peer', {
    get: () => {
      throw fault;
    },
  });
  await harness.healthy(transport);
  assert.equal([harness.ref.reason, transport.isClosed], ['a fault of the transport', true]);
  await opensAgain(harness);
});

check('answers the caller when exchanging throws, and carries the next call', async (harness) => {
  const transport = await harness.healthy();
  transport.thrownByExchange = fault;
  const caller = harness.call();
  assert.equal([caller.ends, caller.error?.code, caller.error?.delivered], [1, 'INTERNAL_ERROR', 'unknown']);
  transport.thrownByExchange = undefined;
  const next = harness.call();
  transport.last.result();
  assert.equal(
    [next.ends, next.error, harness.ref.inFlight, harness.ref.state],
    [1, undefined, 0, 'healthy'],
  );
});

check('takes a probe that throws for one that failed', async (harness) => {
  const transport = await harness.healthy();
  transport.thrownByExchange = fault;
  for (const ms of [30_000, 1_000]) await harness.pass(ms);
  assert.equal([harness.ref.state, harness.ref.reason], ['unhealthy', 'a fault of the transport']);
  transport.thrownByExchange = undefined;
  transport.onExchange = (probe) => probe.result();
  await harness.pass(500);
  assert.is(harness.ref.state, 'healthy');
});

check('answers the caller when an exchange ends without an answer', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  transport.last.complete();
  assert.equal([caller.ends, caller.error?.delivered, harness.ref.inFlight], [1, 'unknown', 0]);
});

check('answers the caller once when an exchange is answered twice', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
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

check('goes on when the messages end with an error', async (harness) => {
  const transport = await harness.healthy();
  transport.breakMessages(fault);
  const caller = harness.call();
  transport.last.result();
  await settled();
  assert.equal([caller.error, harness.ref.state], [undefined, 'healthy']);
});

check('takes an end that is an error, or no value at all, for a lost session', async (harness) => {
  (await harness.healthy()).breakClosed(fault);
  await settled();
  assert.is(harness.ref.reason, 'a fault of the transport');
  await opensAgain(harness);
  harness.opener.transports.at(-1)?.breakClosed();
  await settled();
  assert.is(harness.ref.state, 'unhealthy');
  assert.ok(harness.opener.transports.every(({ isClosed }) => isClosed));
});

check('answers its callers when the session ends in such a way', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  transport.breakClosed(fault);
  await settled();
  assert.equal([caller.ends, harness.ref.inFlight], [1, 0]);
});

check('opens again, and ends, when closing rejects', async (harness) => {
  const transport = await harness.healthy();
  transport.thrownByClose = fault;
  transport.lose();
  await settled();
  await opensAgain(harness);
  const second = harness.opener.transports.at(-1);
  if (second !== undefined) second.thrownByClose = fault;
  harness.ref.leave(0);
  await settled();
  assert.is(harness.ref.state, 'stopped');
});

check('is not harmed when its facts cannot be told, and neither is who asks', async (harness) => {
  const transport = await harness.healthy();
  transport.thrownByFacts = fault;
  const { pid, stderr, unmatchedMessages, state } = harness.ref.snapshot(0);
  assert.equal([pid, stderr, unmatchedMessages, state], [null, [], 0, 'healthy']);
  const caller = harness.call();
  transport.last.result();
  assert.equal([harness.ref.state, caller.error], ['healthy', undefined]);
});

test.run();
