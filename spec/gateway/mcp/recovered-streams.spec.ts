// What clients get at the streams of a session of an earlier life of its node: errors for the requests of before, and messages that
// they may have missed.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import { WATCHED_URI } from '../../fixtures/everything/resources.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { parsed } from '../../protocol/recorded-reply.ts';
import { begin, openSession, send } from './post.ts';
import { ADA, call, post, StoredSessions, UNSAFE } from './stored-sessions.ts';

const test = suite('streams of an earlier life');
const stored = new StoredSessions(test);

test('a stream of before ends with an error for its request, and an answer to a question of before is dropped', async () => {
  const first = await stored.start();
  await stored.registered(first, { session_failover: 'always' });
  const session = await openSession(first, 't', ADA);
  const posted = begin(first, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: { id: 'call-7', ...call('log') },
  });
  await becomes(() => (posted.reply.opened?.events.length ?? 0) > 0, true);
  const eventId = posted.reply.opened?.events[0]?.id ?? '';
  const next = await stored.start();
  const get = (id: string) =>
    send(next, 'GET', { template: 't', headers: { ...session, 'last-event-id': id }, principal: ADA });
  const resumed = await get(eventId);
  const { id, error } = resumed.message;
  assert.equal([resumed.status, id, Object(error).data.delivered], [200, 'call-7', 'unknown']);
  assert.is((await get('1-abc.1')).status, 400, 'it names no request');
  const own = eventId.replace(/^1-/, '2-');
  assert.is((await get(own)).status, 400, 'a stream of the present life, which is not stored');
  const later = await send(next, 'GET', { template: 't', headers: session, principal: ADA });
  assert.equal([eventId.slice(0, 2), later.opened?.events[0]?.id?.slice(0, 6)], ['1-', '2-get-']);
  const answered = await send(next, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: { id: 123, result: {} },
  });
  assert.is(answered.status, 202);
});

test('an answer to a question of before answers no question of the present life', async () => {
  const first = await stored.start();
  await stored.registered(first, { session_failover: 'always' });
  const headers = await openSession(first, 't', ADA, { elicitation: {} });
  const asking = async (gateway: Gateway) => {
    const params = { name: 'ask', arguments: { method: 'elicitation/create' } };
    const message = { method: 'tools/call', params };
    const { reply } = begin(gateway, 'POST', { template: 't', headers, principal: ADA, message });
    const texts = () => (reply.opened?.events ?? []).map(({ data }) => String(data));
    await becomes(() => texts().some((text) => text.includes('elicitation/create')), true);
    const question = texts().find((text) => text.includes('elicitation/create')) ?? '';
    return { id: parsed(question).id, reply };
  };
  const before = await asking(first);
  const next = await stored.start();
  const present = await asking(next);
  const answer = async (id: JsonObject[string]) => {
    const message = { id, result: { action: 'decline' } };
    return (await send(next, 'POST', { template: 't', headers, principal: ADA, message })).status;
  };
  assert.equal([await answer(before.id), present.reply.opened?.isEnded], [202, false]);
  assert.is(await answer(present.id), 202);
  await becomes(() => present.reply.opened?.isEnded, true);
});

test('a stream of before ends with an error for its request, also when its session is over', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  await post(first, session, UNSAFE);
  const posted = begin(first, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: { id: 'call-7', ...call('log') },
  });
  await becomes(() => (posted.reply.opened?.events.length ?? 0) > 0, true);
  const lastEventId = posted.reply.opened?.events[0]?.id ?? '';
  const get = (gateway: Gateway, id: string | undefined) => {
    const headers = id === undefined ? session : { ...session, 'last-event-id': id };
    return send(gateway, 'GET', { template: 't', headers, principal: ADA });
  };
  const next = await stored.start();
  for (let n = 0; n < 2; n += 1) {
    const resumed = await get(next, lastEventId);
    const { id, error } = resumed.message;
    assert.equal([resumed.status, id, Object(error).data.delivered], [200, 'call-7', 'unknown']);
  }
  for (const other of [undefined, '1-abc.1']) assert.is((await get(next, other)).status, 404, other);
  await send(first, 'DELETE', { template: 't', headers: session, principal: ADA });
  assert.is((await get(first, lastEventId)).status, 404, 'a session of the present life');
});

test('the stream for messages continues from now, first with what the client may have missed', async () => {
  const everything = await startEverything({ era: 'legacy' });
  try {
    const first = await stored.start();
    await first.register('t', { id: 'a', endpoint: everything.url }, { waitMs: 20_000 });
    const session = await openSession(first, 't', ADA);
    stored.operations = [];
    const { answer } = await post(first, session, {
      method: 'resources/subscribe',
      params: { uri: WATCHED_URI },
    });
    assert.equal(answer.result, {});
    const before = await send(first, 'GET', { template: 't', headers: session, principal: ADA });
    const eventId = before.opened?.events[0]?.id ?? '';
    await becomes(() => stored.operations.includes('update'), true);
    const next = await stored.start();
    const headers = { ...session, 'last-event-id': eventId };
    const { opened } = await send(next, 'GET', { template: 't', headers, principal: ADA });
    const seen = () => opened?.events.flatMap(({ data }) => (data.length > 0 ? [parsed(data).method] : []));
    const missed = [
      'notifications/tools/list_changed',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
    ];
    assert.equal(seen(), missed);
    const subscribedAgain = [...missed, 'notifications/resources/updated'];
    await becomes(seen, subscribedAgain);
    await post(next, session, {
      method: 'tools/call',
      params: { name: 'test_trigger_resource_update', arguments: {} },
    });
    await becomes(seen, [...subscribedAgain, 'notifications/resources/updated']);
  } finally {
    await everything.close();
  }
});

test.run();
