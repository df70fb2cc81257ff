// GET /events over real sockets: which caller sees which events, reconnecting, and slow readers.

import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { StreamEvent, StreamReader } from '../../../src/http/replies/reply.ts';
import { EventStreams } from '../../../src/http/sse/event-stream.ts';
import { type EventRate, type ReadOptions, RecentEvents } from '../../../src/http/sse/recent-events.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { modern, openSession, rpc, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { head, openRaw, readAll, readUntil } from '../../helpers/clients/raw-http.ts';
import { until } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('GET /events');
const app = appFor(test, () => startWithAccounts({ callerCheckMs: 50 }));
test.before(async () => {
  await app.serve('demo', 'one');
  await app.serve('other', 'two');
});

interface Told {
  readonly id: string;
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

test('sends the kept events, oldest first, and ends', async () => {
  const reported = await eventsFor(app.admin, '');
  const own = reported.filter(({ data }) => data.template === 'demo').map(({ name }) => name);
  assert.equal(own.slice(0, 3), ['template.changed', 'instance.registered', 'instance.starting']);
  const { id, data } = reported.find(({ name }) => name === 'instance.healthy') as Told;
  assert.match(id, /^[0-9a-f]{8}-\d+$/);
  assert.match(String(data.at), /^\d{4}-\d\d-\d\dT.*Z$/);
  const { at: _, ...fields } = data;
  assert.equal(fields, {
    ...{ type: 'instance.healthy', template: 'demo', instance_id: 'one', server_id: 'one', era: 'legacy' },
  });
});

test('selects events by template, type and group of types', async () => {
  const ofOther = await eventsFor(app.admin, '?template=other');
  assert.ok(ofOther.length > 2);
  assert.ok(ofOther.every(({ data }) => data.template === 'other'));
  assert.equal(await eventsFor(app.admin, '?type=tool.omitted'), [], 'a former name is understood');
  const healthy = await eventsFor(app.admin, '?type=instance.healthy');
  const named = healthy.map(({ name, data }) => `${name} ${data.instance_id}`);
  assert.equal(named, ['instance.healthy one', 'instance.healthy two']);
  const group = await eventsFor(app.admin, '?type=instance&template=demo');
  assert.ok(group.length > 2 && group.every(({ name }) => name.startsWith('instance.')));
  const several = await eventsFor(app.admin, '?type=instance.healthy,template');
  assert.equal(new Set(several.map(({ name }) => name)), new Set(['instance.healthy', 'template.changed']));
  const types = ['instance.helthy', 'inst', '', 'instance,', ','].map((type) => `type=${type}`);
  for (const query of [...types, 'follow=perhaps', 'template=A', 'since=1'])
    assert.is((await app.as(app.admin, 'GET', `/events?${query}`)).status, 422, query);
});

test('sends callers without the scope admin their own calls only, without arguments', async () => {
  const echo = { body: { name: 'echo', arguments: { text: 'a-secret' } } };
  await app.as(app.admin, 'POST', '/mcp/demo/tools/call', echo);
  const answer = await app.as(app.user, 'POST', '/mcp/demo/tools/call', echo);
  await app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name: 'nothing' } });
  const mine = await eventsFor(app.user, '');
  const found = mine.map(({ name }) => name);
  assert.equal(found, ['call.started', 'call.finished', 'call.started', 'call.finished']);
  const me = (await app.as(app.user, 'GET', '/auth/me')).body;
  assert.ok(mine.every(({ data }) => data.principal === me.id));
  const [started, finished, next, refused] = mine.map(({ data }) => data);
  assert.equal(started, {
    type: 'call.started',
    alias: 'exchange.started',
    at: started?.at,
    template: 'demo',
    call: started?.call,
    method: 'tools/call',
    tool: 'echo',
    principal: me.id,
    request_id: answer.headers.get('x-request-id'),
  });
  assert.equal([finished?.call, finished?.tool, finished?.attempt], [started?.call, 'echo', 1]);
  assert.equal([refused?.call, refused?.tool, next?.call], [next?.call, 'nothing', next?.call]);
  assert.is.not(next?.call, started?.call);
  assert.equal([finished?.outcome, refused?.outcome], ['result', 'refused']);
  assert.ok([finished, refused].every((data) => Number(data?.wait_ms) >= 0));
  const all = await eventsFor(app.admin, '?type=call.finished');
  assert.equal(all.length, 3);
  assert.not.match(JSON.stringify([mine, all]), 'a-secret');
});

