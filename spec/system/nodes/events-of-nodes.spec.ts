// Events of the deployment at any of its nodes: two complete gateways on one PostgreSQL, which send each other their events while they are read.

import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import { readEvents, type ServerEvent } from '../../../web/src/sse.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import { becomes, untilStatus } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';

const { test, onPostgresql, before, opened, database } = await journey('events of several nodes', {
  timeoutMs: 120_000,
});
let a: McpNode;
let b: McpNode;
/** Of an administrator. */
let headers: Record<string, string>;

before(async () => {
  [a, b] = [await start('a'), await start('b')];
  headers = await keyOf({ permissions: ['admin'] });
  const backend = await startHttpServer();
  opened.push(() => backend.close());
  await register('shared', { id: 'shared-1', endpoint: backend.url });
  await register('program', {
    id: 'program-a',
    node: 'a',
    command: process.execPath,
    args: [stdioServerPath],
  });
  await untilStatus(200, () => b.admin('POST /mcp/shared/tools/call', { name: 'name' }), heardWithinMs);
  await becomes(async () => Object((await b.admin('GET /gateway/nodes')).body).nodes.length, 2);
});

onPostgresql('an event of one node is read at the other one, once, with the node', async () => {
  const [atA, atB] = [await follow(a), await follow(b)];
  const client = await LegacyClient.open(a.wire, '/mcp/shared', { headers });
  await a.admin('POST /gateway/instances/program/program-a/restart');
  const openings = (reading: Reading) => () => reading.fields('session.opened').map(({ node }) => node);
  await becomes(openings(atB), ['a']);
  await becomes(openings(atA), [undefined]);
  const healthy = () =>
    atB.fields('instance.healthy').some(({ server_id, node }) => server_id === 'program-a' && node === 'a');
  await becomes(healthy, true);
  const other = await LegacyClient.open(b.wire, '/mcp/shared', { headers });
  await becomes(openings(atA), [undefined, 'b']);
  await becomes(openings(atB), ['a', undefined]);
  assert.ok(atA.events.every(({ name }) => name !== 'missed'));
  for (const [node, { sessionId }] of [
    [a, client],
    [b, other],
  ] as const)
    await node.wire.exchange('/mcp/shared', {
      method: 'DELETE',
      headers: { ...headers, 'mcp-session-id': sessionId },
    });
  for (const reading of [atA, atB]) reading.stop();
});

onPostgresql('samples have the load of both nodes, at each of them', async () => {
  const readings = [
    await follow(a, { types: 'gateway.sampled' }),
    await follow(b, { types: 'gateway.sampled' }),
  ];
  const requestsIn = ({ fields }: Reading) =>
    fields('gateway.sampled').reduce((sum, { totals }) => sum + Number(objectOr(totals).requests), 0);
  for (const reading of readings) await becomes(() => reading.fields('gateway.sampled').length > 3, true);
  for (const { admin } of [a, a, b])
    assert.is((await admin('POST /mcp/program/tools/call', { name: 'pid' })).status, 200);
  for (const reading of readings) {
    await becomes(() => requestsIn(reading), 3);
    assert.equal(reading.fields('gateway.sampled').at(-1)?.partial, undefined);
    reading.stop();
  }
});

onPostgresql('a caller of one template reads its events of all nodes, and no others', async () => {
  const reader = await keyOf({ permissions: ['admin'], templates: ['program'] });
  const reading = await follow(b, { headers: reader });
  for (const template of ['shared', 'program'])
    await untilStatus(200, () => a.admin(`POST /mcp/${template}/tools/call`, { name: 'name' }));
  const nodes = () => reading.fields('call.finished').map(({ node }) => node);
  await becomes(() => nodes().includes('a'), true);
  assert.ok(reading.events.every(({ data }) => [undefined, 'program'].includes(JSON.parse(data).template)));
  reading.stop();
});

onPostgresql(
  'a reader that goes on at the other node gets what came meanwhile, and no event twice',
  async () => {
    const types = 'session';
    const atA = await follow(a, { types });
    const open = async (node: McpNode) => {
      const { sessionId } = await LegacyClient.open(node.wire, '/mcp/shared', { headers });
      return sessionFingerprint(sessionId);
    };
    const opened = ({ fields }: Reading) => fields('session.opened').map(({ session }) => session);
    const first = await open(a);
    await becomes(() => opened(atA).includes(first), true);
    const last = atA.events.at(-1);
    atA.stop();
    const meanwhile = [await open(a), await open(a)];
    const atB = await follow(b, { types, after: String(last?.id) });
    await becomes(() => opened(atB).filter((session) => meanwhile.includes(String(session))), meanwhile);
    assert.equal(JSON.parse(String(atB.events[0]?.data)), { type: 'missed' }, 'of b, there may be more');
    const ids = atB.events.flatMap(({ id = '' }) => (id === '' ? [] : [id]));
    assert.equal(ids, [...new Set(ids)]);
    atB.stop();
  },
);

onPostgresql('a node that is gone is reported once; its next life is read again', async () => {
  const port = await freePort();
  const c = await start('c', port);
  const isHeard = (wanted: number) =>
    becomes(async () => Object((await a.admin('GET /gateway/nodes')).body).nodes.length, wanted);
  await isHeard(3);
  const reading = await follow(a, { types: 'gateway' });
  const starts = () => reading.fields('gateway.started').filter(({ node }) => node === 'c').length;
  await becomes(starts, 1);
  c.program.signal('SIGKILL');
  await becomes(() => reading.events.filter(({ name }) => name === 'missed').length, 1, heardWithinMs);
  await start('c', port);
  await becomes(starts, 2);
  assert.is(reading.events.filter(({ name }) => name === 'missed').length, 1);
  reading.stop();
});
test.run();

interface Reading {
  readonly events: readonly ServerEvent[];
  fields(type: string): Json[];
  stop(): void;
}

interface FollowOptions {
  readonly headers?: Record<string, string>;
  readonly after?: string;
  readonly types?: string;
}

async function follow({ url }: McpNode, options: FollowOptions = {}): Promise<Reading> {
  const ending = new AbortController();
  opened.unshift(() => ending.abort());
  const { after, headers: own = headers, types } = options;
  const sent = { ...own, ...(after === undefined ? {} : { 'Last-Event-ID': after }) };
  const { status, body } = await fetch(`${url}/events${types === undefined ? '' : `?type=${types}`}`, {
    headers: sent,
    signal: ending.signal,
  });
  assert.is(status, 200);
  const events: ServerEvent[] = [];
  const read = async () => {
    for await (const event of readEvents(body as ReadableStream<Uint8Array>)) events.push(event);
  };
  read().catch(() => undefined); // it was aborted
  return {
    events,
    fields: (type) =>
      events.filter(({ name }) => name === type).map(({ data }) => objectOr(JSON.parse(data))),
    stop: () => ending.abort(),
  };
}

async function keyOf(rights: object): Promise<Record<string, string>> {
  const { body } = await a.admin('POST /auth/api-keys', { name: 'reader', ...rights });
  return { 'X-API-Key': String(objectOr(body).key) };
}

async function register(template: string, instance: object): Promise<void> {
  const { status, body } = await a.admin('POST /gateway/register?wait=10', {
    template_name: template,
    instance,
  });
  assert.is(status, 201, JSON.stringify(body));
}

async function start(id: string, port?: number): Promise<McpNode> {
  const node = await startNode(database, { id, ...(port === undefined ? {} : { port }) });
  opened.unshift(node.remove);
  return node;
}
