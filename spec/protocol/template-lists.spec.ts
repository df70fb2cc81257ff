// Lists in memory: which requests are answered from the cache, freshness, owners, stale answers, the budget that all caches share, and
// the notices when a list changes.

import { mock } from 'node:test';
import { firstValueFrom, NEVER, type Observable, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { newSession } from '../../src/actors/sessions/session-transitions.ts';
import type { ExchangeRequest, SourcedEvent } from '../../src/domain/calls/exchange.ts';
import { noHealthyInstance } from '../../src/domain/errors/backend-errors.ts';
import type { JsonObject } from '../../src/domain/json/json.ts';
import type { ServerMessage, StatelessOptions } from '../../src/domain/mcp/client.ts';
import type { ListField } from '../../src/domain/mcp/mcp.ts';
import { FairLruMap } from '../../src/domain/memory/fair-lru-map.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { withListNotices } from '../../src/protocol/list-notices.ts';
import { CACHE_BYTES, TemplateLists, type TemplateListsDeps } from '../../src/protocol/template-lists.ts';
import { suite } from '../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../helpers/time/simulated-time.ts';
import { schedulerWith } from '../helpers/time/turns.ts';
import { answered, PROFILE } from './listing-backends.ts';
import { HANDSHAKE } from './scripted-backends.ts';

const test = suite('template lists');
simulateTime(test);

const TOOLS: ExchangeRequest = { method: 'tools/list' };

/** A cache whose loads the spec answers. */
type Cache = TemplateListsDeps['cache'];

function caching(shared: Cache = new FairLruMap(CACHE_BYTES)) {
  const present = { nowMs: 0, hasHandshakes: true };
  const loads: Subject<SourcedEvent>[] = [];
  const gone = new Set<string>();
  const changes$ = new Subject<ListField>();
  const cache = new TemplateLists({
    listChanged$: changes$,
    hasHandshakes: () => present.hasHandshakes,
    isThere: (id) => !gone.has(id),
    clock: { ...systemClock, now: () => present.nowMs },
    scheduler: schedulerWith({ run: (task) => task() }),
    cache: shared,
  });
  const load = (): Observable<SourcedEvent> => {
    const source = new Subject<SourcedEvent>();
    loads.push(source);
    return source;
  };
  const serve = (who: string, loading = load, request = TOOLS, more: Partial<StatelessOptions> = {}) =>
    cache.exchange(request, { owner: { id: who }, profile: PROFILE, ...more }, loading);
  const follow = (events$: Observable<SourcedEvent>) => {
    const received: unknown[] = [];
    const subscription = events$.subscribe({
      next: ({ event }) => received.push(event.kind === 'result' ? event.result.value : event.kind),
      error: (thrown: Error) => received.push(thrown.message),
    });
    return { received, subscription };
  };
  const ask = (who = 'ada', ...request: [ExchangeRequest?, Partial<StatelessOptions>?]) =>
    follow(serve(who, load, ...request));
  const askIn = (session: Parameters<TemplateLists['exchangeIn']>[0]) =>
    follow(cache.exchangeIn(session, TOOLS, load));
  const answer = (result: JsonObject) => {
    loads.at(-1)?.next(answered(result));
    loads.at(-1)?.complete();
  };
  return { cache, present, loads, changes$, serve, ask, askIn, answer, gone };
}

test('shares no large answer between clients that wait for it', () => {
  const { loads, ask } = caching();
  const large = { tools: [{ name: 'x'.repeat(1024 * 1024) }] };
  const [first, second] = [ask(), ask()];
  assert.is(loads.length, 1);
  const countOf = ({ received }: typeof first) => received.length;
  loads[0]?.next(answered(large));
  assert.equal([countOf(first), countOf(second), loads.length], [1, 0, 2]);
  loads[1]?.next(answered(large));
  assert.equal([countOf(first), countOf(second), loads.length], [1, 1, 2]);
});

test('a list that is private now is served, and not the public one of before', () => {
  const { loads, changes$, ask, answer } = caching();
  ask();
  answer({ tools: [{ name: 'public' }], cacheScope: 'public', ttlMs: 60_000 });
  changes$.next('tools');
  ask();
  answer({ tools: [{ name: 'own' }] });
  const { received } = ask();
  assert.equal([loads.length, received], [2, [{ tools: [{ name: 'own' }] }]]);
});

test('asks for a list once per owner, capabilities, page and instance', () => {
  const { loads, ask } = caching();
  ask('ada');
  ask('ada', { ...TOOLS, params: { _meta: { traceparent: 'x' } } });
  assert.is(loads.length, 1);
  ask('bo');
  ask('ada', TOOLS, { profile: { ...PROFILE, capabilities: { roots: {} } } });
  ask('ada', { ...TOOLS, params: { cursor: '' } });
  ask('ada', TOOLS, { instanceId: 'two' });
  ask('ada', { method: 'prompts/list' });
  assert.is(loads.length, 6);
});

test('does not cache other requests, or lists with unknown parameters', () => {
  const { loads, ask } = caching();
  for (let turn = 0; turn < 2; turn += 1) {
    ask('ada', { method: 'tools/call', params: { name: 'a' } });
    ask('ada', { ...TOOLS, params: { filter: 'x' } });
  }
  assert.is(loads.length, 4);
});

test('serves sessions that share a conversation', () => {
  const { loads, askIn, answer } = caching();
  const session = { value: newSession('t', 'ada', PROFILE), handshake: HANDSHAKE };
  askIn(session);
  answer({ tools: [] });
  assert.equal([askIn(session).received, loads.length], [[{ tools: [] }], 1]);
  askIn({ ...session, handshake: { ...HANDSHAKE } });
  assert.is(loads.length, 2);
});

test('serves a stale list for ten minutes when no instance answers, and none when none is or was connected', () => {
  const { present, changes$, loads, ask, answer, gone } = caching();
  const failing = (thrown: Error = noHealthyInstance('t', 'none')) => {
    const { received } = ask();
    loads.at(-1)?.error(thrown);
    return received;
  };
  const load = () => {
    ask();
    answer({ tools: [] });
  };
  load();
  changes$.next('tools');
  present.nowMs = 599_999;
  assert.equal(failing(), [{ tools: [] }]);
  assert.equal(failing(new Error('gone')), ['gone']);
  present.nowMs = 600_000;
  assert.match(String(failing()), 'No instance of "t"');
  load();
  changes$.next('tools');
  present.hasHandshakes = false;
  assert.match(String(failing()), 'No instance of "t"');
  present.hasHandshakes = true;
  assert.equal(failing(), [{ tools: [] }]);
  present.hasHandshakes = false;
  changes$.next('tools');
  present.hasHandshakes = true;
  assert.match(String(failing()), 'No instance of "t"', 'it may be the list of another server');
  load();
  const asked = loads.length;
  ask();
  gone.add('one');
  ask();
  assert.is(loads.length, asked + 1, 'only the instance that listed it knows its next pages');
});

test('notifies sessions of changed lists as far as the handshake announced it', () => {
  const { cache, changes$ } = caching();
  const messages = new Subject<ServerMessage>();
  const capabilities = { tools: { listChanged: true }, prompts: {} };
  const received: unknown[] = [];
  cache.withNotices(messages, { ...HANDSHAKE, capabilities, ownerId: 'ann' }).subscribe({
    next: ({ method, params }) => received.push({ method, params }),
    complete: () => received.push('over'),
  });
  const method = 'notifications/tools/list_changed';
  for (const list of ['tools', 'prompts', 'tools'] as const) changes$.next(list);
  messages.next({ kind: 'notification', method, params: { _meta: { theirs: 1 } } });
  mock.timers.tick(5_000);
  assert.equal(received, [{ method, params: {} }], 'once, whatever its source, without params of others');
  messages.complete();
  assert.is(received.at(-1), 'over');
});

test('sends at most one notice a second for a list that changes all the time, and one for the last change', () => {
  const changes$ = new Subject<ListField>();
  const received: string[] = [];
  withListNotices(NEVER, changes$, {
    scheduler: schedulerWith({ run: (task) => task() }),
    clock: simulatedClock,
  }).subscribe(({ method }) => received.push(method));
  for (let atMs = 0; atMs < 10_000; atMs += 10) {
    changes$.next('tools');
    mock.timers.tick(10);
  }
  assert.ok(received.length >= 9 && received.length <= 11, `${received.length} notices`);
  const before = received.length;
  changes$.next('tools');
  mock.timers.tick(1_050);
  assert.ok(received.length > before);
});

test('notices for many clients are tasks, which a client that leaves meanwhile does not get', () => {
  const changes$ = new Subject<ListField>();
  const tasks: (() => void)[] = [];
  const received: string[] = [];
  const [first] = ['first', 'second'].map((client) =>
    withListNotices(NEVER, changes$, {
      scheduler: schedulerWith({ run: (task) => tasks.push(task) }),
      clock: simulatedClock,
    }).subscribe(() => received.push(client)),
  );
  changes$.next('tools');
  mock.timers.tick(50);
  assert.equal([received, tasks.length], [[], 2]);
  first?.unsubscribe();
  for (const task of tasks) task();
  assert.equal(received, ['second']);
});

test('stores a list for half a minute, or for its own `ttlMs` of at most an hour', () => {
  const { present, loads, ask, answer } = caching();
  ask();
  answer({ tools: [] });
  present.nowMs = 29_999;
  assert.equal(ask().received, [{ tools: [] }]);
  present.nowMs = 30_000;
  ask();
  assert.is(loads.length, 2);
  answer({ tools: [], ttlMs: 1_000 });
  present.nowMs = 30_999;
  ask();
  assert.is(loads.length, 2);
  present.nowMs = 31_000;
  ask();
  assert.is(loads.length, 3);
  answer({ tools: [], ttlMs: 0 });
  ask();
  assert.is(loads.length, 4);
  answer({ tools: [], ttlMs: 2 * 3_600_000 });
  present.nowMs += 3_599_999;
  ask();
  assert.is(loads.length, 4);
  present.nowMs += 1;
  ask();
  assert.is(loads.length, 5);
});

test('serves only public lists to other owners', () => {
  const { loads, ask, answer } = caching();
  ask('ada');
  answer({ tools: [{ name: 'hers' }] });
  assert.equal(ask('bo').received, []);
  assert.is(loads.length, 2);
  answer({ tools: [], ttlMs: 5_000, cacheScope: 'public' });
  assert.equal(ask('cy').received, [{ tools: [], ttlMs: 5_000, cacheScope: 'public' }]);
});

test('drops a list that changed, also while it loads', () => {
  const { loads, changes$, ask, answer } = caching();
  const early = ask();
  changes$.next('tools');
  const late = ask();
  assert.is(loads.length, 2);
  loads[0]?.next(answered({ tools: [{ name: 'old' }] }));
  answer({ tools: [{ name: 'new' }] });
  assert.equal(early.received, [{ tools: [{ name: 'old' }] }]);
  assert.equal(late.received, [{ tools: [{ name: 'new' }] }]);
  assert.equal(ask().received, [{ tools: [{ name: 'new' }] }]);
  changes$.next('prompts');
  assert.equal(ask().received, [{ tools: [{ name: 'new' }] }]);
  changes$.next('tools');
  assert.equal([ask().received, loads.length], [[], 3]);
});

test('marks an answer from the cache, and not one that is shared while it loads', async () => {
  const { serve, present } = caching();
  const source = new Subject<SourcedEvent>();
  const ask = () => firstValueFrom(serve('ada', () => source));
  const both = [ask(), ask()];
  source.next(answered({ tools: [] }));
  const flags = (await Promise.all(both)).map(({ isRemembered }) => isRemembered);
  assert.equal([...flags, (await ask()).isRemembered], [undefined, undefined, true]);
  present.nowMs = 30_000;
  const standIn = ask();
  source.error(noHealthyInstance('t', 'none'));
  assert.is((await standIn).isRemembered, true);
});

test('caches no error, and no list that is too large', () => {
  const { loads, ask, answer } = caching();
  ask();
  loads.at(-1)?.next({ ...answered({}), event: { kind: 'error', error: { code: -32601, message: 'no' } } });
  loads.at(-1)?.complete();
  ask();
  answer({ tools: [{ name: 'x'.repeat(1024 * 1024) }] });
  ask();
  assert.is(loads.length, 3);
});

test('the lists of all templates share one budget, and the least recently used list is dropped', () => {
  const shared: Cache = new FairLruMap(4 * 1024 + 200);
  const [a, b] = [caching(shared), caching(shared)];
  for (const { ask, answer } of [a, b]) {
    for (const who of ['ada', 'bo']) {
      ask(who);
      answer({ tools: [] });
    }
  }
  a.ask('ada');
  b.ask('cy');
  b.answer({ tools: [] });
  for (const who of ['ada', 'bo']) a.ask(who);
  assert.is(a.loads.length, 3, 'that of bo was forgotten');
  assert.is(b.loads.length, 3);
});

test('a caller that reads pages without end takes no lists from others', () => {
  const shared: Cache = new FairLruMap(10 * 1024);
  const { ask, answer, loads } = caching(shared);
  for (const who of ['bo', 'cy']) {
    ask(who);
    answer({ tools: [], cacheScope: 'private' });
  }
  for (let page = 0; page < 100; page += 1) {
    ask('ada', { method: 'tools/list', params: { cursor: `page ${page}` } });
    answer({ tools: [], nextCursor: `page ${page + 1}` });
  }
  for (const who of ['bo', 'cy']) ask(who);
  assert.is(loads.length, 102);
  ask('ada', { method: 'tools/list', params: { cursor: 'page 99' } });
  assert.is(loads.length, 102, 'the newest pages of the caller itself are kept');
  ask('ada', { method: 'tools/list', params: { cursor: 'page 0' } });
  assert.is(loads.length, 103);
});

test.run();