test('former names of types select the events that have them as their alias', async () => {
  const begin = (await eventsFor(app.admin, '')).at(-1)?.id;
  for (const name of ['echo', 'nothing'])
    await app.as(app.admin, 'POST', '/mcp/demo/tools/call', { body: { name, arguments: {} } });
  const found = async (types: string) =>
    (await eventsFor(app.admin, `?type=${types}`, begin)).map(
      ({ name, data }) => `${name} ${data.outcome ?? ''}`,
    );
  assert.equal(await found('exchange.started'), ['call.started ', 'call.started ']);
  assert.equal(await found('exchange.finished'), ['call.finished result']);
  assert.equal(await found('exchange.refused'), ['call.finished refused']);
  assert.equal(await found('exchange.cancelled,exchange.retried'), []);
  assert.equal(await found('exchange.refused,call.finished'), [
    'call.finished result',
    'call.finished refused',
  ]);
  const all = await found('call,attempt');
  assert.equal(all, ['call.started ', 'call.finished result', 'call.started ', 'call.finished refused']);
  assert.equal(await found('exchange'), all);
});

test('shows the processes that serve a caller only to admins, like the records of instances', async () => {
  const command = { id: 'program', command: process.execPath, args: [stdioServerPath] };
  const isolated = { waitMs: 20_000, loadBalancer: { session: 'isolated' } as const };
  await app.gateway.register('own', command, isolated);
  await openSession(app, '/mcp/own', { credentials: app.user });
  const namesFor = async (who: Credentials) =>
    (await eventsFor(who, '?template=own&type=session,upstream')).map(({ name }) => name);
  assert.equal(await namesFor(app.admin), ['upstream.opened', 'session.opened']);
  assert.equal(await namesFor(app.user), ['session.opened']);
});

test('sends an API key for some templates only the events of these', async () => {
  const reported = await eventsFor(await app.key(['admin'], ['other']), '');
  assert.ok(reported.length > 2);
  assert.not.match(JSON.stringify(reported), '"demo"');
});

test('names to an admin with a list of views or tools no other views', async () => {
  await app.gateway.views.put({ id: 'hidden', from: [{ template: 'demo' }] });
  const permissions = ['admin'] as const;
  const made = await app.auth.accounts.createApiKey({ name: 'of views', permissions, views: ['desk'] });
  const namesFor = async (who: Credentials) =>
    (await eventsFor(who, '?type=view.changed')).map(({ data }) => data.view);
  assert.equal(await namesFor(app.admin), ['hidden']);
  assert.equal(await namesFor({ 'x-api-key': made.key }), []);
  assert.equal(await namesFor(await app.key(permissions, ['demo'])), []);
});

test('continues after the last event that was read', async () => {
  const before = await eventsFor(app.admin, '?type=instance');
  const [first, second] = before;
  const after = await eventsFor(app.admin, '?type=instance', String(first?.id));
  assert.equal(after[0], second);
  assert.equal(after.length, before.length - 1);
  assert.equal(await eventsFor(app.admin, '?type=instance', before.at(-1)?.id), []);
  for (const unknown of ['00000000-5', 'x', '', '-1', `${first?.id}x`]) {
    assert.equal(await eventsFor(app.admin, '?type=instance', unknown), before, unknown);
  }
});

