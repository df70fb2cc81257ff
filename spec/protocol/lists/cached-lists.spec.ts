// Which requests are answered from the cache, per capabilities and caller, and the notices when a list changes.

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

test('distinguishes owner, capabilities, page, instance and list', async () => {
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

test('serves a session the list of its own instance, also when the list is public', async () => {
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
  moved.peer = { ...inner.peer };
  inner.instead = of(answer('new'));
  assert.equal([await listed(other), await listed(one)], [[{ name: 'new' }], [{ name: 'old' }]]);
});

test('is found at the instance of its session', async () => {
  const { openSession } = setUp();
  const session = await openSession();
  assert.equal([session.at('one') === session, session.at('two')], [true, undefined]);
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

test('leaves no timer behind without a subscriber', () => {
  const { changes$, received, subscription } = noticing();
  changes$.next('tools');
  subscription.unsubscribe();
  mock.timers.tick(5_000);
  assert.equal([received, changes$.observed], [[], false]);
});

test.run();
