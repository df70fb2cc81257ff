// Streams of HTTP+SSE: how many may wait for their client, and how a session continues on another one. The rest of this transport is in
// http/mcp/sse.spec.ts, over a real port.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { ANONYMOUS, NO_PRINCIPAL } from '../../../src/domain/accounts/principal.ts';
import { shuttingDown } from '../../../src/domain/errors/gateway-errors.ts';
import { sessionLimit } from '../../../src/domain/errors/session-errors.ts';
import { definedFields, type JsonObject } from '../../../src/domain/json/json.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import { LegacySse } from '../../../src/protocol/legacy/legacy-sse.ts';
import { RESUME_MS } from '../../../src/protocol/legacy/sse-connection.ts';
import { SsePosition, sessionOfEvent } from '../../../src/protocol/legacy/sse-position.ts';
import { endOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulatedClock } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';
import { parsed, RecordedReply } from '../recorded-reply.ts';
import { legacyHarness } from './legacy-harness.ts';

const test = suite('streams of HTTP+SSE');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
test.after.each(() => mock.timers.reset());

function setUp() {
  const { backends, endpoint } = legacyHarness();
  const sse = new LegacySse(endpoint, {
    onFault: () => {},
    newSessionId: () => newSessionId('life-one'),
    scheduler: untimedScheduler(),
    clock: simulatedClock,
  });
  return { backends, endpoint, sse };
}

const REQUEST = {
  body: Buffer.alloc(0),
  pathName: 't',
  requestId: 'r',
  requireRoom: () => {},
  consumeRateLimit: () => {},
  report: () => ({ ended: () => {} }),
};
const GET = { ...REQUEST, method: 'GET', headers: { accept: 'text/event-stream' } } as const;
const ofCaller = (id: string) => ({ ...NO_PRINCIPAL, id });

test('at most 1,000 have no session, 250 of one owner unless it is anonymous; each for a minute', async () => {
  const { backends, sse } = setUp();
  const open = async (id: string): Promise<RecordedReply> => {
    const reply = new RecordedReply();
    const request = { ...GET, principal: ofCaller(id) };
    sse.open({ isOnly: true, messagesPath: '/m' }, { request, reply, backends });
    return reply;
  };
  const [first] = await Promise.all(Array.from({ length: 250 }, () => open('ann')));
  assert.is(await endOf(open('ann')), 'SESSION_LIMIT');
  for (let count = 250; count < 1_000; count += 1) await open(ANONYMOUS.id);
  for (const id of ['bob', ANONYMOUS.id]) assert.is(await endOf(open(id)), 'SESSION_LIMIT');
  first?.lose();
  assert.is(await endOf(open('ann')), 'done');
  mock.timers.tick(60_000);
  assert.equal([first?.events.isEnded, await endOf(open('bob'))], [true, 'done']);
});

/** A client of a session that an earlier life of the gateway opened. */
function setUpEarlier(id = newSessionId('earlier1')) {
  const { backends, endpoint, sse } = setUp();
  const session = backends.add(id, 'ann');
  /** What each message waits for before its requests are begun. */
  const limit: { until?: Promise<void> } = {};
  return {
    ...{ backends, endpoint, sse, session, limit },
    async open(
      principal = 'ann',
      eventId = `${id}.0`,
      { pathName = 't', isForwarded = false, reply = new RecordedReply() } = {},
    ) {
      const headers = { ...GET.headers, 'last-event-id': eventId };
      const request = { ...GET, pathName, headers, principal: ofCaller(principal), isForwarded };
      const opening = async () =>
        sse.open({ isOnly: true, messagesPath: '/m' }, { request, reply, backends });
      return { reply, end: await endOf(opening()) };
    },
    post(message: object, principal = 'ann', version?: string) {
      const reply = new RecordedReply();
      const headers = {
        'content-type': 'application/json',
        ...definedFields({ 'mcp-protocol-version': version }),
      };
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
      const from = { headers, body, sseSessionId: id, principal: ofCaller(principal) };
      const consumeRateLimit = () => limit.until;
      const request = { ...REQUEST, ...from, consumeRateLimit, method: 'POST' } as const;
      const done = endOf((async () => sse.post(id, { request, reply, backends }))());
      return { reply, done };
    },
  };
}

