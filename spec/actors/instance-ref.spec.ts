// The handle of one instance: what it shows, and how an exchange is counted, carried and let go.
// What the instance decides is in instance.machine.spec.ts and its neighbours.

import type { Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { InstanceRef } from '../../src/actors/instance-ref.ts';
import { backendTimeout, backendUnavailable } from '../../src/domain/errors.ts';
import { RPC } from '../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { type Caller, onStage, type Stage, settled } from './instance-stage.ts';

const PROFILE = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: {} };
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
      { finished: ({ outcome, error }) => endings.push(outcome, error), overdue: () => overdue },
    )
    .subscribe()
    .unsubscribe();
  assert.equal(endings, ['failed', overdue]);
  assert.equal(transport.asked, ['tools/call', 'ping']);
});

check('has a place free while a backend waits for the client of a call', async (stage) => {
  const transport = await stage.healthy();
  const { events, subscription } = stage.call();
  const counts = () => [stage.ref.inFlight, stage.ref.carried, stage.ref.snapshot(0).inFlight];
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

check('answers for a client that too many others of its calls wait for', async (stage) => {
  const transport = await stage.healthy();
  const call = (caller: string) => {
    const { events } = stage.call({ method: 'tools/call', caller });
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
  assert.is(stage.ref.inFlight, 1);
});

check('waits for a call whose backend waits for its client before it leaves', async (stage) => {
  const transport = await stage.healthy();
  stage.call();
  transport.last.ask('roots/list');
  stage.ref.leave(1_000);
  await settled();
  assert.is(stage.ref.state, 'draining');
  transport.last.result();
  await settled();
  assert.is(stage.ref.state, 'stopped');
});

check('goes through the conversation of one client when it is given one', async (stage) => {
  const transport = await stage.healthy();
  const upstream = await stage.ref.openUpstream(PROFILE, new AbortController().signal);
  const caller = stage.call(undefined, undefined, upstream);
  assert.equal([transport.asked, transport.upstreams[0]?.asked, stage.ref.inFlight], [[], ['tools/call'], 1]);
  transport.upstreams[0]?.lose();
  await stage.pass(1_000);
  assert.equal([caller.error?.delivered, stage.ref.inFlight, stage.ref.state], ['unknown', 0, 'healthy']);
  assert.equal([stage.probes, stage.ref.snapshot(0).errors], [0, 1]);
});

check('says whose the conversation is that is opened', async (stage) => {
  const transport = await stage.healthy();
  const owners: unknown[] = [];
  transport.openUpstream = async (...[, , ownerId]: readonly unknown[]) => void owners.push(ownerId);
  await stage.ref.openUpstream(PROFILE, new AbortController().signal, 'ada');
  assert.equal(owners, ['ada']);
});

check('opens no conversation without a session, and none goes on in the next one', async (stage) => {
  const open = () => codeOf(stage.ref.openUpstream(PROFILE, new AbortController().signal));
  assert.is(await open(), 'BACKEND_UNAVAILABLE');
  const transport = await stage.healthy();
  const upstream = await stage.ref.openUpstream(PROFILE, new AbortController().signal);
  transport.lose();
  await settled();
  assert.is(await open(), 'BACKEND_UNAVAILABLE');
  await stage.pass(1_000);
  await stage.healthy();
  const caller = stage.call(undefined, undefined, upstream);
  assert.equal([caller.error?.code, caller.error?.delivered], ['BACKEND_UNAVAILABLE', 'no']);
  assert.is(stage.ref.state, 'healthy');
});

check('doubts an instance at whose address nothing answers when a conversation is opened', async (stage) => {
  const transport = await stage.healthy();
  transport.thrownByOpenUpstream = backendUnavailable('refused', { delivered: 'no', unreachable: true });
  await codeOf(stage.ref.openUpstream(PROFILE, new AbortController().signal));
  assert.is(stage.ref.state, 'unhealthy');
});

check('hears what its present session hears, also after a restart', async (stage) => {
  const heard: string[] = [];
  for (const listener of ['one', 'two']) {
    stage.ref.messages$.subscribe({
      next: ({ method }) => heard.push(`${listener} ${method}`),
      complete: () => heard.push(`${listener} completed`),
    });
  }
  (await stage.healthy()).tell('a');
  assert.equal(heard.splice(0), ['one a', 'two a']);
  stage.opener.transports.at(-1)?.lose();
  await settled();
  await stage.pass(1_000);
  (await stage.healthy()).tell('b');
  assert.equal(heard.splice(0), ['one b', 'two b']);
  stage.ref.leave(0);
  await settled();
  assert.equal(heard.splice(0), ['one completed', 'two completed']);
  stage.ref.messages$.subscribe({ complete: () => heard.push('late completed') });
  assert.equal(heard, ['late completed']);
});

check('knows who is there, and who was there last', async (stage) => {
  assert.equal([stage.ref.peer, stage.ref.lastPeer], [undefined, undefined]);
  const transport = await stage.healthy();
  assert.equal([stage.ref.peer, stage.ref.lastPeer], [transport.peer, transport.peer]);
  transport.lose();
  await settled();
  assert.equal([stage.ref.peer, stage.ref.lastPeer], [undefined, transport.peer]);
});

check('hands subscriptions to its session, and refuses them without one', async (stage) => {
  const refused: unknown[] = [];
  stage.ref
    .listen({ method: 'subscriptions/listen' })
    .subscribe({ error: (error) => refused.push(error.delivered) });
  assert.equal(refused, ['no']);
  const transport = await stage.healthy();
  const subscription = stage.ref.listen({ method: 'subscriptions/listen' }).subscribe();
  assert.equal([transport.open.length, stage.ref.inFlight], [1, 0]);
  subscription.unsubscribe();
  assert.is(transport.open.length, 0);
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
