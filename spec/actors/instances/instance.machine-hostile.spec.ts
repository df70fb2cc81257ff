// Transports that break their contract: it costs a call or a session, never the instance, and nobody waits for ever.
// What honest transports do is in the other specs of the machine.

import * as assert from 'uvu/assert';
import { JsonText } from '../../../src/domain/json.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness } from './instance-harness.ts';

const test = suite('instance machine, hostile transports');
const check = onHarness(test);

const fault = new TypeError('a fault of the transport');

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

test.run();
