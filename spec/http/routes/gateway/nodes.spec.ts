// GET /gateway/nodes, and a node that is drained and resumed.

import * as assert from 'uvu/assert';
import type { Peer } from '../../../../src/cluster/channel/peer-client.ts';
import type { ForwardingPeers } from '../../../../src/cluster/channel/peers.ts';
import { nodeUnavailable } from '../../../../src/domain/errors/node-errors.ts';
import type { ForwardedAnswer, ForwardedRequest } from '../../../../src/domain/nodes/forwarding.ts';
import type { ShownNode } from '../../../../src/domain/nodes/nodes.ts';
import { objectOr } from '../../../fixtures/wire.ts';
import { LegacyClient } from '../../../helpers/clients/mcp-client.ts';
import { Wire } from '../../../helpers/clients/mcp-wire.ts';
import { startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the routes of nodes');
const OWN: ShownNode = {
  ...{ id: 'a', life: 'lifelife', address: undefined, version: '1', since: '2026-01-01T00:00:00.000Z' },
  ...{ programs: 0, calls: 0, isDraining: false, state: 'live', protocol: 1 },
};
/** How often the list of nodes was made, for which each instance of this node is counted. */
let lists = 0;
const nodes = () => {
  lists += 1;
  return NODES;
};
const NODES: ShownNode[] = [
  OWN,
  { ...OWN, id: 'gone', life: 'lifegone', version: '0', state: 'ended' as const },
  { ...OWN, id: 'odd', life: 'life0odd', state: 'foreign' as const },
  { ...OWN, id: 'next', life: 'lifenext', version: '3', protocol: 2, state: 'foreign' as const },
  {
    ...OWN,
    id: 'far',
    life: 'life0far',
    address: 'http://10.0.0.9:7',
    version: '2',
    state: 'silent' as const,
  },
];
/** How the node "far" answers. */
let answerOfFar: (request: ForwardedRequest, answer: ForwardedAnswer) => void;
const far: Peer = {
  node: 'far',
  forward: (request, answer) => {
    setImmediate(() => answerOfFar(request, answer));
    return { isSent: true, resume: () => {}, cancel: () => {} };
  },
};
/** Whether the life of this node goes on. */
let untilLifeKnown: ForwardingPeers['untilLifeKnown'];
const peers: ForwardingPeers = {
  untilLifeKnown: () => untilLifeKnown(),
  ofSession: () => undefined,
  noteHolder: () => undefined,
  ofLife: (life) => (life === 'life0far' ? far : undefined),
  ofInstances: () => undefined,
  ofOpeners: () => opener,
};
/** It alone has lost the database. */
let isCutOff = false;
let opener: Peer | undefined;
const app = appFor(
  test,
  () => startWithAccounts({ others: { nodes, peers }, gateway: { others: { isCutOff: () => isCutOff } } }),
  'each',
);
let wire: Wire;
test.before.each(async () => {
  untilLifeKnown = () => undefined;
  isCutOff = false;
  opener = undefined;
  await app.serve('demo', 'one');
  wire = new Wire(app.url);
});
test.after.each(() => wire.close());

const ready = async (query = '') => {
  const { outcome, body, headers } = await app.ask('GET', `/readyz${query}`);
  return [outcome, body.status, headers.get('retry-after')];
};
const change = (path: string) => app.as(app.admin, 'POST', `/gateway/nodes/${path}`);
const open = (path: string) => LegacyClient.open(wire, path, { headers: app.user });
const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

test('list this node alone where there is no other, with all fields', async () => {
  const { body } = await app.as(app.admin, 'GET', '/gateway/nodes');
  const { id, life, address, version, since } = OWN;
  assert.equal(Object(body.nodes)[0], {
    ...{ id, life, address: address ?? null, version, since, programs: 0, in_flight: 0, draining: false },
    state: 'live',
  });
});

test('are listed once for a page, not for each of its instances', async () => {
  for (let id = 0; id < 20; id += 1)
    await app.gateway.register('many', { id: `m${id}`, endpoint: 'http://127.0.0.1:1' });
  for (const path of ['/gateway/registry', '/servers?include_health=true', '/mcp/many/health']) {
    lists = 0;
    assert.is((await app.as(app.admin, 'GET', path)).status, 200);
    assert.ok(lists < 9, `${path}: ${lists} lists`);
  }
});

test('drain this node: not ready, no new sessions, everything else is served; resume takes it back', async () => {
  const [session, ofAll] = [await open('/mcp/demo'), await open('/mcp')];
  const events: string[] = [];
  app.gateway.events$.subscribe(({ type }) => type.startsWith('gateway.') && events.push(type));
  for (const _ of ['once', 'and again']) {
    const { status, body } = await change('a/drain');
    assert.equal([status, body.id, body.draining], [200, 'a', true]);
  }
  assert.equal(await ready(), ['503 NODE_UNAVAILABLE', 'draining', '5']);
  for (const path of ['/mcp/demo', '/mcp']) {
    const headers = { accept: 'application/json, text/event-stream' };
    const refused = await app.as(app.user, 'POST', path, { headers, body: INITIALIZE });
    assert.equal([refused.status, refused.headers.get('retry-after')], [503, '5'], path);
    assert.is(objectOr(objectOr(refused.body.error).data).error_code, 'NODE_UNAVAILABLE');
  }
  for (const client of [session, ofAll]) assert.is((await client.ask('tools/list')).status, 200);
  const call = await app.as(app.user, 'POST', '/mcp/demo/tools/call', { body: { name: 'name' } });
  assert.is(call.status, 200);
  for (const _ of ['once', 'and again']) {
    const { status, body } = await change('a/resume');
    assert.equal([status, body.draining], [200, false]);
  }
  assert.equal(await ready(), ['200', 'ready', null]);
  await open('/mcp/demo');
  await open('/mcp');
  assert.equal(events, ['gateway.draining', 'gateway.resumed']);
});

test('a node that is cut off from the database opens no sessions, and serves the rest', async () => {
  const [session, ofAll] = [await open('/mcp/demo'), await open('/mcp')];
  isCutOff = true;
  for (const path of ['/mcp/demo', '/mcp']) {
    const headers = { accept: 'application/json, text/event-stream' };
    const refused = await app.as(app.user, 'POST', path, { headers, body: INITIALIZE });
    assert.equal([refused.status, refused.headers.get('retry-after')], [503, '5'], path);
    assert.is(objectOr(objectOr(refused.body.error).data).error_code, 'NODE_UNAVAILABLE');
  }
  for (const client of [session, ofAll]) assert.is((await client.ask('tools/list')).status, 200);
  isCutOff = false;
  await open('/mcp/demo');
});

test('another node opens the sessions that this one cannot open, unless it refuses, too', async () => {
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} });
  const sent: unknown[] = [];
  let refuses = false;
  answerOfFar = ({ method, target, body }, answer) => {
    if (refuses) return answer.notHolder(0);
    sent.push([method, target, JSON.parse(String(body)).method]);
    answer.head(200, { 'content-type': 'application/json', 'mcp-session-id': 'of-far' });
    answer.data(Buffer.from(text));
    answer.end();
  };
  const initialize = async (path: string) => {
    const headers = { accept: 'application/json, text/event-stream' };
    const answer = await app.as(app.user, 'POST', path, { headers, body: INITIALIZE });
    return [answer.status, answer.headers.get('mcp-session-id')];
  };
  opener = far;
  isCutOff = true;
  for (const path of ['/mcp/demo', '/mcp']) assert.equal(await initialize(path), [200, 'of-far']);
  refuses = true;
  assert.equal(await initialize('/mcp/demo'), [503, null]);
  refuses = false;
  isCutOff = false;
  assert.is.not((await initialize('/mcp/demo'))[1], 'of-far');
  await app.gateway.deregister('demo', 'one');
  await app.gateway.register('demo', { id: 'away', endpoint: 'http://127.0.0.1:1/mcp' });
  assert.equal(await initialize('/mcp/demo'), [200, 'of-far'], 'no instance is healthy here');
  assert.equal(sent.length, 3);
});

