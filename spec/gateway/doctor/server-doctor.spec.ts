// The doctor of servers: each fault that it names, at servers that have it, and nothing at one without faults.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TASKS_PER_TURN } from '../../../src/domain/time/task-scheduler.ts';
import { FAULTS, remedyOf } from '../../../src/gateway/doctor/faults.ts';
import { examineTemplate } from '../../../src/gateway/doctor/server-doctor.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { suite } from '../../helpers/suite.ts';
import { turnsOf, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('the doctor of servers');
const options = { clock: systemClock, scheduler: untimedScheduler(), deniedNetworks: [] };
const schema = { type: 'object' };

const codesOf = (findings: readonly { code: string; name?: string }[]) =>
  findings.map(({ code, name }) => [code, name].filter(Boolean).join(' '));

/** The findings at a function that lists these tools, by pages if there is a cursor. */
async function atTools(tools: readonly unknown[], nextCursor?: string): Promise<string[]> {
  await using gateway = await createGateway();
  const handler = ({ method }: { method: string }) => {
    if (method === 'tools/list') return { tools, ...(nextCursor === undefined ? {} : { nextCursor }) };
    throw { code: -32601, message: 'Method not found' };
  };
  await gateway.register('t', { id: 'one', handler }, { waitMs: 5_000 });
  const [examined] = await examineTemplate(gateway, 't', options);
  assert.ok(
    examined?.findings.every(({ code }) => remedyOf(code) !== ''),
    'each code is in the table',
  );
  return codesOf(examined?.findings ?? []);
}

test('nothing is found at a server without faults', async () => {
  const tools = [{ name: 'a', title: 'A', inputSchema: schema, outputSchema: schema, annotations: {} }];
  assert.equal(await atTools(tools), []);
});

test('faults of definitions are named with the item', async () => {
  const tools = [
    { name: 'get weather', inputSchema: schema },
    { name: 'twice', inputSchema: schema },
    { name: 'twice', inputSchema: schema },
    { name: 'union', inputSchema: { type: 'object', anyOf: [{ required: ['a'] }] } },
    { name: 'null', description: null, inputSchema: schema },
    { name: 'bare', inputSchema: null },
    { name: 'boolean', inputSchema: { type: 'object', properties: { a: true } } },
    { name: 'large', description: 'x'.repeat(140_000), inputSchema: schema },
    { name: 'lost', inputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/none' } } } },
    {
      name: 'out',
      inputSchema: schema,
      outputSchema: { type: 'object', properties: { a: { pattern: '(' } } },
    },
    { inputSchema: schema },
  ];
  assert.equal(await atTools(tools), [
    ...['unsafe-name get weather', 'duplicate-name twice', 'root-union union', 'optional-field null'],
    ...['input-schema bare', 'input-schema boolean', 'large-tool large', 'dangling-ref lost'],
    ...['output-schema out', 'no-name number 11'],
  ]);
});

test('many of one fault are counted, and a list without an end is named', async () => {
  const tools = Array.from({ length: 30 }, (_, index) => ({ name: `tool ${index}`, inputSchema: schema }));
  assert.equal((await atTools(tools)).length, 21);
  assert.equal(await atTools([{ name: 'a', inputSchema: schema }], 'again'), ['cursor-repeats']);
});

test('an instance that is deregistered meanwhile is left out, and the others are examined', async () => {
  await using gateway = await createGateway();
  let whenAsked = () => {};
  const handlerOf = (id: string) => ({
    id,
    handler: ({ method }: { method: string }) => {
      if (method === 'prompts/list' && id === 'one') whenAsked();
      return { tools: [], prompts: [] };
    },
  });
  for (const id of ['one', 'two']) await gateway.register('t', handlerOf(id), { waitMs: 5_000 });
  whenAsked = () => void gateway.deregister('t', 'one');
  const examined = await examineTemplate(gateway, 't', options);
  assert.equal(
    examined.map(({ instance }) => instance),
    ['two'],
  );
});

test('the items of a long list are examined in several turns', async () => {
  await using gateway = await createGateway();
  await gateway.register('t', { id: 'one', handler: () => ({ tools: [] }) }, { waitMs: 5_000 });
  const tools = Array.from({ length: 10_000 }, (_, index) => ({ name: `t${index}`, inputSchema: schema }));
  const { servers, instance } = gateway;
  const listing = {
    servers: servers.bind(gateway),
    instance: instance.bind(gateway),
    list: async (_: string, field: string) => ({ items: field === 'tools' ? tools : [] }),
  };
  const turns = await turnsOf(() => examineTemplate(listing as never, 't', options));
  assert.ok(turns >= 10_000 / TASKS_PER_TURN, `${turns} turns`);
});

test('all lists of a server have one time', async () => {
  await using gateway = await createGateway();
  await gateway.register('t', { id: 'one', handler: () => ({ tools: [] }) }, { waitMs: 5_000 });
  const { servers, instance } = gateway;
  const allowedMs: number[] = [];
  let atMs = 0;
  const listing = {
    servers: servers.bind(gateway),
    instance: instance.bind(gateway),
    list: async (_template: string, _field: string, { timeoutMs }: { timeoutMs: number }) => {
      allowedMs.push(timeoutMs);
      atMs += 50_000;
      return { items: [] };
    },
  };
  const clock = { ...systemClock, now: () => atMs };
  await examineTemplate(listing as never, 't', { ...options, clock });
  assert.equal(allowedMs, [30_000, 30_000, 20_000, 1_000]);
});

type Answer = (message: JsonObject, request: IncomingMessage, response: ServerResponse) => void;

/** The findings at an HTTP server whose answers these are. */
async function atServer(answer: Answer): Promise<string[]> {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    answer(text === '' ? {} : JSON.parse(text), request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  await using gateway = await createGateway();
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  await gateway.register('t', { id: 'one', endpoint, transport: 'http' });
  for (let left = 100; left > 0; left -= 1) {
    const { snapshot } = gateway.instance('t', 'one');
    if (snapshot.healthy || snapshot.consecutiveFailures > 0) break;
    await new Promise((resolve) => setImmediate(resolve));
    await fetch(endpoint, { method: 'DELETE', redirect: 'manual' });
  }
  const [examined] = await examineTemplate(gateway, 't', options);
  server.closeAllConnections();
  server.close();
  return codesOf(examined?.findings ?? []).filter((code) => code !== 'no-era');
}

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 's', version: '1' },
  },
  ping: {},
  'tools/list': { tools: [{ name: 'a', inputSchema: schema }] },
};

