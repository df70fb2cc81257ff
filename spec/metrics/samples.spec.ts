// The samples of the load: their content for each reader, and no work without one. Time is simulated.

import { mock } from 'node:test';
import { Subject, type Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { TrafficCounts } from '../../src/counts/traffic-counts.ts';
import { ANONYMOUS, type Principal } from '../../src/domain/accounts/principal.ts';
import type { CallOutcome } from '../../src/domain/calls/exchange-event.ts';
import type { GatewayEvent } from '../../src/domain/events/events.ts';
import type { InstanceSnapshot } from '../../src/domain/instances/instance.ts';
import type { ShownNode } from '../../src/domain/nodes/nodes.ts';
import type { Server, TemplateSnapshot } from '../../src/gateway/gateway-types.ts';
import { PeerLoads } from '../../src/http/all-nodes/peer-loads.ts';
import { LoadHistory } from '../../src/metrics/load-history.ts';
import { type SampleSelection, Samples } from '../../src/metrics/samples.ts';
import { definitionSample, snapshotSample } from '../helpers/http/samples.ts';
import { suite } from '../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../helpers/time/simulated-time.ts';
import { TurnCounter, untimedScheduler } from '../helpers/time/turns.ts';

const test = suite('load samples');
const ADMIN: Principal = ANONYMOUS;
const USER: Principal = { ...ANONYMOUS, scopes: new Set(['gateway:read']) };

let events$: Subject<GatewayEvent>;
let templates: TemplateSnapshot[];
/** How often the load was read. */
let looks: number;
let samples: Samples;
/** What a reader threw: RxJS would report it after a wait, which is simulated. */
let failure: Error | undefined;
const open: Subscription[] = [];
simulateTime(test, () => {
  events$ = new Subject();
  templates = [loaded('demo', ['a', 'b']), loaded('other', ['c'])];
  looks = 0;
  failure = undefined;
  const snapshot = (): TemplateSnapshot[] => {
    looks += 1;
    return templates;
  };
  samples = new Samples({ ...gatewayOf(() => templates), snapshot });
  for (const instance of ['demo.a', 'demo.b', 'other.c']) start(instance);
});
test.after.each(() => {
  for (const reading of open.splice(0)) reading.unsubscribe();
});

test('come at once with all parts, then each second with the changed parts', async () => {
  const { seen } = read({ viewer: ADMIN });
  await pass(0);
  assert.is(seen.length, 1);
  assert.equal(idsIn(seen[0]), ['demo', 'other', 'a', 'b', 'c']);
  assert.equal(seen[0]?.instances[0], {
    ...{ server_id: 'demo.a', template: 'demo', instance_id: 'a', state: 'healthy', in_flight: 0 },
    ...{ requests: 0, failures: 0, latency_ms: 1.3, score: 99.5, weight: 2, ejected: false },
    ...{ restarts: 1, consecutive_failures: 0 },
  });
  await pass(1_000);
  assert.equal(idsIn(seen[1]), []);
  templates = [loaded('demo', ['a', 'b'], { inFlight: 3 }), loaded('other', ['c'])];
  finish('other', 'c', 'result', 20);
  await pass(1_000);
  assert.equal(idsIn(seen[2]), ['demo', 'other', 'a', 'b', 'c']);
  await pass(1_000);
  assert.equal(idsIn(seen[3]), ['other', 'c'], 'their requests are 0 again');
});

test('count the calls that ended in the interval, with their durations', async () => {
  const { seen } = read({ viewer: ADMIN });
  await pass(0);
  for (let ms = 1; ms <= 100; ms += 1) finish('demo', 'a', 'result', ms);
  finish('demo', 'a', 'failed', 5_000, false);
  finish('demo', 'b', 'error', 200);
  const end = {
    type: 'call.finished',
    ...CALL,
    template: 'other',
    waitMs: 1,
    durationMs: 0,
    isLast: true,
  } as const;
  events$.next({ ...end, outcome: 'refused', code: 'QUEUE_FULL', alias: 'exchange.refused' });
  events$.next({ ...end, outcome: 'cancelled', alias: 'exchange.cancelled' });
  await pass(1_000);
  const { totals, templates: [demo, other] = [], instances = [] } = seen[1] ?? {};
  const { p50_ms, p95_ms, p99_ms, ...counts } = totals ?? {};
  assert.equal(counts, { requests: 103, failures: 2, in_flight: 0, queued: 10, sessions: 14 });
  assert.equal([demo?.requests, demo?.failures, other?.requests, other?.failures], [101, 1, 2, 1]);
  assert.equal([other?.p50_ms, other?.queued], [null, 5]);
  near(p50_ms, 51);
  near(p95_ms, 96);
  near(p99_ms, 100);
  near(demo?.p95_ms, 96);
  const counted = instances.map((one) => `${one.instance_id} ${one.requests} ${one.failures}`);
  assert.equal(counted, ['a 101 1', 'b 1 1'], 'each exchange with an instance counts there');
});

test('count from the first reader on, and start at zero for an instance that is registered again', async () => {
  for (let call = 0; call < 5; call += 1) finish('demo', 'a', 'result', 10);
  const { seen } = read({ viewer: ADMIN });
  await pass(0);
  const found = [seen[0]?.totals.requests, seen[0]?.totals.p50_ms, seen[0]?.instances[0]?.requests];
  assert.equal(found, [0, null, 0]);
  events$.next({ type: 'instance.deregistered', ...namesOf('demo.a') });
  start('demo.a');
  finish('demo', 'a', 'error', 10);
  await pass(1_000);
  assert.equal(
    [seen[1]?.totals.requests, seen[1]?.instances[0]?.requests, seen[1]?.instances[0]?.failures],
    [1, 1, 1],
  );
});

test('show sessions only with the scope admin, and only the templates of the caller', async () => {
  const mine = read({ viewer: { ...USER, templates: new Set(['other']) } });
  const all = read({ viewer: USER });
  const one = read({ viewer: ADMIN, template: 'demo' });
  await pass(0);
  assert.equal(idsIn(mine.seen[0]), ['other', 'c']);
  assert.equal(mine.seen[0]?.totals.queued, 5);
  assert.equal(Object.keys(all.seen[0]?.totals ?? {}).includes('sessions'), false);
  assert.equal(idsIn(all.seen[0]), ['demo', 'other', 'a', 'b', 'c']);
  assert.equal([idsIn(one.seen[0]), one.seen[0]?.totals.sessions], [['demo', 'a', 'b'], 7]);
});

test('are computed once for all readers, and not at all without one', async () => {
  await pass(10_000);
  const readings = Array.from({ length: 50 }, () => read({ viewer: ADMIN }));
  await pass(0);
  await pass(3_000);
  assert.is(looks, 4);
  assert.ok(readings.every(({ seen }) => seen.length === 4));
  for (const reading of open) reading.unsubscribe();
  await pass(10_000);
  assert.is(looks, 4);
});

test('come at once and with all parts to a later reader', async () => {
  read({ viewer: ADMIN });
  for (const ms of [0, 1_000, 1_000, 500]) await pass(ms);
  const { seen } = read({ viewer: ADMIN });
  assert.equal([seen.length, looks], [1, 3]);
  assert.equal(idsIn(seen[0]), ['demo', 'other', 'a', 'b', 'c']);
  await pass(500);
  assert.equal([seen.length, idsIn(seen[1])], [2, []]);
});

test('the history has the totals of each 10 s of the last hour, without a reader, and reads no instance', async () => {
  const withoutInstances = (load: TemplateSnapshot): TemplateSnapshot => ({
    ...load,
    get instances(): never {
      throw new Error('there may be thousands');
    },
  });
  const snapshot = () => templates.map(withoutInstances);
  const history = new LoadHistory({
    events$,
    snapshot,
    internals: { clock: simulatedClock, traffic: new TrafficCounts(events$, ALL_COUNTED) },
  });
  assert.equal(history.read(ADMIN), []);
  finish('demo', 'a', 'result', 20);
  finish('other', 'c', 'failed', 30);
  for (const ms of [10_000, 10_000]) await pass(ms);
  const [first, second] = history.read(ADMIN);
  const { requests, failures, queued, sessions, p95_ms } = first?.totals ?? {};
  assert.equal([requests, failures, queued, sessions], [2, 1, 10, 14]);
  near(p95_ms, 30);
  assert.equal([second?.totals.requests, second?.totals.p95_ms], [0, null]);
  assert.is(Date.parse(second?.at ?? '') - Date.parse(first?.at ?? ''), 10_000);
  const [seen] = history.read(USER);
  assert.equal([seen?.totals.requests, 'sessions' in Object(seen?.totals)], [2, false]);
  assert.equal(history.read({ ...USER, templates: new Set(['other']) }), []);
  await pass(3_700_000);
  const newest = history.read(ADMIN).at(-1);
  assert.is(history.read(ADMIN).length, 360);
  events$.complete();
  await pass(60_000);
  assert.is(history.read(ADMIN).at(-1), newest, 'it ends with the gateway');
});

test('of several nodes are added up; a node that sends none is named', async () => {
  const near = gatewayOf(() => templates);
  const far = { ...gatewayOf(() => farTemplates), internals: near.internals };
  // The program "b" runs on the other node, where its calls count; the endpoint "a" has calls of both.
  const elsewhere = { calls: 2, serverIds: new Set(['demo.b']) };
  templates = [{ ...loaded('demo', ['a', 'b'], { inFlight: 2 }), elsewhere }];
  const farTemplates = [loaded('demo', ['a', 'b'], { inFlight: 3, state: 'unhealthy' })];
  const loads = new PeerLoads({ others: () => [NODE_B], clock: simulatedClock });
  samples = new Samples(near, { others: loads });
  const sending = new Samples(far, { isPart: true })
    .read({ viewer: ADMIN }, { isBehind: false })
    .subscribe((text) => loads.add(NODE_B.life, text));
  open.push(sending);
  await pass(0);
  const { seen } = read({ viewer: ADMIN });
  await pass(0);
  for (const ms of [10, 20, 30]) finish('demo', 'a', 'result', ms);
  await pass(1_000);
  await pass(1_000);
  // Both nodes saw these calls.
  assert.is(
    seen.reduce((sum, { totals }) => sum + Number(totals.requests), 0),
    6,
  );
  const last = seen.at(-1);
  assert.equal([last?.totals.in_flight, last?.totals.sessions, last?.totals.queued], [8, 14, 10]);
  near50(seen);
  assert.equal(
    (seen[0]?.instances ?? []).map(({ state, in_flight }) => [state, in_flight]),
    [
      ['unhealthy', 5],
      ['unhealthy', 3],
    ],
  );
  sending.unsubscribe();
  loads.forget(NODE_B.life);
  for (let seconds = 0; seconds < 3; seconds += 1) await pass(1_000);
  assert.equal([seen.at(-1)?.partial, seen.at(-1)?.totals.in_flight], [['b'], 2]);
});

test('for another node have at most 5,000 instances; the next ones have the others', async () => {
  const ids = Array.from({ length: 12_000 }, (_, at) => `i${at}`);
  templates = [loaded('demo', ids)];
  samples = new Samples(
    gatewayOf(() => templates),
    { isPart: true },
  );
  const { seen } = read({ viewer: ADMIN });
  const turns = new TurnCounter();
  await pass(0);
  await turns.pass(100);
  templates = [loaded('demo', ids.slice(0, 6_000), { inFlight: 1 })];
  for (let seconds = 0; seconds < 3; seconds += 1) {
    await pass(1_000);
    await turns.pass(100);
  }
  const [first = [], ...later] = seen.map(({ instances }) =>
    instances.map(({ server_id: id }) => String(id)),
  );
  assert.equal(
    [first, ...later].map(({ length }) => length),
    [5_000, 5_000, 1_000, 0],
  );
  const known = new Map(
    seen.flatMap(({ instances }) => instances.map((one) => [one.server_id, one.in_flight])),
  );
  assert.equal([known.size, ...new Set(known.values())], [6_000, 1]);
});

test('skip a reader that is behind, which gets all changes with its next sample', async () => {
  const { seen, reader } = read({ viewer: ADMIN });
  await pass(0);
  reader.isBehind = true;
  templates = [loaded('demo', ['a', 'b'], { weight: 9 }), loaded('other', ['c'])];
  await pass(2_000);
  assert.is(seen.length, 1);
  reader.isBehind = false;
  await pass(1_000);
  assert.equal([seen.length, idsIn(seen[1])], [2, ['a', 'b']]);
});

test('read and write thousands of instances in several turns', async () => {
  const ids = Array.from({ length: 2_500 }, (_, at) => `i${at}`);
  templates = [loaded('demo', ids)];
  const gateway = gatewayOf(() => templates);
  const turns = new TurnCounter();
  // Counts are read when an instance is written.
  const { traffic } = gateway.internals;
  const instance = traffic.instance.bind(traffic);
  traffic.instance = (id) => {
    turns.note();
    return instance(id);
  };
  samples = new Samples(gateway);
  const { seen } = read({ viewer: ADMIN });
  await pass(0);
  await turns.pass(50);
  assert.equal([seen[0]?.instances.length, turns.all], [2_500, 2_500]);
  assert.ok(turns.fullest < 2_500, `${turns.fullest} in one turn`);
});

test('end when the gateway closes', async () => {
  const reading = read({ viewer: ADMIN });
  await pass(0);
  events$.complete();
  assert.equal([reading.isOver(), reading.seen.length], [true, 1]);
});

test.run();

const ALL_COUNTED = { clock: simulatedClock, hasTemplate: () => true, hasView: () => true };

/** A parsed sample. */
interface Seen {
  readonly partial?: readonly string[];
  readonly totals: Readonly<Record<string, number | null>>;
  readonly templates: readonly Readonly<Record<string, unknown>>[];
  readonly instances: readonly Readonly<Record<string, unknown>>[];
}

function gatewayOf(load: () => TemplateSnapshot[]) {
  const traffic = new TrafficCounts(events$, ALL_COUNTED);
  return {
    events$,
    snapshot: load,
    templates: () => load().map(({ template }) => template),
    *eachServer(names: readonly string[]): Generator<Server> {
      for (const { template, instances } of load())
        if (names.includes(template))
          for (const snapshot of instances)
            yield { definition: definitionSample({ template }), snapshot, warnings: [], clients: CLIENTS };
    },
    internals: { clock: simulatedClock, traffic, scheduler: untimedScheduler() },
  };
}

const CLIENTS = { sessions: 0, ownProcesses: 0 };

function read(selection: SampleSelection) {
  const seen: Seen[] = [];
  const reader = { isBehind: false };
  let isOver = false;
  const reading = samples.read(selection, reader).subscribe({
    next: (text) => {
      const { type, at, interval_ms, ...sample } = JSON.parse(text);
      const head = [type, typeof at, typeof interval_ms];
      if (String(head) === 'gateway.sampled,string,number') seen.push(sample);
      else failure = new Error(`not a sample: ${text}`);
    },
    error: (error) => {
      failure = error;
    },
    complete: () => {
      isOver = true;
    },
  });
  open.push(reading);
  return { seen, reader, isOver: () => isOver };
}

/** Instances are read in tasks, so that each sample needs a moment. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left >= 0; left -= 1_000) {
    mock.timers.tick(Math.min(left, 1_000));
    for (let count = 0; count < 20; count += 1) await undefined;
    if (left === 0) break;
  }
  if (failure !== undefined) throw failure;
}

function idsIn(sample: Seen | undefined): unknown[] {
  const { templates = [], instances = [] } = sample ?? {};
  return [...templates.map(({ template }) => template), ...instances.map(({ instance_id }) => instance_id)];
}

const NODE_B: ShownNode = {
  ...{ id: 'b', life: 'lifeofb1', address: undefined, version: '1', since: '', programs: 1, calls: 0 },
  ...{ isDraining: false, state: 'live' },
};

function near50(seen: readonly Seen[]): void {
  const [found] = seen.flatMap(({ totals }) => totals.p50_ms ?? []);
  near(found, 20);
}

/** Percentiles are known to within 3 %. */
function near(found: unknown, wanted: number): void {
  assert.ok(Math.abs(Number(found) / wanted - 1) < 0.03, `${found} is not near ${wanted}`);
}

const CALL = { atMs: 0, call: 1, method: 'tools/call', principal: 'user:1' };

function namesOf(serverId: string) {
  const [template = '', instanceId = ''] = serverId.split('.');
  return { atMs: 0, template, instanceId, serverId };
}

function start(serverId: string): void {
  events$.next({ type: 'instance.starting', ...namesOf(serverId) });
}

function finish(template: string, id: string, outcome: CallOutcome, durationMs: number, isLast = true): void {
  const at = { template, instanceId: id, serverId: `${template}.${id}` };
  const attempt = { attempt: 1, waitMs: 0, outcome, durationMs, isLast, alias: 'exchange.finished' } as const;
  events$.next({ type: isLast ? 'call.finished' : 'attempt.finished', ...CALL, ...at, ...attempt });
}

function loaded(template: string, ids: readonly string[], state: Partial<InstanceSnapshot> = {}) {
  const instances = ids.map((id) => {
    const names = { id, serverId: `${template}.${id}`, template };
    return snapshotSample({ ...names, inFlight: 0, score: 99.5, latencyMs: 1.2789, restarts: 1, ...state });
  });
  const sessions = { open: 7, opened: 9, ended: 2, lost: 1, moved: 0 };
  const ownProcesses = { running: 0, started: 0, lost: 0 };
  const inFlight = instances.reduce((sum, each) => sum + each.inFlight, 0);
  return { template, queued: 5, inFlight, clients: { sessions, ownProcesses }, instances };
}
