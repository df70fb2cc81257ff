// The actors that an inspector of a gateway sees, those of sessions of clients, too, in one system.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import type { ActorInspection, InspectedActor } from '../../src/index.ts';
import type { EverythingHttp } from '../fixtures/everything/http-face.ts';
import { startEverything } from '../fixtures/everything-server.ts';
import { suite } from '../helpers/suite.ts';
import { KEY } from '../protocol/modern/modern-harness.ts';
import { modernRequest, openSession, postTo } from './mcp/post.ts';

const test = suite('inspection of a gateway');
/** A call of a modern client, during which the backend asks it something. */
const ASKING = modernRequest(
  'tools/call',
  { name: 'test_elicitation', arguments: { message: 'Your name?' } },
  { [KEY.capabilities]: { elicitation: {} } },
);
let gateway: Gateway;
let backend: EverythingHttp;
let actors: InspectedActor[];
/** The types of the events of the gateway. */
let seen: string[];
let roots: Set<string>;
let events: Set<unknown>;
test.before(async () => {
  backend = await startEverything({ name: 'one', era: 'legacy' });
});
test.after(() => backend.close());
test.before.each(async () => {
  actors = [];
  [roots, events] = [new Set(), new Set()];
});
test.after.each(() => gateway.close({ graceMs: 0 }));

const look = ({ type, actorRef, rootId, event }: ActorInspection): void => {
  roots.add(rootId);
  events.add(event?.type);
  if (type === '@xstate.actor' && actorRef !== undefined) actors.push(actorRef);
  throw new Error('a fault of the inspector');
};

test('shows an observer the sessions of clients, in one system, until they have ended; it may throw', async () => {
  gateway = await createGateway({ inspect: { next: look } });
  seen = [];
  gateway.events$.subscribe(({ type }) => seen.push(type));
  await gateway.register('t', { id: 'a', endpoint: backend.url }, { waitMs: 5_000 });
  for (let count = 0; count < 2; count += 1) await openSession(gateway, 't');
  await postTo(gateway, { template: 't', ...ASKING });
  const sessions = actorsOf('client session');
  assert.is(sessions.length, 2);
  const { status, value, context } = Object(sessions[0]?.getSnapshot());
  const { template, ownerId } = context.value;
  assert.equal([status, value, template, ownerId], ['active', 'serving', 't', 'anonymous']);
  assert.is(
    seen.filter((type) => type === 'upstream.opened').length,
    3,
    'no actors: events show conversations',
  );
  const ids = actors.map(({ sessionId }) => sessionId);
  assert.equal([new Set(ids).size, roots.size], [ids.length, 1], 'no two have the same id');
  await gateway.close({ graceMs: 0 });
  const states = sessions.map((actor) => Object(actor?.getSnapshot()).status);
  assert.equal(new Set(states), new Set(['done']));
  assert.is(seen.filter((type) => type === 'upstream.ended').length, 3);
});

test('shows a function the instances, with their state, and events; it may throw', async () => {
  gateway = await createGateway({ inspect: look });
  await gateway.register('t', { id: 'a', endpoint: backend.url }, { waitMs: 5_000 });
  const { connection, duty } = Object(actorsOf('instance.1')[0]?.getSnapshot()).value;
  assert.equal([typeof connection, duty, events.has('transport.opened')], ['object', 'serving', true]);
});

test('drops what the promise of an observer rejects with', async () => {
  const fatal: unknown[] = [];
  const note = (thrown: unknown) => fatal.push(thrown);
  process.on('unhandledRejection', note);
  gateway = await createGateway({
    inspect: async () => {
      throw new Error('a fault of the inspector');
    },
  });
  await gateway.register('t', { id: 'a', endpoint: backend.url }, { waitMs: 5_000 });
  process.off('unhandledRejection', note);
  assert.equal(fatal, []);
});

test.run();

/** The actors that were created with that id. */
function actorsOf(id: string): InspectedActor[] {
  return actors.filter((actor) => Object(actor).id === id);
}