const UNKNOWN = 'RpcFailure: Session not found';
const PING = { id: 1, method: 'ping' };

test('a client that names the last event of its stream continues the session on another one', async () => {
  const { open, post, session, sse } = setUpEarlier();
  const { reply } = await open();
  const endpoint = {
    name: 'endpoint',
    data: `/m?sessionId=${session.id}`,
    id: `${session.id}.0`,
    retryMs: 1_000,
  };
  assert.equal(reply.events.events, [endpoint]);
  assert.is(await post(PING).done, 'done');
  assert.equal(lastOn(reply), 1);
  session.messages.next({ kind: 'notification', method: 'notifications/message', params: {} });
  assert.equal(lastOn(reply), 'notifications/message');
  await sse.close();
  assert.equal([reply.events.isEnded, session.isClosed], [true, false], 'it continues after the restart');
});

test('no revision in a header changes that: such a client does not poll, and a newer one is not refused', async () => {
  for (const version of ['2025-11-25', 'of-tomorrow']) {
    const { open, post, session } = setUpEarlier();
    const { reply } = await open();
    assert.is(await post({ ...PING, method: 'tools/list' }, 'ann', version).done, 'done');
    session.last.interrupt(700);
    session.last.result({ tools: [] });
    const last = reply.events.events.findLast(({ name }) => name !== 'position');
    assert.equal(parsed(last?.data ?? '').result, { tools: [] });
  }
});

test('the end of that stream ends the session', async () => {
  const { open, session } = setUpEarlier();
  (await open()).reply.lose();
  assert.is(session.isClosed, true);
});

test('the session of another caller, one that is over, and one at another path are unknown', async () => {
  const { open, session } = setUpEarlier();
  assert.is((await open('eve')).end, UNKNOWN);
  assert.is((await open('ann', `${newSessionId('earlier1')}.0`)).end, UNKNOWN);
  assert.is((await open()).end, 'done');
  assert.is((await open('ann', `${session.id}.0`, { pathName: 'other' })).end, UNKNOWN);
  await session.close();
  await settled();
  assert.is((await open()).end, UNKNOWN);
});

test('a message waits for the stream of its session, at most 5 s', async () => {
  const { open, post } = setUpEarlier();
  const early = post(PING);
  assert.is(await post(PING, 'eve').done, UNKNOWN);
  await settled();
  assert.is(early.reply.isAnswered, false);
  const { reply } = await open();
  assert.is(await early.done, 'done');
  assert.equal([early.reply.status, lastOn(reply)], [202, 1]);
  reply.lose();
  assert.is(await post(PING).done, UNKNOWN);

  const late = setUpEarlier().post(PING);
  await settled();
  mock.timers.tick(RESUME_MS);
  assert.is(await late.done, UNKNOWN);

  const stopped = setUpEarlier();
  const waiting = stopped.post(PING);
  await settled();
  await stopped.sse.close();
  assert.is(await waiting.done, 'SHUTTING_DOWN');
});

test('a message to a gateway that stops is refused, not answered on the stream: another node may take it', async () => {
  const { endpoint, open, post } = setUpEarlier();
  const { reply } = await open();
  await endpoint.dismiss();
  const { done, reply: posted } = post(PING);
  assert.is(await done, 'RpcFailure: The gateway is shutting down.');
  assert.equal(
    [
      posted.isAnswered,
      reply.events.events.flatMap(({ name, data }) => (name === 'position' ? [] : data)).length,
    ],
    [false, 1],
  );
});

test('a client that cannot continue yet may come again', async () => {
  const { open, sse, backends } = setUpEarlier();
  backends.recoverSession = () => Promise.reject(shuttingDown());
  backends.sessions.clear();
  // Answered with an empty stream: see `refuse` in src/http.
  assert.is((await open()).end, 'SHUTTING_DOWN');
  await sse.close();
  assert.is((await open()).end, 'SHUTTING_DOWN');
});

