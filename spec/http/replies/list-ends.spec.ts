// Where the lists of servers end, for every kind of client: with cursors that are none, and lists that have no end. Source: ADR 111.

import * as assert from 'uvu/assert';
import { MCP_TYPES, modern, openSession, rpc } from '../../helpers/clients/mcp-messages.ts';
import { becomes } from '../../helpers/eventually.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf, startRawServer } from '../../transports/raw-server.ts';

const test = suite('ends of lists', { timeoutMs: 60_000 });

interface Page {
  readonly tools: readonly object[];
  readonly nextCursor?: unknown;
}

const named = (...names: string[]) => names.map((name) => ({ name, inputSchema: { type: 'object' } }));

/** The pages of each template, by the cursor of the request. */
const LISTS: Readonly<Record<string, (cursor: unknown) => Page>> = {
  empty: () => ({ tools: named('a'), nextCursor: '' }),
  null: () => ({ tools: named('a'), nextCursor: null }),
  number: () => ({ tools: named('a'), nextCursor: 5 }),
  object: () => ({ tools: named('a'), nextCursor: { page: 2 } }),
  two: (cursor) => (cursor === 'p2' ? { tools: named('b') } : { tools: named('a'), nextCursor: 'p2' }),
  same: (cursor) => ({ tools: named(cursor === undefined ? 'a' : 'b'), nextCursor: 'p2' }),
};
const ENDS_AT_ONCE = ['empty', 'null', 'number', 'object'];
let fresh = 0;
const ENDLESS = () => ({ tools: named('a', 'b'), nextCursor: `cursor ${fresh++}` });

function answer(template: string, method: unknown, params: unknown): object | undefined {
  const { cursor } = Object(params);
  if (method === 'tools/list') return (LISTS[template] ?? ENDLESS)(cursor);
  if (method !== 'initialize') return undefined;
  const serverInfo = { name: template, version: '1' };
  return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
}

const app = appFor(test, () => startApp());
const server = startRawServer(async (request, response) => {
  const { id, method, params } = await messageOf(request);
  const template = request.url?.slice(1) ?? '';
  const result = answer(template, method, params);
  const error = { code: -32601, message: 'no' };
  if (request.method !== 'POST') response.writeHead(405).end();
  else if (id === undefined) response.writeHead(202).end();
  else answerJson(response, 200, { jsonrpc: '2.0', id, ...(result ? { result } : { error }) });
});
const cuts: unknown[] = [];

test.before(async () => {
  const { port } = await server;
  app.gateway.on('list.cut').subscribe(({ template, list, reason }) => cuts.push([template, list, reason]));
  for (const template of [...Object.keys(LISTS), 'endless']) {
    const endpoint = `http://127.0.0.1:${port}/${template}`;
    await app.gateway.register(template, { endpoint }, { waitMs: 20_000 });
  }
});
test.after(async () => (await server).close());

type Listing = (template: string, cursor?: string) => Promise<Page>;
type Body = Record<string, unknown>;

const resultOf = (text: string): Page => {
  const data = text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? '{}');
  const { result } = JSON.parse(data);
  return result;
};
const paramsOf = (cursor: string | undefined): Body => (cursor === undefined ? {} : { cursor });

const legacy =
  (path: (template: string) => string): Listing =>
  async (template, cursor) => {
    const headers = await openSession(app, path(template));
    const body = rpc('tools/list', paramsOf(cursor));
    return resultOf((await app.ask('POST', path(template), { body, headers })).text);
  };
const modernAt =
  (path: (template: string) => string): Listing =>
  async (template, cursor) =>
    resultOf((await app.ask('POST', path(template), modern('tools/list', paramsOf(cursor)))).text);

const one = (template: string) => `/mcp/${template}`;
const namesOf = ({ tools }: Page) => tools.map((tool) => Object(tool).name);

