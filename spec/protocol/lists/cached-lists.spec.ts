// Which requests are answered from memory, per capabilities and caller, and what is told when a list changes.

import { mock } from 'node:test';
import { firstValueFrom, of, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ServerMessage } from '../../../src/domain/client.ts';
import { noHealthyInstance } from '../../../src/domain/error-catalogue.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import type { ListField } from '../../../src/domain/mcp.ts';
import { CachedLists, listNotices } from '../../../src/protocol/lists/cached-lists.ts';
import type { McpSession, SessionlessOptions } from '../../../src/protocol/ports.ts';
import { suite } from '../../helpers/suite.ts';
import { ADA, answered, ListingBackends, PROFILE } from '../listing-backends.ts';

const test = suite('cached lists');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

function setUp() {
  const inner = new ListingBackends({ tools: [{ name: 'a' }] });
  const { listChanged$ } = inner;
  const cached = new CachedLists({ listChanged$, hasPeers: () => inner.peers().length > 0, now: () => 0 });
  const ask = (request: ExchangeRequest, more: Partial<SessionlessOptions> = {}) => {
    const options = { owner: ADA, profile: PROFILE, ...more };
    return firstValueFrom(cached.exchange(request, options, () => inner.exchange(request, options)));
  };
  const openSession = async () => cached.session(await inner.openSession(ADA, PROFILE));
  return { inner, cached, ask, openSession };
}

test('asks for a list once', async () => {
  const { inner, ask } = setUp();
  await ask({ method: 'tools/list' });
  await ask({ method: 'tools/list', params: { _meta: { traceparent: 'x' } } });
  assert.is(inner.asked.length, 1);
});

test('tells apart who asks, what he declared, the page, the instance and the list', async () => {
  const { inner, ask } = setUp();
  await ask({ method: 'tools/list' });
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
  const { inner, cached, openSession } = setUp();
  const session = await openSession();
  const [own] = inner.sessions;
  assert.ok(own);
  assert.is(cached.session(own), session);
  const list = () => firstValueFrom(session.exchange({ method: 'tools/list' }));
  await list();
  await list();
  assert.is(inner.asked.length, 1);
  own.isShared = false;
  await list();
  await list();
  assert.is(inner.asked.length, 3);
  assert.is(session.isShared, false);
});

test('lets nothing stand in when nobody is, or ever was, there', async () => {
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

test('tells sessions when the template lists something else, as far as they were told that they would hear', async () => {
  const { inner, openSession } = setUp();
  inner.peer = { ...inner.peer, capabilities: { tools: { listChanged: true }, prompts: {} } };
  const session = await openSession();
  const heard: string[] = [];
  let isOver = false;
  session.messages$.subscribe({
    next: ({ method }) => heard.push(method),
    complete: () => {
      isOver = true;
    },
  });
  const said: ServerMessage = {
    kind: 'notification',
    method: 'notifications/tools/list_changed',
    params: {},
  };
  inner.sessions[0]?.messages$.next(said);
  for (const list of ['tools', 'prompts', 'tools'] as const) inner.listChanged$.next(list);
  mock.timers.tick(5_000);
  assert.equal(heard, ['notifications/tools/list_changed'], 'once, whoever says it');
  inner.sessions[0]?.messages$.complete();
  assert.is(isOver, true);
});

test('shows a session what its own instance lists, also when that is for everyone', async () => {
  const { inner, openSession } = setUp();
  const listed = async (session: McpSession) => {
    const { event } = await firstValueFrom(session.exchange({ method: 'tools/list' }));
    return event.kind === 'result' ? Object(event.result.value).tools : event;
  };
  const [one, same, other] = [await openSession(), await openSession(), await openSession()];
  const answer = (name: string) => answered({ tools: [{ name }], ttlMs: 60_000, cacheScope: 'public' });
  inner.instead = of(answer('old'));
  assert.equal([await listed(one), await listed(same)], [[{ name: 'old' }], [{ name: 'old' }]]);
  assert.is(inner.asked.length, 1);
  const [, , moved] = inner.sessions;
  assert.ok(moved);
  Object.defineProperty(moved, 'peer', { value: { ...inner.peer } });
  inner.instead = of(answer('new'));
  assert.equal([await listed(other), await listed(one)], [[{ name: 'new' }], [{ name: 'old' }]]);
});

test('shows the session as it is', async () => {
  const { inner, openSession } = setUp();
  const session = await openSession();
  const [own] = inner.sessions;
  assert.ok(own);
  const found = [session.id, session.ownerId, session.profile, session.peer, session.logLevel];
  assert.equal(found, [own.id, 'user:ada', PROFILE, own.peer, undefined]);
  session.hold()();
  session.notify('notifications/roots/list_changed', {});
  await session.close();
  assert.is(await firstValueFrom(session.ended$), 'closed');
});

test('is where its session is', async () => {
  const { openSession } = setUp();
  const session = await openSession();
  assert.equal([session.at('one') === session, session.at('two')], [true, undefined]);
});

function noticing() {
  const changes$ = new Subject<ListField>();
  const heard: string[] = [];
  const subscription = listNotices(changes$).subscribe(({ method }) => heard.push(method));
  return { changes$, heard, subscription };
}

test('tells no more than one a second of a list that changes all the time, and the last change', () => {
  const { changes$, heard } = noticing();
  for (let atMs = 0; atMs < 10_000; atMs += 10) {
    changes$.next('tools');
    mock.timers.tick(10);
  }
  assert.ok(heard.length >= 9 && heard.length <= 11, `${heard.length} notices`);
  const before = heard.length;
  changes$.next('tools');
  mock.timers.tick(1_050);
  assert.ok(heard.length > before);
});

test('leaves no timer behind when nobody listens', () => {
  const { changes$, heard, subscription } = noticing();
  changes$.next('tools');
  subscription.unsubscribe();
  mock.timers.tick(5_000);
  assert.equal([heard, changes$.observed], [[], false]);
});

test.run();