test('a client whose lost stream is still open here continues on the new one', async () => {
  const { open, post, session } = setUpEarlier();
  const first = (await open()).reply;
  const second = (await open()).reply;
  assert.is(first.events.isEnded, true);
  first.lose();
  await post(PING).done;
  assert.equal([session.isClosed, lastOn(second)], [false, 1]);
});

/** As clients in browsers and Node send it. */
const FETCH = { 'sec-fetch-mode': 'cors' };
const CALL = { id: 'a', method: 'tools/call', params: { name: 'x' } };
const named = (...ids: unknown[]) => Buffer.from(JSON.stringify(ids)).toString('base64url');

test('a client whose stream led through a node that has ended continues on another one within 5 s', async () => {
  const { open, post, session } = setUpEarlier();
  const through = { isForwarded: true };
  const first = (await open('ann', `${session.id}.0`, through)).reply;
  await post(CALL).done;
  await post({ ...CALL, id: 'b' }).done;
  first.lose();
  session.exchanges[0]?.result({ of: 'a' });
  const early = post(PING); // it waits for the stream
  mock.timers.tick(RESUME_MS - 1);
  await settled();
  assert.is(session.isClosed, false);
  const { reply } = await open('ann', `${session.id}.0.${named('a', 'b')}`, through);
  assert.is(await early.done, 'done');
  const answered = () =>
    reply.events.events.flatMap(({ data }) => (String(data).startsWith('{') ? [parsed(data).id] : []));
  assert.equal(answered(), ['a', 1], 'the answer that no stream took, and the ping; one call is under way');
  session.exchanges[1]?.result({ of: 'b' });
  assert.equal(answered(), ['a', 1, 'b']);
  reply.lose();
  mock.timers.tick(RESUME_MS);
  await settled();
  assert.is(session.isClosed, true);
});

test('so does one whose stream is lost while its session is recovered', async () => {
  const { open, post, session } = setUpEarlier();
  const through = { isForwarded: true };
  const reply = new RecordedReply();
  reply.lose();
  await open('ann', `${session.id}.0`, { ...through, reply });
  await settled();
  assert.is(session.isClosed, false);
  const second = (await open('ann', `${session.id}.0`, through)).reply;
  await post(PING).done;
  assert.equal([session.isClosed, lastOn(second)], [false, 1]);
});

/** The answers on a stream: id, and `delivered` of an error. */
const answersOn = ({ events }: RecordedReply) =>
  events.events.flatMap(({ data }) => {
    const { id, error } = String(data).startsWith('{') ? parsed(data) : {};
    return id === undefined ? [] : [error === undefined ? id : `${id} ${Object(error).data?.delivered}`];
  });

test('answers that went with the node of the stream come on the next one', async () => {
  const { open, post, session } = setUpEarlier();
  const at = (event: string) => open('ann', `${session.id}.${event}`, { isForwarded: true });
  const first = (await at('5')).reply;
  for (const id of ['a', 'b', 'c']) await post({ ...CALL, id }).done;
  session.exchanges[0]?.result({ of: 'a' });
  assert.is(first.events.events.at(-1)?.id, `${session.id}.6.${named('b', 'c')}`);
  session.exchanges[1]?.result({ of: 'b' });
  // The client had the answer to `a` only; that the stream is lost is not noticed yet.
  const second = (await at(`6.${named('b', 'c')}`)).reply;
  assert.equal(answersOn(second), ['b'], '`c` is under way');
  const [endpoint, answer] = second.events.events;
  assert.is(endpoint?.id, `${session.id}.6.${named('c', 'b')}`, 'if the next event is lost, too');
  assert.is(answer?.id, `${session.id}.7.${named('c')}`);
  await post({ ...CALL, id: 'd' }).done;
  second.lose();
  session.exchanges[2]?.result({ of: 'c' });
  // It had nothing of `d`, which it sent before it noticed the loss.
  const third = (await at(`7.${named('c')}`)).reply;
  assert.equal(answersOn(third), ['c']);
  session.exchanges[3]?.result({ of: 'd' });
  assert.equal(answersOn(third), ['c', 'd']);
  third.lose();
  assert.equal(answersOn((await at(third.events.events.at(-1)?.id?.slice(52) ?? '')).reply), []);
});

