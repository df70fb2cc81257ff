// The session of a client with all templates is written in each of its states, and made again from that in another gateway: nothing
// of the old one remains there.

import { firstValueFrom, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../../../src/domain/calls/exchange.ts';
import { templateNotFound } from '../../../../src/domain/errors/registry-errors.ts';
import { sessionLost } from '../../../../src/domain/errors/session-errors.ts';
import type { Owner, ServerMessage } from '../../../../src/domain/mcp/client.ts';
import type { McpSession } from '../../../../src/domain/sessions/mcp-session.ts';
import { readSession, writeSession } from '../../../../src/domain/sessions/session-value.ts';
import { AggregateSession } from '../../../../src/protocol/aggregate/sessions/aggregate-session.ts';
import { suite } from '../../../helpers/suite.ts';
import { settled, simulateTime } from '../../../helpers/time/simulated-time.ts';
import { ADA, ListingBackends, NO_SESSIONS, PROFILE } from '../../listing-backends.ts';
import { aggregateOf } from '../aggregate-of.ts';

const test = suite('value of a session with all templates');
simulateTime(test);

const URI = 'a:1';
const SET_LEVEL = { method: 'logging/setLevel', params: { level: 'debug' } };
const SUBSCRIBE = { method: 'resources/subscribe', params: { uri: URI } };
const callOf = (name: string) => ({ method: 'tools/call', params: { name } });

/** A gateway with the templates `a`, with logging and resources, and `b`. */
class Gateway {
  readonly a = new ListingBackends({ tools: [{ name: 'x' }], resources: [{ uri: URI }] });
  readonly b = new ListingBackends({ tools: [{ name: 'y' }] });
  readonly templates = ['a', 'b'];
  readonly table = new Map<string, McpSession>();
  readonly #of = (template: string) => {
    if (template === 'a' || template === 'b') return this[template];
    throw templateNotFound(template);
  };
  readonly backends = aggregateOf({
    templates: () => this.templates,
    backendsOf: this.#of,
    sessions: {
      ...NO_SESSIONS,
      add: (session) => this.table.set(session.id, session),
      findAny: (id) => this.table.get(id),
      used: () => {},
      remove: ({ id }) => this.table.delete(id),
    },
  }).aggregated;

  constructor() {
    this.a.handshake = { ...this.a.handshake, capabilities: { tools: {}, resources: {}, logging: {} } };
  }

  async open(owner: Owner = ADA): Promise<AggregateSession> {
    const session = await this.backends.openSession(owner, PROFILE);
    if (session instanceof AggregateSession) return session;
    throw new Error('a session of another kind was opened');
  }

  /** The session as this gateway makes it again. */
  again(session: AggregateSession, owner: Owner = ADA): AggregateSession {
    const text = writeSession(session.value);
    assert.is(text.includes(session.id), false, 'the id is a credential');
    const value = readSession(text);
    if (value.kind !== 'all') throw new Error('another kind was written');
    return this.backends.recoverFrom(session.id, value, owner, 2);
  }
}

async function ask(session: AggregateSession, request: ExchangeRequest): Promise<unknown> {
  const { event } = await firstValueFrom(session.exchange(request));
  return event.kind === 'result' ? event.result.value : event;
}

/** Brings a session into a state. */
const STATES: Readonly<Record<string, (session: AggregateSession, from: Gateway) => Promise<unknown>>> = {
  fresh: async () => undefined,
  'with a level': (session) => ask(session, SET_LEVEL),
  'with a level that both sessions know': async (session) => {
    for (const name of ['a__x', 'b__y']) await ask(session, callOf(name));
    await ask(session, SET_LEVEL);
  },
  subscribed: (session) => ask(session, SUBSCRIBE),
  'with all of it, one session lost': async (session, { a }) => {
    for (const request of [callOf('b__y'), SET_LEVEL, SUBSCRIBE]) await ask(session, request);
    await a.sessions[0]?.close();
  },
};

