// The streams of events between nodes: open only while events are read, resumed after the last event, with an end to every failure.

import { mock } from 'node:test';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { Peer } from '../../../src/cluster/channel/peer-client.ts';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import { nodeUnavailable } from '../../../src/domain/errors/node-errors.ts';
import { compileShape } from '../../../src/domain/errors/validation.ts';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import type { ForwardedAnswer, ForwardedRequest } from '../../../src/domain/nodes/forwarding.ts';
import type { ShownNode } from '../../../src/domain/nodes/nodes.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { PeerEvents } from '../../../src/http/all-nodes/peer-events.ts';
import type { StreamEvent, StreamReader } from '../../../src/http/replies/reply.ts';
import { eventRoutes } from '../../../src/http/routes/gateway/events.ts';
import { type ReadOptions, RecentEvents } from '../../../src/http/sse/recent-events.ts';
import { SAMPLED } from '../../../src/metrics/samples.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('the events of other nodes');
simulateTime(test);

const A_ID = 'aaaaaaaa-1';

test('asks nothing while nothing reads; ends with the last reader', async () => {
  const { read, streams, live } = deployment('a', 'b');
  assert.equal(live(), []);
  const [one, two] = [read(), read()];
  assert.equal(live(), ['a', 'b']);
  const [{ request }] = streams as [Stream];
  assert.equal([request.isStream, request.caller.principal.id, request.headers], [true, '', {}]);
  for (const { leave } of [one, two]) leave();
  assert.equal(live(), []);
  mock.timers.tick(60_000);
  assert.is(streams.length, 2);
});

test('asks for the types that the readers want', () => {
  const { read, streams, live } = deployment('a');
  const session = read({ types: new Set(['session.opened']) });
  const template = read({ types: new Set(['session.ended']) });
  session.leave();
  const asked = streams.map(({ request }) => new URLSearchParams(request.target.split('?')[1]).get('type'));
  assert.equal(asked, ['session.opened', 'session.opened,session.ended', 'session.ended']);
  assert.equal(live(), ['a']);
  template.leave();
  assert.equal(live(), []);
});

test('asks for no longer list of types than another node accepts', () => {
  const { read, at } = deployment('a');
  read();
  read({ types: new Set([SAMPLED]) });
  const query = Object.fromEntries(new URLSearchParams(at('a').request.target.split('?')[1]));
  assert.match(query.type ?? '', SAMPLED);
  const shapes = eventRoutes.flatMap(({ request }) => request.query ?? []);
  for (const shape of shapes) assert.equal(compileShape(shape, 'query').issues(query), []);
  assert.is(shapes.length, 1);
});

test('does not ask for changes of the common registry, which each node emits itself', () => {
  const { read, at, live } = deployment('a');
  const registry = read({ types: new Set(['instance.registered', 'instance.changed', 'template.changed']) });
  assert.equal(live(), []);
  registry.leave();
  read();
  const asked = new URLSearchParams(at('a').request.target.split('?')[1]).get('type')?.split(',') ?? [];
  assert.ok(asked.includes('instance.starting'));
  const twice = ['instance.registered', 'instance.changed', 'instance.deregistered', 'template.changed'];
  assert.equal(
    twice.filter((name) => asked.includes(name)),
    [],
  );
});

test('asks for samples where a reader names them, and passes them on, but to no reader', async () => {
  const { read, at, samples } = deployment('a');
  const reading = read({ types: new Set(['gateway.sampled']) });
  assert.is(at('a').request.target, '/events?type=gateway.sampled');
  at('a').answer.data(Buffer.from('event: gateway.sampled\ndata: {"templates":[]}\n\n'));
  assert.equal(samples, ['a {"templates":[]}']);
  at('a').answer.end();
  await passTurns(3);
  assert.equal(samples, ['a {"templates":[]}', 'a is lost']);
  assert.equal(
    reading.got.map(({ name }) => name),
    ['missed'],
  );
});

