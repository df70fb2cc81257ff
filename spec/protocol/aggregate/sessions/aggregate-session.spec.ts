// One client’s session with all templates: the parts it opens, the messages it passes on, and how it ends.

import { mock } from 'node:test';
import { firstValueFrom, NEVER, Observable, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest, SourcedEvent } from '../../../../src/domain/calls/exchange.ts';
import { backendUnavailable } from '../../../../src/domain/errors/backend-errors.ts';
import { perhapsDelivered } from '../../../../src/domain/errors/errors.ts';
import { sessionLost } from '../../../../src/domain/errors/session-errors.ts';
import type { Owner, ServerMessage } from '../../../../src/domain/mcp/client.ts';
import type { ListChange } from '../../../../src/domain/mcp/mcp.ts';
import type { McpSession } from '../../../../src/domain/sessions/mcp-session.ts';
import { TaskScheduler } from '../../../../src/domain/time/task-scheduler.ts';
import { AggregateBackends } from '../../../../src/protocol/aggregate/aggregate-backends.ts';
import { allTemplates } from '../../../../src/protocol/aggregate/all-templates.ts';
import { ToolIndexes } from '../../../../src/protocol/aggregate/lists/findable-tools.ts';
import { AggregateSession } from '../../../../src/protocol/aggregate/sessions/aggregate-session.ts';
import { newAggregateSession } from '../../../../src/protocol/aggregate/sessions/aggregate-session-value.ts';
import { HANDSHAKE } from '../../../helpers/backends/scripted-transport.ts';
import { suite } from '../../../helpers/suite.ts';
import { settled, simulateTime } from '../../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../../helpers/time/turns.ts';
import {
  ADA,
  aggregateLists,
  answered,
  CLOCK,
  ListingBackends,
  NO_SESSIONS,
  PROFILE,
} from '../../listing-backends.ts';

const test = suite('aggregate session');

simulateTime(test);

function setUp(owner: Owner = ADA, scheduler = untimedScheduler()) {
  const a = new ListingBackends({ tools: [{ name: 'x' }] });
  const b = new ListingBackends({ tools: [{ name: 'y' }] });
  b.handshake = { ...HANDSHAKE, capabilities: { tools: {}, logging: {} } };
  const of = (template: string) => (template === 'a' ? a : b);
  const listChanges$ = new Subject<ListChange>();
  const lists = aggregateLists({ backendsOf: of, listChanges$, scheduler: untimedScheduler() });
  const templates = ['a', 'b'];
  const selection = allTemplates(lists, () => ['a', 'b'], scheduler);
  const uses: unknown[] = [];
  const value = newAggregateSession(owner, PROFILE, HANDSHAKE);
  const deps = {
    selection,
    backendsOf: of,
    hasTemplate: (template: string) => templates.includes(template),
    listChanges$,
    scheduler,
    ...CLOCK,
    sessions: {
      ...NO_SESSIONS,
      add: () => {},
      findAny: (): McpSession => session,
      used: () => uses.push(session.callCount),
      remove: () => uses.push('removed'),
    },
    timeoutFor: () => 4_000,
    movesUnsafe: () => false,
  };
  const aggregated = new AggregateBackends({
    ...deps,
    lists,
    indexes: new ToolIndexes({ ...CLOCK, scheduler }),
  });
  const route = aggregated.route.bind(aggregated);
  const session = new AggregateSession({ value, owner, handshake: HANDSHAKE }, { ...deps, route });
  const ask = async (request: ExchangeRequest) => {
    const { event } = await firstValueFrom(session.exchange(request));
    return event.kind === 'result' ? event.result.value : event;
  };
  const call = (name: string) => ask({ method: 'tools/call', params: { name } });
  return { a, b, session, ask, call, listChanges$, templates, uses };
}

/** The sessions of these backends open once it is resolved. */
function heldOpening(backends: ReturnType<typeof setUp>['a']) {
  const open = backends.openSession.bind(backends);
  const opening = Promise.withResolvers<void>();
  backends.openSession = async (...options) => {
    await opening.promise;
    return open(...options);
  };
  return opening;
}

test('a call waits for a part only within its timeout, and the part opens all the same', async () => {
  const { a, session, call } = setUp();
  const opening = heldOpening(a);
  const first = call('a__x').catch(codeOf);
  await settled();
  mock.timers.tick(3_000);
  const second = call('a__x');
  await settled();
  mock.timers.tick(1_000);
  assert.equal(await first, { code: 'BACKEND_TIMEOUT', delivered: 'no' });
  opening.resolve();
  assert.equal([await second, a.sessions.length], [{ called: { name: 'x' } }, 1]);
  const found = a.asked.map(({ arrivedAtMs }) => arrivedAtMs);
  assert.equal(found, [3_000]);
  assert.equal([session.callCount, session.setIdle()], [0, true]);
});

