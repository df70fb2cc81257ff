// The calls at one instance through its handle: counted, carried, let go, and what they make of its health.

import * as assert from 'uvu/assert';
import { backendTimeout, backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { type Caller, onHarness, settled } from './instance-harness.ts';

const test = suite('instance exchanges');
const check = onHarness(test);

check('counts an exchange in the block in which it is subscribed', async (harness) => {
  await harness.healthy();
  const exchange$ = harness.ref.exchange({ method: 'ping' });
  assert.is(harness.ref.inFlight, 0);
  const subscriptions = Array.from({ length: 3 }, () => exchange$.subscribe());
  assert.is(harness.ref.inFlight, 3);
  for (const subscription of subscriptions) subscription.unsubscribe();
  assert.is(harness.ref.inFlight, 0);
});

check(
  'counts down for a result, an error answer, a failure, a cancellation and a refusal',
  async (harness) => {
    const transport = await harness.healthy();
    const broken = backendUnavailable('it broke', { delivered: 'unknown' });
    for (const [end, outcome] of [
      [() => transport.last.result(), 'result'],
      [() => transport.last.refuse(RPC.internalError), 'error'],
      [() => transport.last.fail(broken), 'failed'],
    ] as const) {
      const caller = harness.call();
      assert.is(harness.ref.inFlight, 1);
      await harness.pass(5);
      end();
      assert.is(harness.ref.inFlight, 0);
      const error = outcome === 'failed' ? broken : undefined;
      assert.equal(caller.endings, [{ outcome, durationMs: 5, error }]);
    }
    const cancelled = harness.call();
    cancelled.subscription?.unsubscribe();
    assert.equal([harness.ref.inFlight, transport.last.isCancelled], [0, true]);
    assert.is(cancelled.endings[0]?.outcome, 'cancelled');
    transport.lose();
    const refused = harness.call();
    assert.equal([harness.ref.inFlight, refused.endings.length, refused.ends], [0, 1, 1]);
    const { requests, errors, inFlight } = harness.ref.snapshot(0);
    assert.equal([requests, errors, inFlight], [5, 3, 0]);
  },
);

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

for (const answersAtOnce of [false, true]) {
  check(
    `carries what its callers start from within an answer${answersAtOnce ? ' at once' : ''}`,
    async (harness) => {
      const transport = await harness.healthy();
      if (answersAtOnce) transport.onExchange = (exchange) => exchange.result();
      const callers: Caller[] = [];
      let started = 0;
      const again = (): void => {
        started += 1;
        if (started <= 21) callers.push(harness.call(undefined, again));
      };
      again();
      while (transport.open.length > 0) for (const exchange of transport.open) exchange.result();
      assert.is(callers.length, 21);
      assert.ok(callers.every(({ ends, error }) => ends === 1 && error === undefined));
      assert.equal([harness.ref.inFlight, harness.ref.carried], [0, 0]);
    },
  );
}

check('carries what its callers start from within a failure', async (harness) => {
  const transport = await harness.healthy();
  let next: Caller | undefined;
  const first = harness.call(undefined, () => {
    next ??= harness.call();
  });
  transport.lose();
  assert.equal([first.ends, next?.ends, next?.error?.delivered, harness.ref.inFlight], [1, 1, 'no', 0]);
});

check('sends its actor nothing while it serves', async (harness) => {
  const transport = await harness.healthy();
  const before = harness.actor.getSnapshot();
  harness.call();
  harness.call();
  assert.is(harness.ref.inFlight, 2);
  for (const exchange of transport.open) exchange.result();
  assert.is(harness.ref.inFlight, 0);
  assert.is(harness.actor.getSnapshot(), before);
});

check(
  'carries nothing before its session is open, nor when that is lost, as not delivered',
  async (harness) => {
    const early = harness.call();
    const transport = await harness.healthy();
    transport.closesSlowly = true;
    transport.lose();
    await settled();
    for (const { ends, error, endings } of [early, harness.call()])
      assert.equal([ends, error?.delivered, endings.length], [1, 'no', 1]);
    assert.equal([transport.asked, harness.ref.inFlight], [[], 0]);
  },
);

check('carries a call from within what its actor tells', async (harness) => {
  let caller: Caller | undefined;
  harness.ref.state$.subscribe((state) => {
    if (state === 'healthy') caller = harness.call();
  });
  const transport = await harness.healthy();
  transport.last.result();
  assert.equal([caller?.ends, caller?.error], [1, undefined]);
});

check('answers a call that is made while the instance is stopped', async (harness) => {
  let late: Caller | undefined;
  const first = harness.call(undefined, () => {
    harness.actor.stop();
    late = harness.call();
  });
  await settled();
  assert.equal([first.ends, harness.ref.state], [1, 'stopped']);
  assert.equal([late?.ends, late?.error?.delivered, harness.ref.inFlight], [1, 'no', 0]);
});

check('refuses what comes after the end, as not delivered', async (harness) => {
  await harness.healthy();
  harness.ref.leave(0);
  await settled();
  const caller = harness.call();
  assert.equal([caller.ends, caller.error?.code, caller.error?.delivered], [1, 'BACKEND_UNAVAILABLE', 'no']);
  assert.equal([caller.endings, harness.ref.inFlight], [[], 0]);
});

check('asks for a probe when the gateway itself gave a call up', async (harness) => {
  const transport = await harness.healthy();
  await harness.pass(1_000);
  const overdue = backendTimeout(30_000);
  const endings: unknown[] = [];
  harness.ref
    .exchange(
      { method: 'tools/call' },
      { finished: ({ outcome, error }) => endings.push(outcome, error), overdue: () => overdue },
    )
    .subscribe()
    .unsubscribe();
  assert.equal(endings, ['failed', overdue]);
  assert.equal(transport.asked, ['tools/call', 'ping']);
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

check('waits for a call whose backend waits for its client before it leaves', async (harness) => {
  const transport = await harness.healthy();
  harness.call();
  transport.last.ask('roots/list');
  harness.ref.leave(1_000);
  await settled();
  assert.is(harness.ref.state, 'draining');
  transport.last.result();
  await settled();
  assert.is(harness.ref.state, 'stopped');
});

test.run();