test('so do messages outside of calls, and answers to a client that had no event since its calls', async () => {
  const { open, post, session } = setUpEarlier();
  const through = () => open('ann', `${session.id}.0`, { isForwarded: true });
  const { reply } = await through();
  await post(CALL).done;
  await post(PING).done;
  session.messages.next({ kind: 'notification', method: 'notifications/message', params: {} });
  reply.lose();
  session.exchanges[0]?.result({});
  const [, ...messages] = (await through()).reply.events.events;
  assert.equal(
    messages.map(({ data }) => parsed(data).method ?? parsed(data).id),
    [1, 'notifications/message', 'a'],
  );
});

test('answers that are not kept any more are errors: large ones, all but the last 64, those of 40 s ago, those of direct streams', async () => {
  const { open, post, session } = setUpEarlier();
  const at = (number: number, isForwarded = true) => open('ann', `${session.id}.${number}`, { isForwarded });
  const call = async (id: string | number, result: JsonObject = {}) => {
    await post({ ...CALL, id }).done;
    session.exchanges.at(-1)?.result(result);
  };
  await at(0);
  await call('large', { text: 'x'.repeat(1024 * 1024) });
  await call('small');
  assert.equal(answersOn((await at(0)).reply), ['small', 'large unknown']);
  for (let count = 1; count <= 65; count += 1) await call(count);
  assert.equal(answersOn((await at(3)).reply).slice(0, 2), [2, 3], '64 are known');
  await call('old');
  for (let periods = 0; periods < 2; periods += 1) mock.timers.tick(20_000);
  assert.equal(answersOn((await at(68)).reply), ['old unknown']);
  await at(70, false);
  await call('direct');
  assert.equal(answersOn((await at(70)).reply), ['direct unknown']);
});

test('other messages that are not kept any more are replaced by a notice: all but the last 64', async () => {
  for (const [said, told] of [
    [64, 0],
    [65, 1],
  ] as const) {
    const { open, session } = setUpEarlier();
    session.uris = ['news://all'];
    const through = () => open('ann', `${session.id}.0`, { isForwarded: true });
    const { reply } = await through();
    reply.lose();
    for (let count = 1; count <= said; count += 1)
      session.messages.next({ kind: 'notification', method: 'said', params: {} });
    const [, ...messages] = (await through()).reply.events.events;
    const methods = messages.map(({ data }) => parsed(data).method);
    assert.equal(
      methods.slice(64),
      Array.from({ length: told }, () => 'notifications/resources/updated'),
    );
  }
});

test('a message that is not begun when the stream ends is refused: no stream would have the answer', async () => {
  for (const refusal of [undefined, sessionLimit({ most: 1, isShare: false })]) {
    const { open, post, limit } = setUpEarlier();
    const { reply } = await open();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    limit.until = promise;
    const posted = post(CALL);
    await settled();
    reply.lose();
    if (refusal === undefined) resolve();
    else reject(refusal);
    assert.not.equal(await posted.done, 'done');
    assert.is(posted.reply.isAnswered, false);
  }
});