function answering(change: { id?: (id: unknown) => unknown; type?: string; wrap?: boolean } = {}): Answer {
  const { id: idOf = (id) => id, type = 'application/json', wrap = false } = change;
  return ({ id, method }, _, response) => {
    if (id === undefined) return void response.writeHead(202).end();
    const result = RESULTS[String(method)];
    const body =
      result === undefined
        ? { jsonrpc: '2.0', id: idOf(id), error: { code: -32601, message: 'Method not found' } }
        : { jsonrpc: '2.0', id: idOf(id), result };
    response.writeHead(200, { 'content-type': type }).end(JSON.stringify(wrap ? [body] : body));
  };
}

test('faults of an endpoint are seen as plain HTTP has them', async () => {
  assert.equal(await atServer(answering()), []);
  assert.equal(await atServer(answering({ id: String })), ['id-as-text']);
  assert.equal(await atServer(answering({ id: () => 0.5 })), ['wrong-id']);
  assert.equal(await atServer(answering({ type: 'text/plain' })), ['content-type']);
  assert.equal(await atServer(answering({ wrap: true })), ['array-answer']);
  const moved: Answer = (message, request, response) => {
    if (request.url !== '/mcp') return answering()(message, request, response);
    response.writeHead(307, { location: '/mcp/' }).end();
  };
  assert.equal(await atServer(moved), ['redirect']);
  assert.equal(await atServer((_message, _request, response) => response.writeHead(308).end()), [
    'redirect-elsewhere',
  ]);
  assert.equal(await atServer((_message, _request, response) => response.writeHead(401).end('no key')), [
    'refused',
  ]);
});

test('the table has a remedy for every fault, and no code twice', () => {
  const all = Object.values(FAULTS).flat();
  assert.ok(all.every(({ fault, gateway, remedy }) => [fault, gateway, remedy].every((text) => text !== '')));
  assert.ok(
    all.every(({ code, unseen }) => (code === undefined) !== (unseen === undefined)),
    'a code, or why there is none',
  );
  const codes = all.flatMap(({ code }) => code ?? []);
  assert.is(new Set(codes).size, codes.length);
});

test.run();