test('follows new events until the API key is revoked', async () => {
  const key = await app.key(['gateway:read']);
  const socket = await follow(app.port, key);
  await app.as(app.admin, 'GET', '/mcp/demo/tools/list');
  const mine = await app.key(['admin']);
  const admins = await follow(app.port, mine, '?follow=true&type=instance.deregistered');
  await app.serve('brief', 'three');
  await app.as(app.admin, 'DELETE', '/gateway/deregister/brief/three');
  assert.match(await readUntil(admins, 'instance.deregistered'), 'instance.deregistered');
  admins.destroy();
  const [, id = ''] = /sd_([0-9a-f]+)_/.exec(String(key['x-api-key'])) ?? [];
  await app.as(app.admin, 'DELETE', `/auth/api-keys/${id}`);
  const rest = await readUntil(socket, 'INVALID_CREDENTIALS');
  assert.not.match(rest, 'instance.', 'events of other callers are not reported');
  socket.destroy();
});

test('sends samples of the load only to readers that select them by name', async () => {
  const key = await app.key(['gateway:read'], ['other']);
  const socket = await follow(app.port, key, '?follow=true&type=gateway.sampled');
  const [, data = ''] = /(\{"type":"gateway\.sampled".*\})/.exec(await readUntil(socket, ']}')) ?? [];
  const { totals, templates, instances } = JSON.parse(data);
  assert.equal([templates.length, instances.length, totals.sessions], [1, 1, undefined]);
  assert.equal([templates[0].template, instances[0].instance_id], ['other', 'two']);
  socket.destroy();
  const others = await follow(app.port, app.admin, '?follow=true&type=gateway,instance.draining');
  app.gateway.drain('other', 'two');
  assert.not.match(await readUntil(others, 'event: instance.draining'), 'gateway.sampled');
  app.gateway.resume('other', 'two');
  others.destroy();
  assert.equal(await eventsFor(app.admin, '?type=gateway.sampled'), [], 'none is kept');
});

test('ends the stream of an API key whose owner is no longer an admin', async () => {
  const { id } = await app.createUser('eve', 'admin');
  const body = { name: 'k', permissions: ['admin'] };
  const { key } = (await app.as(await app.login('eve'), 'POST', '/auth/api-keys', { body })).body;
  const socket = await follow(app.port, { 'x-api-key': String(key) });
  await readUntil(socket, 'event: ');
  await app.as(app.admin, 'PATCH', `/auth/users/${id}`, { body: { is_superuser: false } });
  assert.match(await readUntil(socket, 'event: error'), 'event: error');
  socket.destroy();
  const still = await app.as({ 'x-api-key': String(key) }, 'GET', '/events?follow=false');
  assert.is(still.status, 200, 'it may read its own');
});

test('ends a HEAD request at once', async () => {
  const answer = await app.as(app.admin, 'HEAD', '/events');
  assert.equal([answer.status, answer.text], [200, '']);
});

test('names the HTTP request of a call by an MCP client, in both eras', async () => {
  const session = await openSession(app, '/mcp/demo', { credentials: app.admin });
  const post = (body: object, headers: Readonly<Record<string, string>>) =>
    app.ask('POST', '/mcp/demo', { body, headers });
  const legacy = await post(toolCall('echo'), { ...session, 'x-request-id': 'of-a-session' });
  const request = modern('tools/call', { name: 'echo', arguments: {} });
  const stateless = { ...request.headers, ...app.admin, 'x-request-id': 'without-one' };
  const other = await post(request.body, stateless);
  assert.equal([legacy.status, other.status], [200, 200], other.text);
  const calls = (await eventsFor(app.admin, '?type=call.finished')).map(({ data }) => data);
  assert.equal(
    ['of-a-session', 'without-one'].map((id) => calls.find(({ request_id }) => request_id === id)?.tool),
    ['echo', 'echo'],
  );
});

test('keeps only the beginning of long methods and tools, which clients choose', async () => {
  const key = await app.key(['tools:call', 'gateway:read']);
  const session = await openSession(app, '/mcp/demo', { credentials: key });
  const long = 'x'.repeat(100_000);
  await app.as(session, 'POST', '/mcp/demo', { body: rpc(long.slice(0, 5_000)) });
  await app.as(session, 'POST', '/mcp/demo', { body: toolCall(long) });
  const started = await eventsFor(key, '?type=call.started');
  const shown = started.map(({ data }) => `${data.method} ${data.tool}`);
  assert.equal(shown, [`${'x'.repeat(256)} undefined`, `tools/call ${'x'.repeat(256)}`]);
});