test('a client learns with each request and answer which of its requests have none, if it may read that', async () => {
  for (const headers of [FETCH, {}]) {
    const { backends, sse } = setUp();
    const reply = new RecordedReply();
    const request = {
      ...GET,
      headers: { ...GET.headers, ...headers, 'last-event-id': '' },
      principal: ofCaller('ann'),
    };
    sse.open({ isOnly: true, messagesPath: '/m' }, { request, reply, backends });
    const opened = reply.events.events[0]?.id?.slice(0, 51) ?? '';
    const session = backends.add(opened, 'ann');
    const post = (message: object) => {
      const headers = { 'content-type': 'application/json' };
      const from = { headers, sseSessionId: opened, principal: ofCaller('ann') };
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
      const request = { ...REQUEST, ...from, body, method: 'POST' } as const;
      return sse.post(opened, { request, reply: new RecordedReply(), backends });
    };
    assert.ok(session);
    // It begins nothing: its id is that of the next one.
    assert.not.equal(
      await endOf((async () => post({ id: 1, method: 'initialize', params: 'none' }))()),
      'done',
    );
    await post({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    });
    await settled();
    void post(CALL);
    void post({ ...CALL, id: 7 });
    await settled();
    const positions = reply.events.events.filter(({ name }) => name === 'position');
    assert.equal(
      positions.map((event) => [event.data, event.id]),
      headers === FETCH
        ? [
            ['', `${opened}.0.${named(1)}`],
            ['', `${opened}.0`],
            ['', `${opened}.0.${named(1)}`],
            ['', `${opened}.1.${named('a')}`],
            ['', `${opened}.1.${named('a', 7)}`],
          ]
        : [],
    );
    await sse.close();
  }
});

test('calls that were under way in an earlier life are answered on the next stream, delivered or not', async () => {
  const { open, session, post } = setUpEarlier();
  const { reply } = await open('ann', `${session.id}.0.${named('a', 7, null, {})}`);
  const [endpoint, ...lost] = reply.events.events;
  const { name, id } = endpoint ?? {};
  assert.equal(
    [name, id],
    ['endpoint', `${session.id}.0.${named('a', 7)}`],
    'if the next event is lost, too',
  );
  assert.equal(
    lost.map(({ data, id }) => [parsed(data).id, id]),
    [
      ['a', `${session.id}.1.${named(7)}`],
      [7, `${session.id}.2`],
    ],
  );
  for (const { data } of lost) assert.match(JSON.stringify(parsed(data)), /"delivered":"unknown"/);
  await post(PING).done;
  assert.equal(
    reply.events.events.slice(3).map(({ name, id }) => [name, id]),
    [
      ['position', `${session.id}.2.${named(1)}`],
      [undefined, `${session.id}.3`],
    ],
  );
});

test('the longest position is one with which a client continues its stream', async () => {
  for (const letter of ['x', '\u6f22']) {
    const position = new SsePosition(newSessionId('life-one'), {});
    for (const end of ['a', 'b', 'c']) position.begin({ ...CALL, id: letter.repeat(200) + end });
    assert.ok(sessionOfEvent({ 'last-event-id': position.eventId }));
  }
});

test('an answer that a client has is followed by no error, however often the client continues after it', () => {
  const position = new SsePosition(newSessionId('life-one'), {});
  position.begin({ ...CALL, id: 'a' });
  position.next();
  const headers = { 'last-event-id': position.eventId }; // of the event with the answer, on a stream that does not end with it
  position.answer(['a']);
  const lost = [1, 2].map(() => position.resume(headers, () => true).lost);
  assert.equal(lost, [[], []]);
});

test('a refused message with the id of a running request does not end that request', () => {
  const position = new SsePosition(newSessionId('life-one'), {});
  position.begin({ ...CALL, id: 'a' });
  const running = position.eventId;
  position.end(position.begin({ ...CALL, id: 'a' }));
  assert.is(position.eventId, running);
});

test('so are those of a session that does not continue; the next stream gets 404', async () => {
  const { open, backends, session } = setUpEarlier();
  backends.sessions.clear();
  const lost = await open('ann', `${session.id}.0.${named('a')}`);
  assert.equal([lost.end, lost.reply.events.isEnded, lastOn(lost.reply)], ['done', true, 'a']);
  const [{ id } = { id: '' }] = lost.reply.events.events;
  assert.is((await open('ann', id)).end, UNKNOWN);
  const own = await open('ann', `${newSessionId('life-one')}.0.${named('a')}`);
  assert.equal(
    [own.end, lastOn(own.reply)],
    ['done', 'a'],
    'it ended in this life: the client came too late',
  );
});

/** The method of the last message on a stream; of an answer the id. */
function lastOn(reply: RecordedReply): unknown {
  const { method, id } = parsed(reply.events.events.at(-1)?.data ?? '');
  return method ?? id;
}

test.run();