test('a part that opens after the end of its session ends at once', async () => {
  const { a, session, call } = setUp();
  const lost = call('a__x').catch(codeOf);
  await session.close();
  assert.equal(await lost, { code: 'SESSION_NOT_FOUND', delivered: 'no' });
  assert.is(await firstValueFrom(a.sessions[0]?.ended$ ?? NEVER), 'closed');
});

test('a call that waits for a part ends with its session, in the same turn: no stream would have a later answer', async () => {
  const { a, session, call } = setUp();
  const opening = heldOpening(a);
  let lost: unknown;
  const ended = call('a__x').catch((thrown) => {
    lost = codeOf(thrown);
  });
  await settled();
  const closed = session.close();
  await settled();
  assert.equal(lost, { code: 'SESSION_NOT_FOUND', delivered: 'no' });
  opening.resolve();
  await Promise.all([closed, ended]);
});

test('a call of a session that another life takes over is refused with NODE_UNAVAILABLE, also while its part opens', async () => {
  const { session, call } = setUp();
  const opening = call('a__x').catch(codeOf);
  await session.close('takenOver');
  const refusal = { code: 'NODE_UNAVAILABLE', delivered: 'no' };
  assert.equal([await opening, await call('a__x').catch(codeOf)], [refusal, refusal]);
});

test('its parts end as tasks: one for each template would be too many for one turn', async () => {
  const turns: (() => void)[] = [];
  const scheduler = new TaskScheduler({ perTurn: 1, nextTurn: (run) => turns.push(run) });
  const { a, b, session, call } = setUp(ADA, scheduler);
  await call('a__x');
  await call('b__y');
  const ends: string[] = [];
  for (const [template, { sessions }] of Object.entries({ a, b }))
    sessions[0]?.ended$.subscribe(() => ends.push(template));
  const closed = session.close();
  assert.equal(ends, ['a']);
  while (turns.length > 0) turns.shift()?.();
  assert.equal(ends, ['a', 'b']);
  await closed;
});

test('sends the log level to parts with logging, at once or when they are opened', async () => {
  const { a, b, session, ask, call } = setUp();
  await call('a__x');
  const request = { method: 'logging/setLevel', params: { level: 'debug' } };
  assert.equal(await ask(request), {});
  assert.is(session.value.logLevel, 'debug');
  assert.is(a.asked.at(-1)?.method, 'logging/setLevel');
  await call('b__y');
  const found = b.asked.map(({ method }) => method);
  assert.equal(found, ['logging/setLevel', 'tools/call']);
});

test('refuses a cursor, since its lists are one page', async () => {
  const { ask } = setUp();
  const list = (cursor: string | null) => ask({ method: 'tools/list', params: { cursor } });
  const { error } = Object(await list('of another list'));
  assert.equal([error?.code, error?.data], [-32602, { reason: 'invalid_cursor' }]);
  for (const none of [null, '']) assert.is(Object(await list(none)).tools.length, 2);
});

test('refuses a level that there is not, which changes nothing', async () => {
  const { a, session, ask, call } = setUp();
  await call('a__x');
  for (const params of [{ level: 'loud' }, { level: 7 }, {}]) {
    const { error }: { readonly error?: { readonly code: number } } = Object(
      await ask({ method: 'logging/setLevel', params }),
    );
    assert.is(error?.code, -32602);
  }
  assert.equal([session.value.logLevel, a.asked.at(-1)?.method], [undefined, 'tools/call']);
});

test('passes on messages of its parts, later ones included, and list changes of its templates', async () => {
  const { a, b, session, call, listChanges$ } = setUp({ id: 'key:1', templates: new Set(['a', 'b']) });
  await call('a__x');
  const received: ServerMessage[] = [];
  let isOver = false;
  session.messages$.subscribe({ next: (message) => received.push(message), complete: () => (isOver = true) });
  await call('b__y');
  const message = (method: string): ServerMessage => ({ kind: 'notification', method, params: {} });
  a.sessions[0]?.messages.next(message('of a'));
  b.sessions[0]?.messages.next(message('of b'));
  listChanges$.next({ template: 'b', list: 'resourceTemplates' });
  listChanges$.next({ template: 'not theirs', list: 'tools' });
  a.sessions[0]?.messages.next(message('notifications/resources/list_changed'));
  mock.timers.tick(5_000);
  const found = received.map((one) => one.method);
  assert.equal(found, ['of a', 'of b', 'notifications/resources/list_changed']);
  assert.equal([a.sessions[0]?.holds, b.sessions[0]?.holds], [1, 1], 'they do not expire meanwhile');
  session.notify('notifications/roots/list_changed', {});
  session.setAway(true);
  for (const { notes, away } of [...a.sessions, ...b.sessions])
    assert.equal([notes.length, away], [1, [true]]);
  assert.is(session.untilListening, undefined);
  if (a.sessions[0] !== undefined) a.sessions[0].untilListening = Promise.resolve();
  await session.untilListening;
  await session.close();
  assert.is(isOver, true);
  assert.equal([a.sessions[0]?.holds, b.sessions[0]?.holds], [0, 0]);
  assert.equal([a.sessions[0]?.messages.observed, listChanges$.observed], [false, false]);
});