test('sends session events, and ends when the gateway closes', async () => {
  const open = await startApp();
  await open.serve('demo', 'one');
  const socket = await follow(open.port, {});
  await openSession(open);
  const seen = await readUntil(socket, 'event: session.opened');
  assert.match(seen, '"principal":"anonymous"');
  await Promise.all([open.gateway.close({ graceMs: 0 }), readUntil(socket, 'event: gateway.closing')]);
  await open.close();
});

test('ids of events and numbers of calls show a caller nothing of what others do', async () => {
  const quiet = await app.key(['tools:call', 'gateway:read']);
  const call = (who: Credentials) => app.as(who, 'POST', '/mcp/demo/tools/call', { body: { name: 'echo' } });
  const seen: [id: number, call: number][] = [];
  for (let n = 0; n < 12; n += 1) {
    await call(quiet);
    const mine = await eventsFor(quiet, '?type=call.finished');
    const { id, data } = mine.at(-1) as Told;
    seen.push([Number(id.split('-')[1]), Number(data.call)]);
    if (n > 0) assert.is(mine.length, n + 1);
    const later = await eventsFor(quiet, '?type=call.finished', mine.at(-2)?.id);
    assert.equal(n === 0 ? [] : later.map(({ id }) => id), n === 0 ? [] : [id]);
  }
  for (const column of [0, 1] as const) {
    const numbers = seen.map((row) => row[column]);
    assert.is(new Set(numbers).size, 12);
    assert.not.equal(
      numbers,
      numbers.toSorted((one, other) => one - other),
      'they are not counted',
    );
    assert.ok(numbers.every(Number.isSafeInteger) && Math.max(...numbers) > 1_000_000_000);
  }
});

test('bounds the streams of one caller, and of all, and takes a stream back when it ends', async () => {
  const key = await app.key(['gateway:read']);
  const sockets = await Promise.all(Array.from({ length: 50 }, () => follow(app.port, key)));
  await Promise.all(sockets.map((socket) => readUntil(socket, 'text/event-stream')));
  const refused = await app.as(key, 'GET', '/events?follow=false');
  assert.equal([refused.outcome, refused.headers.get('retry-after')], ['429 QUEUE_FULL', '60']);
  assert.is((await app.as(app.user, 'GET', '/events?follow=false')).status, 200);
  sockets[0]?.destroy();
  let { status } = refused;
  while (status === 429) ({ status } = await app.as(key, 'GET', '/events?follow=false'));
  assert.is(status, 200);
  for (const socket of sockets) socket.destroy();
});

// --- the ring buffer ----------------------------------------------------------------------------------------------------

test('keeps a limited number of events, and reports how many a reconnecting reader missed', () => {
  const { recent, happen } = ring(10);
  happen(10);
  const early = read(recent, { isFollowing: false });
  happen(15);
  const all = read(recent, { isFollowing: false });
  assert.equal(numbers(all.reported), [15, 16, 17, 18, 19, 20, 21, 22, 23, 24]);
  const late = read(recent, { isFollowing: false, after: String(early.reported[9]?.id) });
  assert.equal([late.reported[0]?.name, late.reported[0]?.data], ['missed', '{"type":"missed","count":5}']);
  assert.equal(numbers(late.reported.slice(1)), numbers(all.reported));
  assert.equal([all.state.isOver, late.state.isOver], [true, true]);
  const options = { isFollowing: false, after: String(early.reported[9]?.id), seesAll: false };
  assert.is(read(recent, options).reported[0]?.data, '{"type":"missed"}');
});