for (const [era, list] of Object.entries({ legacy: legacy(one), modern: modernAt(one) })) {
  test(`a cursor that is none ends a legacy list, for a ${era} client`, async () => {
    for (const template of ENDS_AT_ONCE) {
      const page = await list(template);
      assert.equal([namesOf(page), page.nextCursor], [['a'], undefined], template);
    }
    const first = await list('two');
    const second = await list('two', String(first.nextCursor));
    assert.equal([...namesOf(first), ...namesOf(second), second.nextCursor], ['a', 'b', undefined]);
  });

  test(`a cursor that leads to itself ends the list, for a ${era} client`, async () => {
    const first = await list('same');
    const second = await list('same', String(first.nextCursor));
    assert.equal([...namesOf(first), ...namesOf(second), second.nextCursor], ['a', 'b', undefined]);
  });
}

test('the same cursor of a server is the same cursor for a modern client', async () => {
  const list = modernAt(one);
  const [first, again] = [await list('two'), await list('two')];
  assert.type(first.nextCursor, 'string');
  assert.is(first.nextCursor, again.nextCursor);
});

const all = async (list: Listing): Promise<readonly string[]> => {
  const page = await list('all');
  assert.is(page.nextCursor, undefined);
  return namesOf(page).toSorted();
};
const ALL = [
  ...ENDS_AT_ONCE.map((name) => `${name}__a`),
  ...['two', 'same', 'endless'].flatMap((name) => [`${name}__a`, `${name}__b`]),
].toSorted();

test('the list of all templates has what was gathered', async () => {
  const root = () => '/mcp';
  for (const list of [legacy(root), modernAt(root)]) await becomes(() => all(list), ALL);
});

test('the list of all templates names those whose list ends early, with the reason', async () => {
  const reason = (clause: string) => `The list ends early: ${clause}.`;
  for (const list of [legacy(() => '/mcp'), modernAt(() => '/mcp')])
    assert.equal(Object(Object(await list('all'))._meta)['stagedoor/truncated'], [
      { template: 'endless', reason: reason('its pages repeat') },
      { template: 'same', reason: reason('its cursor repeats') },
    ]);
});

test('a REST list has what was gathered, and a warning when it has no end', async () => {
  const listed = async (template: string) => {
    const { status, body } = await app.ask('GET', `/mcp/${template}/tools/list`, { headers: MCP_TYPES });
    const names = namesOf({ tools: Array.isArray(body.tools) ? body.tools : [] });
    return [status, names, body.count, body.warning];
  };
  for (const template of ENDS_AT_ONCE) assert.equal(await listed(template), [200, ['a'], 1, undefined]);
  assert.equal(await listed('two'), [200, ['a', 'b'], 2, undefined]);
  assert.equal(await listed('same'), [200, ['a', 'b'], 2, 'The list ends early: its cursor repeats.']);
  assert.equal(await listed('endless'), [200, ['a', 'b'], 2, 'The list ends early: its pages repeat.']);
});

test('the REST list of a view has a warning that names its incomplete templates', async () => {
  await app.gateway.register('gone', { id: 'gone-1', endpoint: 'http://127.0.0.1:1/' });
  const from = ['two', 'same', 'gone'].map((template) => ({ template }));
  await app.gateway.views.put({ id: 'parts', title: 'Parts', from });
  await app.gateway.views.put({ id: 'whole', title: 'Whole', from: [{ template: 'two' }] });
  const warned = async (view: string) => {
    const { status, body } = await app.ask('GET', `/mcp/${view}/tools/list`);
    return [status, body.count, body.warning];
  };
  const warning = 'The list may be incomplete: template "gone" is missing; template "same" ends early.';
  assert.equal(await warned('parts'), [200, 4, warning]);
  assert.equal(await warned('whole'), [200, 2, undefined]);
});

test('the gateway itself knows the tools, so that an unknown one is 404; an event names the cause', async () => {
  for (const template of [...Object.keys(LISTS), 'endless']) {
    const { status } = await app.ask('POST', `/mcp/${template}/tools/call`, { body: { name: 'c' } });
    assert.is(status, 404, template);
  }
  assert.equal(cuts.toSorted(), [
    ['endless', 'tools', 'its pages repeat'],
    ['same', 'tools', 'its cursor repeats'],
  ]);
});

test.run();