for (const [state, enter] of Object.entries(STATES)) {
  test(`goes on elsewhere when it was written in the state "${state}"`, async () => {
    const [before, after] = [new Gateway(), new Gateway()];
    const session = await before.open();
    await enter(session, before);
    after.a.handshake = { ...after.a.handshake, capabilities: { tools: {}, logging: {} } };
    const recovered = after.again(session);
    assert.equal(after.a.sessions.length, 0, 'nothing is opened before its first use');
    const facts = ({ id, value }: AggregateSession) => ({ id, value });
    assert.equal(facts(recovered), facts(session));
    assert.equal(recovered.handshake.capabilities, session.handshake.capabilities, 'as its client was told');
    assert.is(after.backends.session(session.id, ADA), recovered);
    assert.equal(await ask(recovered, callOf('a__x')), { called: { name: 'x' } });
    assert.equal(await ask(recovered, callOf('b__y')), { called: { name: 'y' } });
    assert.equal([after.a.sessions.length, after.b.sessions.length], [1, 1]);
    const waitsForItsTurn = ({ a }: Gateway) => a.openings.map(({ part }) => part?.isRecovered);
    assert.equal([waitsForItsTurn(before).includes(true), waitsForItsTurn(after)], [false, [true]]);
    const repeated = after.a.asked.map(({ method }) => method).filter((method) => !method.endsWith('/list'));
    const level = session.value.logLevel === undefined ? [] : ['logging/setLevel'];
    const uris = session.value.uris.a === undefined ? [] : ['resources/subscribe'];
    assert.equal(repeated, [...level, ...uris, 'tools/call']);
  });
}

test('a client that listens gets updates of what it has subscribed to, as soon as it listens', async () => {
  const [before, after] = [new Gateway(), new Gateway()];
  const session = await before.open();
  await ask(session, SUBSCRIBE);
  const recovered = after.again(session);
  const received: ServerMessage[] = [];
  const listening = recovered.messages$.subscribe((message) => received.push(message));
  await settled();
  assert.equal(
    after.a.asked.map(({ method }) => method),
    ['resources/subscribe'],
  );
  const update = {
    kind: 'notification',
    method: 'notifications/resources/updated',
    params: { uri: URI },
  } as const;
  assert.equal(received.splice(0), [update], 'it may have missed one');
  after.a.sessions[0]?.messages.next(update);
  assert.equal(received, [update]);
  listening.unsubscribe();
});

test('a client that has unsubscribed is not subscribed again', async () => {
  const [before, after] = [new Gateway(), new Gateway()];
  const session = await before.open();
  await ask(session, SUBSCRIBE);
  await ask(session, { ...SUBSCRIBE, method: 'resources/unsubscribe' });
  assert.equal(session.value.uris, {});
  await ask(after.again(session), callOf('a__x'));
  assert.is(
    after.a.asked.find(({ method }) => method === 'resources/subscribe'),
    undefined,
  );
});

test('what a backend refuses is not part of the session', async () => {
  const gateway = new Gateway();
  const session = await gateway.open();
  await ask(session, callOf('a__x'));
  gateway.a.instead = throwError(() => sessionLost('it broke'));
  await ask(session, SUBSCRIBE).catch(() => undefined);
  assert.equal(session.value.uris, {});
});

test('a session whose owner may use other templates is over; one with the same, in any order, goes on', async () => {
  const [before, after] = [new Gateway(), new Gateway()];
  const both = { id: 'user:ada', templates: new Set(['a', 'b']) };
  const session = await before.open(both);
  assert.equal(session.value.templates, ['a', 'b']);
  for (const owner of [ADA, { ...both, templates: new Set(['a']) }, { ...both, id: 'user:eve' }])
    assert.throws(() => after.again(session, owner), isLost);
  const recovered = after.again(session, { ...both, templates: new Set(['b', 'a']) });
  assert.is(after.backends.session(session.id, both), recovered);
  assert.is(after.backends.session(session.id, ADA), undefined);
  assert.is(recovered.value.endReason, 'rightsChanged');
});

test('a session that is over, or open, is not made again', async () => {
  const [before, after] = [new Gateway(), new Gateway()];
  const session = await before.open();
  const recovered = after.again(session);
  assert.throws(() => after.again(session), isLost);
  await recovered.close('byClient');
  assert.throws(() => after.again(recovered), /its client ended it/);
  assert.is(after.table.size, 0);
});

function isLost({ code }: { readonly code?: string }): boolean {
  return code === 'SESSION_NOT_FOUND';
}

test.run();