test('drops the oldest events of a slow reader, and reports how many of those that it selected', async () => {
  const { recent, happen } = ring(10);
  const reading = read(recent, {
    isFollowing: true,
    isSelected: (event) => Number(Object(event).atMs) % 2 === 0,
  });
  happen(4);
  await turn();
  reading.state.isBehind = true;
  happen(30);
  await turn();
  reading.state.isBehind = false;
  reading.caughtUp.next();
  happen(2);
  await turn();
  const missed = reading.reported.findIndex(({ name }) => name === 'missed');
  assert.equal(numbers(reading.reported.slice(0, missed)), [0, 2]);
  assert.is(reading.reported[missed]?.data, '{"type":"missed","count":10}');
  assert.equal(numbers(reading.reported.slice(missed + 1)), [24, 26, 28, 30, 32, 34]);
});

test('writes events in quick succession together, and the first event at once', async () => {
  const { recent, happen } = ring(100, { intervalMs: 30, perSecond: 1_000_000 });
  const reading = read(recent, { isFollowing: true });
  const gone = read(recent, { isFollowing: true });
  gone.leave();
  happen(1);
  await turn();
  assert.equal([numbers(reading.reported), gone.state.pieces], [[0], 1]);
  const written = reading.state.pieces;
  for (let event = 0; event < 20; event += 1) {
    happen(1);
    await turn();
  }
  await until(() => reading.reported.length >= 21);
  assert.ok(reading.state.pieces - written <= 4, 'in few pieces');
});

test('divides one rate among all readers, and drops their oldest events', async () => {
  const { recent, happen } = ring(10, { intervalMs: 1, perSecond: 1_000 });
  const readings = [1, 2].map(() => read(recent, { isFollowing: true }));
  happen(10);
  await turn();
  for (const { reported } of readings) assert.is(reported.length, 10, 'as much as is kept comes at once');
  happen(100);
  await until(() => readings.every(({ reported }) => numbers(reported).at(-1) === 109));
  for (const { reported } of readings) {
    const missed = reported.flatMap(({ name, data }) =>
      name === 'missed' ? [JSON.parse(String(data)).count] : [],
    );
    const sum = missed.reduce((total, count) => total + count, 0);
    assert.ok(sum >= 80);
    assert.is(reported.length - missed.length + sum, 110);
  }
});

test('leaves the rate to readers that have something to read', async () => {
  const { recent, happen } = ring(10, { intervalMs: 1, perSecond: 1_000 });
  for (let idle = 0; idle < 999; idle += 1) read(recent, { isFollowing: true, isSelected: () => false });
  const { reported } = read(recent, { isFollowing: true });
  happen(10);
  await until(() => reported.length >= 10);
  const startMs = performance.now();
  happen(5);
  await until(() => reported.length >= 15);
  assert.ok(performance.now() - startMs < 2_000);
});

test('slow readers together get no more than the rate', async () => {
  const { recent, happen } = ring(10, { intervalMs: 1, perSecond: 500 });
  const startMs = performance.now();
  const readings = Array.from({ length: 20 }, () => read(recent, { isFollowing: true }));
  happen(10);
  await turn();
  for (const { state } of readings) state.isBehind = true;
  happen(10);
  while (performance.now() - startMs < 40) await turn();
  for (const { state, caughtUp } of readings) {
    state.isBehind = false;
    caughtUp.next();
  }
  const count = readings.reduce((sum, { reported }) => sum + reported.length, 0);
  const gained = ((performance.now() - startMs) / 1_000) * 500;
  assert.ok(count >= 200 && count <= 220 + gained, `${count} events`);
});

test('reports dropped events when the rate allows, without waiting for another event', async () => {
  const { recent, happen } = ring(2, { intervalMs: 1, perSecond: 50 });
  const reading = read(recent, { isFollowing: true, isSelected: (event) => Number(Object(event).atMs) < 4 });
  happen(2);
  await turn();
  happen(4);
  await until(() => reading.reported.length >= 3);
  assert.is(reading.reported.at(-1)?.data, '{"type":"missed","count":2}');
});

