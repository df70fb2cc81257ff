// Sessions at `/mcp`, and those of HTTP+SSE, continue in the next life of their node; recovered-sessions.spec.ts has those with one
// template. A life ends here as with `kill -9`: the next one opens the store while the one before is not asked any more.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import { rpcFailureOf } from '../../../src/protocol/rpc.ts';
import { until } from '../../helpers/eventually.ts';
import { livesFor } from '../../helpers/stores/lives.ts';
import { suite } from '../../helpers/suite.ts';
import { parsed, RecordedReply } from '../../protocol/recorded-reply.ts';
import { initialize, openSession, postTo, send } from './post.ts';

const test = suite('sessions with all templates of an earlier life');
const ADA: Principal = { ...ANONYMOUS, id: 'user:ada', templates: new Set(['t', 'u']) };
const lives = livesFor(test);

/** The next life of the node. */
function start(max?: number): Promise<Gateway> {
  return lives.start({ sessions: { recover: true, ...(max === undefined ? {} : { max }) } });
}

/** The first life, with two templates. */
async function startFirst(): Promise<Gateway> {
  const gateway = await start();
  for (const template of ['t', 'u'])
    await gateway.register(template, { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  return gateway;
}

const call = (name: string, args: JsonObject = {}) => ({
  method: 'tools/call',
  params: { name, arguments: args },
});
const LEVEL = { method: 'logging/setLevel', params: { level: 'info' } };
const post = (gateway: Gateway, headers: object, message: JsonObject, principal = ADA) =>
  postTo(gateway, { template: undefined, headers, message, principal });
const asked = (method: string) =>
  lives.server.requests.filter(({ message }) => message?.method === method).length;

/** What is written behind is written. */
async function written(): Promise<void> {
  const before = performance.now();
  while (performance.now() - before < 100) await turn();
}

test('the next request works under the same id, with the level of its client', async () => {
  const first = await startFirst();
  const session = await openSession(first, undefined, ADA);
  assert.match(session['mcp-session-id'], /^[\w-]{51}$/);
  await post(first, session, LEVEL);
  await post(first, session, call('t__echo', { text: 'x' }));
  await written();
  const next = await start();
  const before = asked('logging/setLevel');
  for (const name of ['t__echo', 'u__echo']) {
    const { status, answer } = await post(next, session, call(name, { text: 'y' }));
    assert.equal([status, answer.error], [200, undefined], name);
  }
  assert.is(asked('logging/setLevel') - before, 2, 'one in each session with a template');
  assert.equal(
    next.sessions().map(({ ownerId, bindings }) => [ownerId, bindings.length]),
    [['user:ada', 2]],
  );
});

test('a session that its client deleted is over in the next life', async () => {
  const first = await startFirst();
  const session = await openSession(first, undefined, ADA);
  const { status } = await send(first, 'DELETE', { template: undefined, headers: session, principal: ADA });
  assert.is(status, 200);
  assert.is((await post(await start(), session, LEVEL)).status, 404);
});

test('one whose owner may use other templates is over, and its row is deleted', async () => {
  const first = await startFirst();
  const session = await openSession(first, undefined, ADA);
  const next = await start();
  const other = { ...ADA, templates: new Set(['t']) };
  assert.is((await post(next, session, LEVEL, other)).status, 404);
  assert.is((await post(next, session, LEVEL)).status, 404);
  assert.is((await post(await start(), session, LEVEL)).status, 404);
});

test('another principal and the path of a template get 404, and take nothing from the owner', async () => {
  const first = await startFirst();
  const session = await openSession(first, undefined, ADA);
  const next = await start();
  const eve = { ...ADA, id: 'user:eve' };
  assert.is((await post(next, session, LEVEL, eve)).status, 404);
  assert.is((await post(next, session, LEVEL)).status, 200);
});

test('without room it is not continued, and no other one ends for it', async () => {
  const first = await startFirst();
  const [one, two] = [await openSession(first, undefined, ADA), await openSession(first, undefined, ADA)];
  const next = await start(1);
  assert.is((await post(next, one, LEVEL)).status, 200);
  assert.is((await post(next, two, LEVEL)).status, 503);
  await send(next, 'DELETE', { template: undefined, headers: one, principal: ADA });
  assert.is((await post(next, two, LEVEL)).status, 200);
});

test('the mark of a call that is not safe to repeat is written before the call leaves, and the session is not continued', async () => {
  const writes: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const { sessions } = lives.store;
  lives.change({
    sessions: {
      ...sessions,
      update: async (...rows) => {
        writes.push('update');
        await promise;
        return sessions.update(...rows);
      },
    },
  });
  const first = await startFirst();
  const session = await openSession(first, undefined, ADA);
  await post(first, session, call('t__echo', { text: 'x' }));
  const before = asked('tools/call');
  const answered = Promise.all([1, 2].map((id) => post(first, session, { ...call('t__count'), id })));
  await until(() => writes.length !== 0);
  assert.is(asked('tools/call'), before);
  resolve();
  await answered;
  await post(first, session, call('t__count'));
  assert.equal([asked('tools/call') - before, writes.length], [3, 1]);
  const next = await start();
  assert.is((await post(next, session, LEVEL)).status, 404);
  assert.is((await post(await start(), session, LEVEL)).status, 404, 'its row is deleted');
});

test('session_failover of the templates that it used decides', async () => {
  const first = await startFirst();
  await first.changeTemplate('t', { session_failover: 'never' });
  await first.changeTemplate('u', { session_failover: 'always' });
  const [used, unused] = [await openSession(first, undefined, ADA), await openSession(first, undefined, ADA)];
  await post(first, used, call('t__echo', { text: 'x' }));
  await post(first, unused, call('u__count'));
  await written();
  const next = await start();
  assert.equal(
    [(await post(next, used, LEVEL)).status, (await post(next, unused, LEVEL)).status],
    [404, 200],
  );
});

test('a stop keeps its row', async () => {
  const first = await startFirst();
  const session = await openSession(first, undefined, ADA);
  assert.is((await post(first, session, call('t__echo', { text: 'x' }))).status, 200);
  await first.close({ graceMs: 0 });
  const { status } = await post(await start(), session, call('t__echo', { text: 'x' }));
  assert.is(status, 200);
});

test('its stream says first what its client may have missed', async () => {
  const first = await startFirst();
  const session = await openSession(first, undefined, ADA);
  const headers = { ...session, accept: 'text/event-stream' };
  const { events } = await send(await start(), 'GET', { template: undefined, headers, principal: ADA });
  const lists = ['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`);
  assert.equal(events.methods, lists);
});

test('while the gateway stops, a session that its next life may continue gets 503, not 404', async () => {
  const first = await startFirst();
  const [all, own] = [await openSession(first, undefined, ADA), await openSession(first, 't', ADA)];
  await first.close({ graceMs: 0 });
  assert.is((await post(first, all, LEVEL)).status, 503);
  const message = { template: 't', headers: own, message: LEVEL, principal: ADA };
  assert.is((await postTo(first, message)).status, 503);
  assert.is((await post(await start(), all, LEVEL)).status, 200);
});

// --- HTTP+SSE ---------------------------------------------------------------------------------------------------------

for (const template of ['t', undefined]) {
  const path = template === undefined ? '/mcp' : '/mcp/{template}';
  test(`a client of HTTP+SSE at ${path} continues on another stream, with what it said before`, async () => {
    const tool = template === undefined ? 't__echo' : 'echo';
    const first = await startFirst();
    const before = await openStream(first, template);
    await before.post(initialize());
    await before.answered(1);
    await before.post({ ...LEVEL, id: 2 });
    await before.answered(2);
    await written();
    const next = await start();
    const early = before.post({ ...call(tool, { text: 'x' }), id: 3 }, next);
    const after = await openStream(next, template, before.lastEventId);
    assert.is(after.sessionId, before.sessionId);
    await after.noticed('notifications/tools/list_changed');
    assert.is(await early, 202);
    assert.ok((await after.answered(3)).result);
    assert.is(await after.post({ ...call(tool, { text: 'y' }), id: 4 }), 202);
    assert.ok((await after.answered(4)).result);
    after.reply.lose();
    await written();
    await rejects404(openStream(await start(), template, before.lastEventId));
  });
}

test('a stop ends the streams of HTTP+SSE, not their sessions', async () => {
  const first = await startFirst();
  const before = await openStream(first, 't');
  await before.post(initialize());
  await before.answered(1);
  await first.close({ graceMs: 0 });
  assert.is(before.reply.events.isEnded, true);
  const after = await openStream(await start(), 't', before.lastEventId);
  assert.is(await after.post({ method: 'ping', id: 2 }), 202);
  await after.answered(2);
  const eve = { ...ADA, id: 'user:eve' };
  await rejects404(openStream(await start(), 't', before.lastEventId, eve));
});

async function openStream({ mcp }: Gateway, template: string | undefined, eventId?: string, principal = ADA) {
  const reply = new RecordedReply();
  const common = {
    ...{ pathName: template, principal, requireRoom: () => {}, consumeRateLimit: () => {} },
    report: () => ({ ended: () => {} }),
  };
  const named = eventId === undefined ? {} : { 'last-event-id': eventId };
  const headers = { accept: 'text/event-stream', ...named };
  const sse = { isOnly: true, messagesPath: '/messages' };
  await mcp.handle({ ...common, method: 'GET', headers, body: Buffer.alloc(0), sse }, reply);
  const [endpoint] = reply.events.events;
  const sessionId = String(endpoint?.data).split('sessionId=')[1] ?? '';
  const later = () => reply.events.events.slice(1);
  // An event without data has only an id, for the next stream.
  const messages = () => later().flatMap(({ data }) => (String(data) === '' ? [] : [parsed(data)]));
  return {
    ...{ reply, sessionId, lastEventId: endpoint?.id ?? '' },
    /** The status of one POST. */
    async post(message: JsonObject, to: Pick<Gateway, 'mcp'> = { mcp }) {
      const posted = new RecordedReply();
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }));
      const types = { 'content-type': 'application/json' };
      const request = { ...common, headers: types, body, sseSessionId: sessionId, method: 'POST' } as const;
      await to.mcp.handle(request, posted);
      return posted.status;
    },
    /** A notification with this method has arrived. */
    async noticed(method: string): Promise<void> {
      await until(() => messages().some((message) => message.method === method));
    },
    /** The answer to that request. */
    async answered(id: number): Promise<JsonObject> {
      for (;;) {
        const found = messages().find((message) => message.id === id && message.method === undefined);
        if (found !== undefined) return found;
        await turn();
      }
    },
  };
}

async function rejects404(opening: Promise<unknown>): Promise<void> {
  const thrown: unknown = await opening.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.is(rpcFailureOf(thrown).status, 404);
}

test.run();