test('passes on the samples of a node with thousands of instances, templates and long names', () => {
  const { read, at, samples } = deployment('a');
  read({ types: new Set(['gateway.sampled']) });
  const counts = { requests: 9_999, failures: 0, in_flight: 10 };
  const durations = Array.from({ length: 50 }, (_, bucket) => [100 + bucket, 100]);
  const template = { template: 'x'.repeat(128), ...counts, queued: 0, sessions: 10, durations };
  const instance = { server_id: 'x'.repeat(257), state: 'healthy', ...counts };
  const text = JSON.stringify({
    templates: Array(2_000).fill(template),
    instances: Array(5_000).fill(instance),
  });
  const bytes = Buffer.from(`event: gateway.sampled\ndata: ${text}\n\n`);
  const { answer } = at('a');
  for (let from = 0; from < bytes.length; from += 65_536) answer.data(bytes.subarray(from, from + 65_536));
  assert.equal([samples.length, samples[0]?.length], [1, text.length + 2]);
});

test('passes events on with the node and the id that it gave; rights of the reader hold', async () => {
  const { read, at } = deployment('a');
  const all = read();
  const some = read({ isSelected: ({ template }) => template === 'mine' });
  at('a').sends(A_ID, { type: 'tools.changed', at: 'then', template: 'mine' });
  at('a').sends('aaaaaaaa-2', { type: 'tools.changed', at: 'then', template: 'other' });
  for (const odd of [{ type: 'gateway.invented' }, { type: 'tools.changed', template: ['mine'] }, []])
    at('a').sends('aaaaaaaa-3', odd);
  await passTurns(3);
  const mine = {
    ...{ name: 'tools.changed', id: A_ID },
    data: '{"type":"tools.changed","at":"then","template":"mine","node":"a"}',
  };
  assert.equal(some.got, [mine]);
  assert.equal(
    all.got.map(({ id }) => id),
    [A_ID, 'aaaaaaaa-2'],
  );
  const seen: unknown[] = [];
  const fields = { template: 'mine', principal: 'user:1', tool: 'push', view: 'desk', alias: 'tool.omitted' };
  read({ isSelected: (event) => seen.push(event) > 0 });
  at('a').sends('aaaaaaaa-4', { type: 'tool.withheld', ...fields });
  await passTurns(3);
  assert.equal(
    Object.entries(fields).filter(([name, value]) => Object(seen.at(-1))[name] !== value),
    [],
  );
});

