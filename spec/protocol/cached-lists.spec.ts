// Lists in memory: which requests are answered from the cache, freshness, owners, stale answers, the budget that all caches share, and
// the notices when a list changes.

import { mock } from 'node:test';
import { firstValueFrom, type Observable, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ServerMessage } from '../../src/domain/client.ts';
import { noHealthyInstance } from '../../src/domain/error-catalogue.ts';
import type { Answer, ExchangeRequest } from '../../src/domain/exchange.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { ListField } from '../../src/domain/mcp.ts';
import { CachedLists, ListMemory, listNotices } from '../../src/protocol/cached-lists.ts';
import type { SessionlessOptions } from '../../src/protocol/ports.ts';
import { suite } from '../helpers/suite.ts';
import { ADA, answered, ListingBackends, PROFILE } from './listing-backends.ts';

const test = suite('cached lists');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

function setUp() {
  const inner = new ListingBackends({ tools: [{ name: 'a' }] });
  const { listChanged$ } = inner;
  const cached = new CachedLists({
    listChanged$,
    hasPeers: () => inner.peers().length > 0,
    isThere: () => true,
    now: () => 0,
    memory: new ListMemory(),
  });
  const ask = (request: ExchangeRequest, more: Partial<SessionlessOptions> = {}) => {
    const options = { owner: ADA, profile: PROFILE, ...more };
    return firstValueFrom(cached.exchange(request, options, () => inner.exchange(request, options)));
  };
  const openSession = async () => {
    const session = await inner.openSession(ADA, PROFILE);
    const exchange = (request: ExchangeRequest) =>
      cached.exchangeIn(session, request, () => session.exchange(request));
    return { exchange, messages$: cached.withNotices(session.messages$, inner.peer) };
  };
  return { inner, cached, ask, openSession };
}

test('asks for a list once per owner, capabilities, page and instance', async () => {
  const { inner, ask } = setUp();
  await ask({ method: 'tools/list' });
  await ask({ method: 'tools/list', params: { _meta: { traceparent: 'x' } } });
  assert.is(inner.asked.length, 1);
  await ask({ method: 'tools/list' }, { owner: { id: 'user:bo' } });
  await ask({ method: 'tools/list' }, { profile: { ...PROFILE, capabilities: { roots: {} } } });
  await ask({ method: 'tools/list', params: { cursor: '' } });
  await ask({ method: 'tools/list' }, { instanceId: 'two' });
  await ask({ method: 'prompts/list' });
  assert.is(inner.asked.length, 6);
});

test('passes everything else on, and lists with parameters that it does not know', async () => {
  const { inner, ask } = setUp();
  for (let turn = 0; turn < 2; turn += 1) {
    await ask({ method: 'tools/call', params: { name: 'a' } });
    await ask({ method: 'tools/list', params: { filter: 'x' } });
  }
  assert.is(inner.asked.length, 4);
});

test('asks again after a change, until it is closed', async () => {
  const { inner, cached, ask } = setUp();
  await ask({ method: 'tools/list' });
  inner.listChanged$.next('tools');
  await ask({ method: 'tools/list' });
  assert.is(inner.asked.length, 2);
  cached.close();
  assert.is(inner.listChanged$.observed, false);
});

test('serves sessions that share a conversation, and lets the others ask', async () => {
  const { inner, openSession } = setUp();
  const session = await openSession();
  const [own] = inner.sessions;
  assert.ok(own);
  const list = () => firstValueFrom(session.exchange({ method: 'tools/list' }));
  await list();
  await list();
  assert.is(inner.asked.length, 1);
  own.isShared = false;
  await list();
  await list();
  assert.is(inner.asked.length, 3);
});

test('serves no stale list when no instance is or was connected', async () => {
  const { inner, ask } = setUp();
  await ask({ method: 'tools/list' });
  inner.instead = throwError(() => noHealthyInstance('t', 'none'));
  inner.listChanged$.next('tools');
  assert.is((await ask({ method: 'tools/list' })).isRemembered, true);
  inner.peers = () => [];
  const code = await ask({ method: 'tools/list' }).then(
    () => 'answered',
    (error: { code: string }) => error.code,
  );
  assert.is(code, 'NO_HEALTHY_INSTANCE');
});

test('notifies sessions of changed lists as far as the handshake announced it', async () => {
  const { inner, openSession } = setUp();
  inner.peer = { ...inner.peer, capabilities: { tools: { listChanged: true }, prompts: {} } };
  const session = await openSession();
  const received: string[] = [];
  let isOver = false;
  session.messages$.subscribe({
    next: ({ method }) => received.push(method),
    complete: () => {
      isOver = true;
    },
  });
  const said: ServerMessage = {
    kind: 'notification',
    method: 'notifications/tools/list_changed',
    params: {},
  };
  inner.sessions[0]?.messages.next(said);
  for (const list of ['tools', 'prompts', 'tools'] as const) inner.listChanged$.next(list);
  mock.timers.tick(5_000);
  assert.equal(received, ['notifications/tools/list_changed'], 'once, whoever says it');
  inner.sessions[0]?.messages.complete();
  assert.is(isOver, true);
});