test('a client whose session another node refuses to open, too, gets the refusal of its own node', async () => {
  const outcomes: unknown[] = [];
  opener = far;
  isCutOff = true;
  for (const refuse of [
    (answer: ForwardedAnswer) => answer.head(503, { 'retry-after': '77', 'content-length': '2' }),
    (answer: ForwardedAnswer) => answer.failed(nodeUnavailable('far', 'it does not answer', 'no')),
    (answer: ForwardedAnswer) => answer.notHolder(0),
  ]) {
    answerOfFar = (_request, answer) => refuse(answer);
    const headers = { accept: 'application/json, text/event-stream' };
    const refused = await app.as(app.user, 'POST', '/mcp/demo', { headers, body: INITIALIZE });
    const { data, message } = objectOr(refused.body.error);
    outcomes.push([refused.status, refused.headers.get('retry-after'), objectOr(data).error_code, message]);
  }
  const [first] = outcomes;
  assert.match(JSON.stringify(first), /^\[503,"5","NODE_UNAVAILABLE",/);
  assert.equal(outcomes, [first, first, first]);
});

test('a node that does not know whether its life goes on serves no MCP client', async () => {
  const session = await open('/mcp/demo');
  untilLifeKnown = () => Promise.reject(nodeUnavailable('a', 'it does not know', 'no'));
  const headers = { accept: 'application/json, text/event-stream' };
  const asked = { ...INITIALIZE, method: 'tools/list', params: {} };
  const ofSession = { ...headers, 'mcp-session-id': session.sessionId };
  for (const [body, sent] of [
    [INITIALIZE, headers],
    [asked, ofSession],
  ] as const) {
    const refused = await app.as(app.user, 'POST', '/mcp/demo', { headers: sent, body });
    assert.equal([refused.status, refused.headers.get('retry-after')], [503, '1']);
    assert.equal(objectOr(objectOr(refused.body.error).data).error_code, 'NODE_UNAVAILABLE');
  }
  const listened = await app.as(app.user, 'GET', '/mcp/demo', { headers: ofSession });
  assert.is(listened.status, 503);
  // At any other status than 200 `EventSource` gives up, and its client would never get an answer again.
  const again = { accept: 'text/event-stream', 'last-event-id': `${'x'.repeat(51)}.0` };
  const stream = await app.as(app.user, 'GET', '/mcp/demo/sse', { headers: again });
  assert.equal([stream.status, stream.text], [200, 'retry: 1000\n\n']);
  untilLifeKnown = () => Promise.resolve();
  assert.is((await session.ask('tools/list')).status, 200);
});

test('are recorded in the audit log', async () => {
  await change('a/drain');
  await change('b/resume');
  const { body } = await app.as(app.admin, 'GET', '/gateway/audit');
  const seen = Object(body).entries ?? [];
  const found = seen
    .filter(({ action }: { action: string }) => action.startsWith('POST /gateway/nodes/'))
    .map(({ action, subject, status }: Record<string, unknown>) => [action, subject, status]);
  assert.equal(found, [
    ['POST /gateway/nodes/:node_id/resume', '/gateway/nodes/b/resume', 404],
    ['POST /gateway/nodes/:node_id/drain', '/gateway/nodes/a/drain', 200],
  ]);
});

test('answer 404 for an unknown node, and 503 for one that has ended, is foreign, or cannot be reached', async () => {
  const unknown = await change('b/drain');
  assert.is(unknown.outcome, '404 NOT_FOUND');
  assert.is(unknown.body.detail, 'No node "b" is known. GET /gateway/nodes lists the nodes.');
  for (const [id, why] of [
    ['gone', 'it has ended'],
    ['odd', 'it has another secret'],
    ['next', 'it has another protocol'],
  ] as const) {
    const { outcome, body } = await change(`${id}/drain`);
    assert.is(outcome, '503 NODE_UNAVAILABLE');
    assert.match(String(body.detail), why);
  }
});

test('ask the other node, and answer 503 when it does not answer', async () => {
  const sent: unknown[] = [];
  const { life, version, since } = OWN;
  const record = {
    ...{ id: 'far', life, address: null, version, since, programs: 0, in_flight: 0, draining: true },
    state: 'live',
  };
  answerOfFar = ({ method, target, caller, body }, answer) => {
    sent.push([method, target, caller.principal.name, body.length]);
    answer.head(200, {});
    const text = JSON.stringify(record);
    answer.data(Buffer.from(text.slice(0, 20)));
    answer.data(Buffer.from(text.slice(20)));
    answer.end();
  };
  const { status, body } = await change('far/drain');
  assert.equal([status, body], [200, record]);
  assert.equal(sent, [['POST', '/gateway/nodes/far/drain', 'admin', 0]]);
  assert.equal(await ready(), ['200', 'ready', null]);
  answerOfFar = (_request, answer) => answer.failed(nodeUnavailable('far', 'it does not answer', 'unknown'));
  const failed = await change('far/drain');
  assert.is(failed.outcome, '503 NODE_UNAVAILABLE');
  assert.is(failed.body.detail, 'The node "far" cannot be asked: it does not answer.');
  answerOfFar = (_request, answer) => answer.notHolder(0);
  assert.is((await change('far/resume')).outcome, '503 NODE_UNAVAILABLE');
  answerOfFar = (_request, answer) => {
    answer.head(200, {});
    answer.data(Buffer.alloc(1_100_000));
    answer.end();
  };
  assert.is((await change('far/resume')).outcome, '503 NODE_UNAVAILABLE');
});

test('do not take back a stop', async () => {
  app.gateway.internals.readiness.announceClose();
  for (const command of ['drain', 'resume'])
    assert.is((await change(`a/${command}`)).outcome, '503 SHUTTING_DOWN');
  assert.equal(await ready(), ['503 SHUTTING_DOWN', 'shutting down', '5']);
});

test('name nodes with another secret or version, silent ones, and those whose settings are not known', async () => {
  const { body } = await app.ask('GET', '/readyz?verbose');
  const found = {
    warnings: [
      'the node "odd" has another secret than this one, and is not a member: set the same GATEWAY_SECRET_KEY',
      'the node "next" has version 3 and protocol 2, this one 1 and protocol 1: it is not a member until all have the same version',
      'the node "far" has version 2, this one 1',
      'the node "far" does not answer this one',
    ],
    partial: ['far'],
  };
  assert.equal(body, { status: 'ready', ...found });
  const { warnings, partial } = (await app.as(app.admin, 'GET', '/gateway/nodes')).body;
  assert.equal({ warnings, partial }, found);
  await change('a/drain');
  const draining = await app.ask('GET', '/readyz?verbose=1&probe=x');
  assert.equal([draining.outcome, draining.body.warnings], ['503 NODE_UNAVAILABLE', body.warnings]);
});

test('a caller with a list of templates or tools drains and resumes no node', async () => {
  const { accounts } = app.auth;
  for (const limit of [{ templates: ['demo'] }, { tools: ['demo/*'] }]) {
    const { key } = await accounts.createApiKey({
      name: 'limited',
      permissions: ['gateway:write'],
      ...limit,
    });
    for (const path of ['a/drain', 'a/resume', 'far/drain']) {
      const headers = { 'X-API-Key': key };
      const { status } = await fetch(`${app.url}/gateway/nodes/${path}`, { method: 'POST', headers });
      assert.is(status, 403, `${JSON.stringify(limit)} ${path}`);
    }
  }
  assert.is((await fetch(`${app.url}/readyz`)).status, 200);
});

test.run();