test('reports to a client that did not read how many events it lost', async () => {
  const events$ = new Subject<GatewayEvent>();
  const recent = new RecentEvents(events$, systemClock, 10, AT_ONCE);
  const streams = new EventStreams(systemClock);
  const isSelected = () => true;
  const served = await startMiddlewares((context) =>
    streams.write(
      context,
      (reader) => recent.read({ owner: ANONYMOUS, seesAll: true, isSelected, isFollowing: true }, reader),
      { onLost: () => () => {} },
    ),
  );
  const socket = await openRaw(served.port);
  socket.write(head('GET /', { Connection: 'close' }));
  // More than the system keeps for a connection.
  const reason = 'x'.repeat(1_000_000);
  const at = { atMs: 0, template: 't', instanceId: 'a', serverId: 'a' };
  for (let number = 0; number < 80; number += 1) {
    events$.next({ type: 'instance.crashed', ...at, reason });
    await turn();
  }
  events$.complete();
  const text = await readAll(socket);
  const reported = text.match(/^event: instance\.crashed$/gm)?.length ?? 0;
  const missed = [...text.matchAll(/^data: \{"type":"missed","count":(\d+)\}$/gm)].map(([, count]) =>
    Number(count),
  );
  assert.ok(missed.length > 0, 'it was too slow');
  assert.is(reported + missed.reduce((sum, count) => sum + count, 0), 80);
  served.close();
});

test.run();

/** The kept events. `query`: '' or one that begins with `?`. */
async function eventsFor(credentials: Credentials, query: string, after?: string): Promise<Told[]> {
  const kept = `?follow=false${query.replace('?', '&')}`;
  const headers = after === undefined ? {} : { 'last-event-id': after };
  const answer = await app.as(credentials, 'GET', `/events${kept}`, { headers });
  assert.equal([answer.status, answer.headers.get('content-type')], [200, 'text/event-stream']);
  return answer.text.split('\n\n').flatMap((block) => {
    const [, id = ''] = /^id: (.*)$/m.exec(block) ?? [];
    const [, name] = /^event: (.*)$/m.exec(block) ?? [];
    const [, data = '{}'] = /^data: (.*)$/m.exec(block) ?? [];
    return name === undefined ? [] : [{ id, name, data: JSON.parse(data) }];
  });
}

async function follow(port: number, credentials: Credentials, query = ''): Promise<Socket> {
  const socket = await openRaw(port);
  socket.write(head(`GET /events${query}`, credentials));
  return socket;
}

/** No delay, and a rate that no spec reaches. */
const AT_ONCE: EventRate = { intervalMs: 0, perSecond: 1_000_000 };

/** A ring buffer, and events whose timestamps are their numbers. */
function ring(size: number, rate: EventRate = AT_ONCE) {
  const events$ = new Subject<GatewayEvent>();
  const recent = new RecentEvents(events$, systemClock, size, rate);
  let number = 0;
  const happen = (count: number): void => {
    for (let left = count; left > 0; left -= 1, number += 1) {
      events$.next({ type: 'template.changed', atMs: number, template: 't' });
    }
  };
  return { recent, happen };
}

function read(recent: RecentEvents, options: Partial<ReadOptions>) {
  const reported: StreamEvent[] = [];
  const state = { isOver: false, isBehind: false, pieces: 0 };
  const caughtUp = new Subject<void>();
  const reader: StreamReader = {
    get isBehind() {
      return state.isBehind;
    },
    together: (emit) => {
      state.pieces += 1;
      emit();
    },
    onCaughtUp: (listener) => {
      const waiting = caughtUp.subscribe(listener);
      return () => waiting.unsubscribe();
    },
  };
  const defaults = { owner: ANONYMOUS, seesAll: true, isSelected: () => true, isFollowing: true };
  const events$ = recent.read({ ...defaults, ...options }, reader);
  const subscription = events$.subscribe({
    next: (event) => void reported.push(event),
    complete: () => {
      state.isOver = true;
    },
  });
  return { reported, state, caughtUp, leave: () => subscription.unsubscribe() };
}

function numbers(reported: readonly StreamEvent[]): number[] {
  const events = reported.filter(({ name }) => name !== 'missed');
  return events.map(({ data }) => Date.parse(JSON.parse(String(data)).at));
}