function noticing() {
  const changes$ = new Subject<ListField>();
  const received: string[] = [];
  const subscription = listNotices(changes$).subscribe(({ method }) => received.push(method));
  return { changes$, received, subscription };
}

test('sends at most one notice a second for a list that changes all the time, and one for the last change', () => {
  const { changes$, received } = noticing();
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

/** A cache whose loads the spec answers by hand. */
function caching(memory = new ListMemory()) {
  const clock = { nowMs: 0 };
  const loads: Subject<Answer>[] = [];
  const gone = new Set<string>();
  const changes$ = new Subject<ListField>();
  const cache = new CachedLists({
    listChanged$: changes$,
    hasPeers: () => true,
    isThere: (id) => !gone.has(id),
    now: () => clock.nowMs,
    memory,
  });
  const load = (): Observable<Answer> => {
    const source = new Subject<Answer>();
    loads.push(source);
    return source;
  };
  const serve = (who: string, loading = load) =>
    cache.exchange({ method: 'tools/list' }, { owner: { id: who }, profile: PROFILE }, loading);
  const ask = (who = 'ada') => {
    const received: unknown[] = [];
    const subscription = serve(who).subscribe({
      next: ({ event }) => received.push(event.kind === 'result' ? event.result.value : event.kind),
      error: (thrown: Error) => received.push(thrown.message),
    });
    return { received, subscription };
  };
  const answer = (result: JsonObject) => {
    loads.at(-1)?.next(answered(result));
    loads.at(-1)?.complete();
  };
  return { clock, loads, changes$, serve, ask, answer, gone };
}

test('a shared load continues when one subscriber leaves, and stops when all have left', () => {
  const { loads, ask } = caching();
  const [first, second] = [ask(), ask()];
  first.subscription.unsubscribe();
  assert.is(loads[0]?.observed, true);
  second.subscription.unsubscribe();
  assert.is(loads[0]?.observed, false);
  ask();
  assert.is(loads.length, 2);
});

test('stores a list for half a minute, or for its own `ttlMs`', () => {
  const { clock, loads, ask, answer } = caching();
  ask();
  answer({ tools: [] });
  clock.nowMs = 29_999;
  assert.equal(ask().received, [{ tools: [] }]);
  clock.nowMs = 30_000;
  ask();
  assert.is(loads.length, 2);
  answer({ tools: [], ttlMs: 1_000 });
  clock.nowMs = 30_999;
  ask();
  assert.is(loads.length, 2);
  clock.nowMs = 31_000;
  ask();
  assert.is(loads.length, 3);
  answer({ tools: [], ttlMs: 0 });
  ask();
  assert.is(loads.length, 4);
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
  assert.equal(
    [early.received, late.received],
    [[{ tools: [{ name: 'old' }] }], [{ tools: [{ name: 'new' }] }]],
  );
  assert.equal(ask().received, [{ tools: [{ name: 'new' }] }]);
  changes$.next('prompts');
  assert.equal(ask().received, [{ tools: [{ name: 'new' }] }]);
});

test('serves a stale list for ten minutes when no instance answers', () => {
  const { clock, loads, ask, answer } = caching();
  ask();
  answer({ tools: [{ name: 'a' }] });
  clock.nowMs = 599_999;
  const served = ask();
  loads.at(-1)?.error(noHealthyInstance('t', 'none'));
  assert.equal(served.received, [{ tools: [{ name: 'a' }] }]);
  clock.nowMs = 600_000;
  const refused = ask();
  loads.at(-1)?.error(new Error('gone'));
  assert.equal(refused.received, ['gone']);
});

test('marks an answer from the cache, and not one that is shared while it loads', async () => {
  const { serve, clock } = caching();
  const source = new Subject<Answer>();
  const ask = () => firstValueFrom(serve('ada', () => source));
  const both = [ask(), ask()];
  source.next(answered({ tools: [] }));
  const flags = (await Promise.all(both)).map(({ isRemembered }) => isRemembered);
  assert.equal([...flags, (await ask()).isRemembered], [undefined, undefined, true]);
  clock.nowMs = 30_000;
  const standIn = ask();
  source.error(noHealthyInstance('t', 'none'));
  assert.is((await standIn).isRemembered, true);
});

test('keeps no error and no list that is too large', () => {
  const { loads, ask, answer } = caching();
  ask();
  loads.at(-1)?.next({ ...answered({}), event: { kind: 'error', error: { code: -32601, message: 'no' } } });
  loads.at(-1)?.complete();
  ask();
  answer({ tools: [{ name: 'x'.repeat(1024 * 1024) }] });
  ask();
  assert.is(loads.length, 3);
});

test('lists of all templates share the room, and the one used least recently goes', () => {
  const memory = new ListMemory(4 * 1024 + 200);
  const [a, b] = [caching(memory), caching(memory)];
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

test.run();
