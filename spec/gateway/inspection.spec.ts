// What an embedding program sees that inspects a gateway: the sessions of clients and their parked calls, too, as actors of one
// system. Processes of single clients are in spec/system/mcp/own-processes-others.spec.ts.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import type { InspectedActor } from '../../src/index.ts';
import type { EverythingHttp } from '../fixtures/everything/http-face.ts';
import { startEverything } from '../fixtures/everything-server.ts';
import { suite } from '../helpers/suite.ts';
import { postTo } from './mcp-post.ts';

const test = suite('inspection of a gateway');
let gateway: Gateway;
let backend: EverythingHttp;
let actors: InspectedActor[];
let roots: Set<string>;
test.before(async () => {
  backend = await startEverything({ name: 'one', era: 'legacy' });
});
test.after(() => backend.close());
test.before.each(async () => {
  actors = [];
  roots = new Set();
  gateway = await createGateway({
    inspect: ({ type, actorRef, rootId }) => {
      roots.add(rootId);
      if (type === '@xstate.actor' && actorRef !== undefined) actors.push(actorRef);
    },
  });
  await gateway.register('t', { id: 'a', endpoint: backend.url }, { waitMs: 5_000 });
});
test.after.each(() => gateway.close({ graceMs: 0 }));

test('shows the session of a client, with its state, until it has ended', async () => {
  const session = await openSession();
  const [actor, ...others] = actorsOf('client session');
  const { status, value, context } = Object(actor?.getSnapshot());
  assert.equal([status, value, context.template, context.ownerId], ['active', 'serving', 't', 'anonymous']);
  assert.equal(others, []);
  await gateway.close({ graceMs: 0 });
  assert.equal([session !== '', statusOf(actor)], [true, 'done']);
});

test('shows a call that waits for its client, until it is over', async () => {
  const { answer } = await postTo(gateway, { template: 't', ...ASKING });
  assert.is(Object(answer.result).resultType, 'input_required');
  const [actor] = actorsOf('parked call');
  const { status, value, context } = Object(actor?.getSnapshot());
  assert.equal([status, value, context.ownerId], ['active', 'parked', 'anonymous']);
  await gateway.close({ graceMs: 0 });
  assert.is(statusOf(actor), 'done');
});

test('shows all of them in one system: no two have the same id', async () => {
  await openSession();
  await openSession();
  await postTo(gateway, { template: 't', ...ASKING });
  assert.is(actorsOf('client session').length, 2);
  const ids = actors.map(({ sessionId }) => sessionId);
  assert.equal([new Set(ids).size, roots.size], [ids.length, 1]);
});

test.run();

async function openSession(): Promise<string> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'spec', version: '1' },
  };
  const { headers } = await postTo(gateway, { template: 't', message: { method: 'initialize', params } });
  return headers[headers.indexOf('Mcp-Session-Id') + 1] ?? '';
}

/** Those that were created with that id. */
function actorsOf(id: string): InspectedActor[] {
  return actors.filter((actor) => Object(actor).id === id);
}

function statusOf(actor: InspectedActor | undefined): unknown {
  return Object(actor?.getSnapshot()).status;
}

/** A call of a modern client, during which the backend asks it something. */
const ASKING = {
  headers: {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'test_elicitation',
  },
  message: {
    method: 'tools/call',
    params: {
      name: 'test_elicitation',
      arguments: { message: 'Your name?' },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
        'io.modelcontextprotocol/clientInfo': { name: 'spec', version: '1' },
      },
    },
  },
};
