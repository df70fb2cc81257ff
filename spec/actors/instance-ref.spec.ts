// The handle of one instance: what it shows, and how an exchange is counted, carried and let go.
// What the instance decides is in instance.machine.spec.ts and its neighbours.

import type { Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { InstanceRef } from '../../src/actors/instance-ref.ts';
import { backendTimeout, backendUnavailable } from '../../src/domain/errors.ts';
import { RPC } from '../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { suite } from '../helpers/suite.ts';
import { type Caller, onStage, type Stage, settled } from './instance-stage.ts';

const test = suite('instance ref');
const check = onStage(test);

/** What a new subscriber to the state hears. */
function watch({ ref }: Stage) {
  const heard: string[] = [];
  const subscription: Subscription = ref.state$.subscribe({
    next: (state) => heard.push(state),
    error: () => heard.push('error'),
    complete: () => heard.push('completed'),
  });
  return { heard, subscription };
}

check('replays the state to whoever comes later, and ends with stopped', async (stage) => {
  await stage.healthy();
  const { heard } = watch(stage);
  assert.equal(heard, ['healthy']);
  stage.ref.leave(0);
  await settled();
  assert.equal(heard, ['healthy', 'draining', 'stopped', 'completed']);
  assert.equal(watch(stage).heard, ['stopped', 'completed']);
});

check('tells a state only when it is another one', async (stage) => {
  const transport = await stage.healthy();
  transport.onExchange = (exchange) => exchange.result();
  const { heard } = watch(stage);
  for (let round = 0; round < 3; round += 1) {
    stage.call();
    await stage.pass(30_000);
  }
  assert.equal(heard, ['healthy']);
});

check('replays the present state after everybody had unsubscribed', async (stage) => {
  const other = new InstanceRef(stage.actor, () => stage.clock.now());
  other.state$.subscribe().unsubscribe();
  await stage.healthy();
  const heard: string[] = [];
  other.state$.subscribe((state) => heard.push(state));
  stage.ref.drain();
  assert.equal(heard, ['healthy', 'draining']);
});

check('ends with stopped when it is stopped from above, also for who comes later', async (stage) => {
  const { heard } = watch(stage);
  stage.actor.stop();
  assert.equal(heard, ['starting', 'stopped', 'completed']);
  const late: string[] = [];
  new InstanceRef(stage.actor, () => 0).state$.subscribe({
    next: (state) => late.push(state),
    complete: () => late.push('completed'),
  });
  assert.equal(late, ['stopped', 'completed']);
});

check('counts an exchange in the block in which it is subscribed', async (stage) => {
  await stage.healthy();
  const exchange$ = stage.ref.exchange({ method: 'ping' });
  assert.is(stage.ref.inFlight, 0);
  const subscriptions = Array.from({ length: 3 }, () => exchange$.subscribe());
  assert.is(stage.ref.inFlight, 3);
  for (const subscription of subscriptions) subscription.unsubscribe();
  assert.is(stage.ref.inFlight, 0);
});

check('counts down for a result, an error answer, a failure, a cancellation and a refusal', async (stage) => {
  const transport = await stage.healthy();
  const broken = backendUnavailable('it broke', { delivered: 'unknown' });
  for (const [end, outcome] of [
    [() => transport.last.result(), 'result'],
    [() => transport.last.refuse(RPC.internalError), 'error'],
    [() => transport.last.fail(broken), 'failed'],
  ] as const) {
    const caller = stage.call();
    assert.is(stage.ref.inFlight, 1);
    await stage.pass(5);
    end();
    assert.is(stage.ref.inFlight, 0);
    const error = outcome === 'failed' ? broken : undefined;
    assert.equal(caller.endings, [{ outcome, durationMs: 5, error }]);
  }
  const cancelled = stage.call();
  cancelled.subscription?.unsubscribe();
  assert.equal([stage.ref.inFlight, transport.last.isCancelled], [0, true]);
  assert.is(cancelled.endings[0]?.outcome, 'cancelled');
  transport.lose();
  const refused = stage.call();
  assert.equal([stage.ref.inFlight, refused.endings.length, refused.ends], [0, 1, 1]);
  const { requests, errors, inFlight } = stage.ref.snapshot(0);
  assert.equal([requests, errors, inFlight], [5, 3, 0]);
  assert.is(stage.actor.getSnapshot().context.vitals.inFlight, 0);
});

check('passes events on inside the emission of the transport', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  transport.last.notify('notifications/progress');
  assert.is(caller.events.length, 1);
  transport.last.result();
  assert.equal([caller.events.length, caller.ends], [2, 1]);
});

