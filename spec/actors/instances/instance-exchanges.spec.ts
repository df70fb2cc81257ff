// The calls at one instance through its handle: counted, carried, let go, and what they make of its health.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { type Caller, onHarness, settled } from './instance-harness.ts';

const test = suite('instance exchanges');
const check = onHarness(test);

check('passes events on inside the emission of the transport', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  transport.last.notify('notifications/progress');
  assert.is(caller.events.length, 1);
  transport.last.result();
  assert.equal([caller.events.length, caller.ends], [2, 1]);
});

check('carries an exchange that is answered inside the subscription', async (harness) => {
  const transport = await harness.healthy();
  transport.onExchange = (exchange) => exchange.result();
  const callers = Array.from({ length: 3 }, () => harness.call());
  assert.equal(
    callers.map(({ ends, error }) => [ends, error]),
    [
      [1, undefined],
      [1, undefined],
      [1, undefined],
    ],
  );
  assert.equal([harness.ref.inFlight, harness.ref.carried], [0, 0]);
});

check('carries what its callers start from within a failure', async (harness) => {
  const transport = await harness.healthy();
  let next: Caller | undefined;
  const first = harness.call(undefined, () => {
    next ??= harness.call();
  });
  transport.lose();
  assert.equal([first.ends, next?.ends, next?.error?.delivered, harness.ref.inFlight], [1, 1, 'no', 0]);
});

check('carries a call from within what its actor tells', async (harness) => {
  let caller: Caller | undefined;
  harness.ref.state$.subscribe((state) => {
    if (state === 'healthy') caller = harness.call();
  });
  const transport = await harness.healthy();
  transport.last.result();
  assert.equal([caller?.ends, caller?.error], [1, undefined]);
});

check('refuses what comes after the end, as not delivered', async (harness) => {
  await harness.healthy();
  harness.ref.leave(0);
  await settled();
  const caller = harness.call();
  assert.equal([caller.ends, caller.error?.code, caller.error?.delivered], [1, 'BACKEND_UNAVAILABLE', 'no']);
  assert.equal([caller.endings, harness.ref.inFlight], [[], 0]);
});

check('has a place free while a backend waits for the client of a call', async (harness) => {
  const transport = await harness.healthy();
  const { events, subscription } = harness.call();
  const counts = () => [harness.ref.inFlight, harness.ref.carried, harness.ref.snapshot(0).inFlight];
  transport.last.ask('roots/list');
  transport.last.ask('elicitation/create');
  assert.equal(counts(), [0, 1, 1]);
  for (const event of events) if (event.kind === 'request') event.answer({ result: {} });
  assert.equal(counts(), [1, 1, 1]);
  assert.is(transport.last.replies.length, 2);
  transport.last.ask('roots/list');
  subscription?.unsubscribe();
  assert.equal(counts(), [0, 0, 0]);
  for (const event of events) if (event.kind === 'request') event.answer({ result: {} });
  assert.equal(counts(), [0, 0, 0]);
});

check('answers for a client that too many others of its calls wait for', async (harness) => {
  const transport = await harness.healthy();
  const call = (caller: string) => {
    const { events } = harness.call({ method: 'tools/call', caller });
    transport.last.ask('roots/list');
    return [events.length, transport.last.replies.length];
  };
  for (let count = 0; count < LIMITS.parkedCalls / 4; count += 1) assert.equal(call('user:ann'), [1, 0]);
  assert.equal(
    [call('user:ann'), call('user:bob')],
    [
      [0, 1],
      [1, 0],
    ],
  );
  assert.is(harness.ref.inFlight, 1);
});

test.run();