test('a call whose part ends meanwhile fails, and later ones are made in a new one', async () => {
  const { a, session, call } = setUp();
  await call('a__x');
  const [inner] = a.sessions;
  const refusing$ = new Observable<never>((subscriber) => {
    void inner?.close();
    subscriber.error(sessionLost('it was ended'));
  });
  if (inner !== undefined) inner.exchange = () => refusing$;
  assert.equal(await call('a__x').catch(codeOf), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  assert.equal(await call('a__x'), { called: { name: 'x' } });
  assert.equal([a.sessions.length, session.partIds], [2, ['session-1']]);
  assert.equal(a.openings, Array(2).fill({ part: { unsafeMark: undefined, isRecovered: false } }));
  await session.close();
  assert.is(a.sessions[1]?.isClosed, true);
});

test('a part gets the subscriptions that the previous one had', async () => {
  const { a, ask, call } = setUp();
  a.lists = { tools: [{ name: 'x' }], resources: [{ uri: 'a:1' }, { uri: 'a:2' }] };
  const about = (method: string, uri: string) => ask({ method: `resources/${method}`, params: { uri } });
  for (const uri of ['a:1', 'a:2']) await about('subscribe', uri);
  await about('unsubscribe', 'a:1');
  a.instead = throwError(() => backendUnavailable('it broke', { delivered: 'unknown' }));
  const failure = await about('subscribe', 'a:1').catch(codeOf);
  assert.equal(failure, { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  a.instead = undefined;
  await a.sessions[0]?.close();
  a.asked.splice(0);
  await call('a__x');
  const found = a.asked.map(({ method, params }) => `${method} ${params?.uri}`);
  assert.equal(found, ['resources/subscribe a:2', 'tools/call undefined']);
});

test('of a subscription and its end that are under way together, the later one counts', async () => {
  const { a, session, ask, call } = setUp();
  a.lists = { tools: [{ name: 'x' }], resources: [{ uri: 'a:1' }, { uri: 'a:2' }] };
  await call('a__x');
  await ask({ method: 'resources/list' });
  await ask({ method: 'resources/subscribe', params: { uri: 'a:2' } });
  const asked = [
    ['subscribe', 'a:1'],
    ['unsubscribe', 'a:1'],
    ['unsubscribe', 'a:2'],
    ['subscribe', 'a:2'],
  ].map(([method, uri]) => {
    const answer$ = new Subject<SourcedEvent>();
    a.instead = answer$;
    session.exchange({ method: `resources/${method}`, params: { uri } }).subscribe();
    return answer$;
  });
  await settled();
  for (const answer$ of asked.toReversed()) {
    answer$.next(answered({}));
    answer$.complete();
  }
  assert.equal(session.value.uris, { a: ['a:2'] });
});

test('the end of a part does not end that of the client', async () => {
  const { a, session, call } = setUp();
  a.instead = throwError(() => perhapsDelivered(sessionLost('it was ended')));
  assert.equal(await call('a__x').catch(codeOf), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  a.instead = throwError(() => sessionLost('its instance is gone'));
  assert.equal(await call('a__x').catch(codeOf), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  const found = a.asked.length;
  assert.equal([found, session.setIdle()], [2, true]);
});

test('a request about a task goes to the part at its instance, and to no new one', async () => {
  const { a, session, call } = setUp();
  await call('a__x');
  const found = ['a/one', 'a/two', 'b/one', 'one'].map((instanceId) => session.isAt(instanceId));
  assert.equal(found, [true, false, false, false]);
  const ask = () =>
    firstValueFrom(session.exchange({ method: 'tasks/get', params: { taskId: '1' } }, 'a/one'));
  assert.is((await ask()).instanceId, 'a/one');
  a.instead = throwError(() => sessionLost('its instance is gone'));
  assert.equal(await ask().catch(codeOf), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  assert.equal([a.sessions.length, session.setIdle()], [1, true]);
});

test('a client that waits for updates gets a new part without a call', async () => {
  const { a, session, ask } = setUp();
  a.lists = { resources: [{ uri: 'a:1' }] };
  await ask({ method: 'resources/subscribe', params: { uri: 'a:1' } });
  const listening = session.messages$.subscribe();
  const open = a.openSession.bind(a);
  let attempts = 0;
  a.openSession = (...options) => {
    attempts += 1;
    return attempts === 1 ? Promise.reject(sessionLost('it broke')) : open(...options);
  };
  const pass = async () => {
    mock.timers.tick(5_000);
    await settled();
  };
  await a.sessions[0]?.close();
  await settled();
  assert.is(attempts, 0);
  for (let count = 0; count < 3; count += 1) await pass();
  assert.equal(
    [attempts, a.sessions.length, a.sessions[1]?.holds, a.asked.at(-1)?.method],
    [2, 2, 1, 'resources/subscribe'],
  );
  listening.unsubscribe();
  await a.sessions[1]?.close();
  await pass();
  assert.is(attempts, 2);
  let again = session.messages$.subscribe();
  await pass();
  assert.equal([attempts, a.sessions[2]?.holds], [3, 1], 'it listens again');
  a.openSession = () => {
    attempts += 1;
    return Promise.reject(sessionLost('it broke'));
  };
  await a.sessions[2]?.close();
  for (let count = 0; count < 3; count += 1) {
    again.unsubscribe();
    mock.timers.tick(1_000);
    again = session.messages$.subscribe();
  }
  for (let count = 0; count < 10; count += 1) {
    mock.timers.tick(1_000);
    await settled();
  }
  assert.is(attempts, 5, 'a client that reconnects often does not open more often');
});

test('after a new part has its subscriptions, the client gets an update of each, by its own names', async () => {
  const { a, b, session, ask } = setUp();
  for (const backends of [a, b]) {
    backends.handshake = { ...HANDSHAKE, capabilities: { tools: {}, resources: {} } };
    backends.lists = { resources: [{ uri: 'x://1' }, { uri: 'x://2' }] };
  }
  await ask({ method: 'resources/list' });
  const uris = ['x://a/1', 'x://a/2'];
  for (const uri of uris) await ask({ method: 'resources/subscribe', params: { uri } });
  const received: unknown[] = [];
  session.messages$.subscribe(({ method, params }) => received.push([method, params.uri]));
  await settled();
  assert.equal(received, []);
  await a.sessions[0]?.close();
  mock.timers.tick(5_000);
  await settled();
  assert.equal(a.asked.at(-1)?.params, { uri: 'x://2' });
  assert.equal(
    received,
    uris.map((uri) => ['notifications/resources/updated', uri]),
  );
});

test('repeats few subscriptions at the same time, and none that ended meanwhile', async () => {
  const { a, session, ask } = setUp();
  const uris = Array.from({ length: 18 }, (_, index) => `a:${index}`);
  a.lists = { tools: [{ name: 'x' }], resources: uris.map((uri) => ({ uri })) };
  const about = (method: string, uri: string) => ask({ method: `resources/${method}`, params: { uri } });
  for (const uri of uris) await about('subscribe', uri);
  await a.sessions[0]?.close();
  a.asked.splice(0);
  const events$ = new Subject<SourcedEvent>();
  a.instead = events$;
  session.exchange({ method: 'tools/call', params: { name: 'a__x' } }).subscribe();
  await settled();
  const repeated = () =>
    a.asked.flatMap(({ method, params }) => (method === 'resources/subscribe' ? params?.uri : []));
  assert.equal(repeated(), uris.slice(0, 16));
  a.instead = undefined;
  await about('unsubscribe', 'a:16');
  events$.error(backendUnavailable('it broke', { delivered: 'unknown' }));
  assert.equal(repeated(), [...uris.slice(0, 16), 'a:17']);
});

function codeOf({ code, delivered }: { readonly code: string; readonly delivered: string }) {
  return { code, delivered };
}

test('holds no session with a template that was deleted, while its client listens', async () => {
  const { a, b, session, call, templates } = setUp();
  const listening = session.messages$.subscribe();
  for (const name of ['a__x', 'b__y']) await call(name);
  assert.equal([a.sessions[0]?.holds, b.sessions[0]?.holds], [1, 1]);
  templates.pop();
  mock.timers.tick(5_000);
  assert.equal([a.sessions[0]?.holds, b.sessions[0]?.holds], [1, 0]);
  listening.unsubscribe();
});

test.run();