check('carries an exchange that is answered inside the subscription', async (stage) => {
  const transport = await stage.healthy();
  transport.onExchange = (exchange) => exchange.result();
  const callers = Array.from({ length: 3 }, () => stage.call());
  assert.equal(
    callers.map(({ ends, error }) => [ends, error]),
    [
      [1, undefined],
      [1, undefined],
      [1, undefined],
    ],
  );
  assert.equal([stage.ref.inFlight, stage.actor.getSnapshot().context.vitals.inFlight], [0, 0]);
});

for (const answersAtOnce of [false, true]) {
  check(
    `carries what its callers start from within an answer${answersAtOnce ? ' at once' : ''}`,
    async (stage) => {
      const transport = await stage.healthy();
      if (answersAtOnce) transport.onExchange = (exchange) => exchange.result();
      const callers: Caller[] = [];
      let started = 0;
      const again = (): void => {
        started += 1;
        if (started <= 21) callers.push(stage.call(undefined, again));
      };
      again();
      while (transport.open.length > 0) for (const exchange of transport.open) exchange.result();
      assert.is(callers.length, 21);
      assert.ok(callers.every(({ ends, error }) => ends === 1 && error === undefined));
      assert.equal([stage.ref.inFlight, stage.actor.getSnapshot().context.vitals.inFlight], [0, 0]);
    },
  );
}

check('carries what its callers start from within a failure', async (stage) => {
  const transport = await stage.healthy();
  let next: Caller | undefined;
  const first = stage.call(undefined, () => {
    next ??= stage.call();
  });
  transport.lose();
  assert.equal([first.ends, next?.ends, next?.error?.delivered, stage.ref.inFlight], [1, 1, 'no', 0]);
});

check('answers a request that was waiting in the mailbox when the instance was stopped', async (stage) => {
  let late: Caller | undefined;
  const first = stage.call(undefined, () => {
    stage.actor.stop();
    late = stage.call();
  });
  await settled();
  assert.equal([first.ends, stage.ref.state], [1, 'stopped']);
  assert.equal([late?.ends, late?.error?.delivered, stage.ref.inFlight], [1, 'no', 0]);
});

check('refuses what comes after the end, as not delivered', async (stage) => {
  await stage.healthy();
  stage.ref.leave(0);
  await settled();
  const caller = stage.call();
  assert.equal([caller.ends, caller.error?.code, caller.error?.delivered], [1, 'BACKEND_UNAVAILABLE', 'no']);
  assert.equal([caller.endings, stage.ref.inFlight], [[], 0]);
});

check('asks for a probe when the gateway itself gave a call up', async (stage) => {
  const transport = await stage.healthy();
  await stage.pass(1_000);
  const overdue = backendTimeout(30_000);
  const endings: unknown[] = [];
  stage.ref
    .exchange(
      { method: 'tools/call' },
      ({ outcome, error }) => endings.push(outcome, error),
      () => overdue,
    )
    .subscribe()
    .unsubscribe();
  assert.equal(endings, ['failed', overdue]);
  assert.equal(transport.asked, ['tools/call', 'ping']);
});

check('shows what is true of the instance', async (stage) => {
  const transport = await stage.healthy();
  stage.call();
  await stage.pass(40);
  transport.last.result();
  stage.call();
  assert.equal(stage.ref.snapshot(87.5), {
    id: 'a',
    serverId: 'a',
    template: 't',
    state: 'healthy',
    healthy: true,
    inFlight: 1,
    weight: 1,
    score: 87.5,
    latencyMs: 40,
    consecutiveFailures: 0,
    lastCheck: new Date(performance.timeOrigin).toISOString(),
    reason: null,
    restarts: 0,
    requests: 2,
    errors: 0,
    era: 'legacy',
    pid: 4711,
    stderr: ['a line'],
    strayMessages: 3,
  });
  assert.equal(
    [stage.ref.latencyMs, stage.ref.successRate, stage.ref.capacity],
    [40, 1, LIMITS.inFlightPerInstance],
  );
});

check('shows nothing of a backend that was never there', async ({ ref }) => {
  const { state, healthy, lastCheck, latencyMs, era, pid, stderr, strayMessages } = ref.snapshot(0);
  assert.equal(
    [state, healthy, lastCheck, latencyMs, era, pid, strayMessages],
    ['starting', false, null, null, null, null, 0],
  );
  assert.equal(stderr, []);
});

test.run();
