// Which requests are answered from memory: lists without a conversation of one's own, per capabilities and caller.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../src/domain/exchange.ts';
import { CachedBackends } from '../../src/protocol/cached-backends.ts';
import { suite } from '../helpers/suite.ts';
import { ADA, ListingBackends, PROFILE } from './listing-backends.ts';

const test = suite('cached backends');

function staged() {
  const inner = new ListingBackends({ tools: [{ name: 'a' }] });
  const cached = new CachedBackends(inner, () => 0);
  const ask = (request: ExchangeRequest, options = {}) =>
    firstValueFrom(cached.exchange(request, { owner: ADA, profile: PROFILE, ...options }));
  return { inner, cached, ask };
}

test('asks for a list once', async () => {
  const { inner, ask } = staged();
  await ask({ method: 'tools/list' });
  await ask({ method: 'tools/list', params: { _meta: { traceparent: 'x' } } });
  assert.is(inner.asked.length, 1);
});

test('tells apart who asks, what he declared, the page, the instance and the list', async () => {
  const { inner, ask } = staged();
  await ask({ method: 'tools/list' });
  await ask({ method: 'tools/list' }, { owner: { id: 'user:bo' } });
  await ask({ method: 'tools/list' }, { profile: { ...PROFILE, capabilities: { roots: {} } } });
  await ask({ method: 'tools/list', params: { cursor: '' } });
  await ask({ method: 'tools/list' }, { instanceId: 'two' });
  await ask({ method: 'prompts/list' });
  assert.is(inner.asked.length, 6);
});

test('passes everything else on, and lists with parameters that it does not know', async () => {
  const { inner, ask } = staged();
  for (let turn = 0; turn < 2; turn += 1) {
    await ask({ method: 'tools/call', params: { name: 'a' } });
    await ask({ method: 'tools/list', params: { filter: 'x' } });
  }
  assert.is(inner.asked.length, 4);
});

test('asks again after a change, until it is closed', async () => {
  const { inner, cached, ask } = staged();
  await ask({ method: 'tools/list' });
  inner.listChanged$.next('tools');
  await ask({ method: 'tools/list' });
  assert.is(inner.asked.length, 2);
  cached.close();
  assert.is(inner.listChanged$.observed, false);
});

test('serves sessions that share a conversation, and lets the others ask', async () => {
  const { inner, cached } = staged();
  const session = await cached.openSession(ADA, PROFILE);
  assert.is(cached.session(session.id, ADA), session);
  const list = () => firstValueFrom(session.exchange({ method: 'tools/list' }));
  await list();
  await list();
  assert.is(inner.asked.length, 1);
  const [own] = inner.sessions;
  assert.ok(own);
  own.isShared = false;
  await list();
  await list();
  assert.is(inner.asked.length, 3);
  assert.is(session.isShared, false);
});

test('shows the session as it is', async () => {
  const { inner, cached } = staged();
  const session = await cached.openSession(ADA, PROFILE);
  const [own] = inner.sessions;
  assert.ok(own);
  assert.equal(
    [session.id, session.ownerId, session.profile, session.peer, session.logLevel],
    [own.id, 'user:ada', PROFILE, own.peer, undefined],
  );
  assert.is(session.messages$, own.messages$);
  session.hold()();
  session.notify('notifications/roots/list_changed', {});
  await session.close();
  assert.is(await firstValueFrom(session.ended$), 'closed');
  assert.is(cached.session('unknown', ADA), undefined);
});

test.run();