test('a lost stream is reported once, and asked for again after 1 to 30 s, from the last event on', async () => {
  const { read, at, streams } = deployment('a');
  const reading = read();
  at('a').sends(A_ID, { type: 'gateway.started' });
  await passTurns(3);
  at('a').answer.end();
  await passTurns(3);
  assert.equal(reading.got.map(({ data }) => data).slice(1), ['{"type":"missed"}']);
  const waits: number[] = [];
  for (let tries = 0; tries < 8; tries += 1) {
    const before = streams.length;
    let seconds = 0;
    for (; streams.length === before && seconds < 60; seconds += 1) mock.timers.tick(1_000);
    waits.push(seconds);
    assert.is(at('a').request.headers['last-event-id'], A_ID);
    at('a').answer.failed(nodeUnavailable('a', 'it does not answer', 'no'));
  }
  assert.equal(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
  const late = read();
  await passTurns(3);
  assert.equal([reading.got.length, late.got.map(({ name }) => name)], [2, ['missed', 'gateway.started']]);
  mock.timers.tick(30_000);
  at('a').answer.head(200, {});
  const later = read();
  await passTurns(3);
  assert.is(later.got[0]?.name, 'gateway.started', 'nothing is missing once the node answers');
});

test('a refusal, too large an event, and a member that cannot be reached are failures', async () => {
  const { read, at, live } = deployment('a', 'b', 'unreachable');
  const reading = read();
  at('a').answer.head(404, {});
  at('b').answer.head(200, {});
  for (let parts = 0; parts < 129; parts += 1) at('b').answer.data(Buffer.alloc(65_536, 'x'));
  await passTurns(3);
  assert.equal(
    reading.got.map(({ name }) => name),
    ['missed'],
  );
  assert.equal(live(), []);
});

test('`missed` of a node reaches the readers without its count, which is not theirs', async () => {
  const { read, at } = deployment('a');
  const reading = read();
  at('a').answer.data(Buffer.from('event: missed\ndata: {"type":"missed","count":7}\n\n'));
  await passTurns(3);
  assert.equal(reading.got, [{ name: 'missed', data: '{"type":"missed"}' }]);
});

test('follows members: a new one within a second, one that is gone no longer', async () => {
  const { read, members, live, at } = deployment('a');
  const reading = read();
  members.push(memberOf('b'));
  mock.timers.tick(1_000);
  assert.equal(live(), ['a', 'b']);
  members.splice(0, 1);
  mock.timers.tick(1_000);
  assert.equal(live(), ['b']);
  at('b').sends('bbbbbbbb-1', { type: 'gateway.started' });
  await passTurns(3);
  assert.equal(
    reading.got.map(({ name }) => name),
    ['missed', 'gateway.started'],
  );
});

test('a reader goes on after an id that another node gave', async () => {
  const { read, at, happens } = deployment('a', 'b');
  const first = read({ after: 'aaaaaaaa-7' });
  assert.is(at('a').request.headers['last-event-id'], 'aaaaaaaa-7', 'the node that gave it knows it');
  at('a').sends('aaaaaaaa-8', { type: 'gateway.started' });
  happens();
  await passTurns(3);
  assert.equal(
    first.got.map(({ name }) => name),
    ['missed', 'gateway.started', 'template.changed'],
  );
  const kept = read({ after: 'aaaaaaaa-8' });
  assert.equal(
    kept.got.map(({ name }) => name),
    ['missed', 'template.changed'],
  );
  const own = read({ after: String(kept.got[1]?.id) });
  assert.equal(own.got, []);
  const forged = read({ after: 'x\r\nforged: 1' });
  assert.is(forged.got[0]?.name, 'missed');
});
test.run();

interface Stream {
  readonly node: string;
  readonly request: ForwardedRequest;
  readonly answer: ForwardedAnswer;
  isCancelled: boolean;
  sends(id: string, event: object): void;
}

/** A node whose other nodes are scripted. */
function deployment(...ids: string[]) {
  const members = ids.map(memberOf);
  const own$ = new Subject<GatewayEvent>();
  const events = new RecentEvents(own$, systemClock, 100, { intervalMs: 0, perSecond: 1_000_000 });
  const streams: Stream[] = [];
  const ended = new Set<ForwardedAnswer>();
  const peerOf = (node: string): Peer => ({
    node,
    forward: (request, answer) => {
      const sends = (id: string, event: object): void => {
        const text = `event: x\nid: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
        answer.data(Buffer.from(text));
      };
      const ending = <Reason extends unknown[]>(end: (...reason: Reason) => void) => {
        return (...reason: Reason): void => {
          ended.add(scripted);
          end(...reason);
        };
      };
      const scripted = { ...answer, end: ending(answer.end), failed: ending(answer.failed) };
      const stream: Stream = { node, request, answer: scripted, isCancelled: false, sends };
      streams.push(stream);
      const cancel = (): void => {
        stream.isCancelled = true;
      };
      return { isSent: true, resume: () => {}, cancel };
    },
  });
  const peers = { ofLife: (life: string) => (life === 'unreachable' ? undefined : peerOf(life)) };
  const samples: string[] = [];
  const loads = {
    add: (life: string, text: string) => samples.push(`${life} ${text}`),
    forget: (life: string) => samples.push(`${life} is lost`),
  };
  const reader = new PeerEvents({
    ...{ peers, events, loads, clock: simulatedClock },
    otherMembers: { list: () => members },
  });
  const read = (options: Partial<ReadOptions> = {}) => {
    const got: StreamEvent[] = [];
    const defaults = { owner: ANONYMOUS, seesAll: true, isSelected: () => true, isFollowing: true };
    const subscription = reader
      .read({ ...defaults, ...options }, READER)
      .subscribe((event) => void got.push(event));
    return { got, leave: () => subscription.unsubscribe() };
  };
  return {
    ...{ members, streams, read, samples },
    happens: () => own$.next({ type: 'template.changed', atMs: 0, template: 't' }),
    /** The newest stream from this node. */
    at: (node: string) => streams.findLast((stream) => stream.node === node) as Stream,
    /** Nodes with an open stream. */
    live: () =>
      streams
        .filter(({ isCancelled, answer }) => !isCancelled && !ended.has(answer))
        .map(({ node }) => node)
        .sort(),
  };
}

const READER: StreamReader = { isBehind: false, together: (emit) => emit(), onCaughtUp: () => () => {} };

function memberOf(id: string): ShownNode {
  return {
    ...{ id, life: id, address: undefined, version: '0', since: '', programs: 0, calls: 0 },
    ...{ isDraining: false, state: 'live' },
  };
}
