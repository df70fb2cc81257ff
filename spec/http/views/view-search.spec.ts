// A view in search mode, over REST and MCP: its list, what is found and called, and what changes with its definition.

import * as assert from 'uvu/assert';
import { isJsonObject, type JsonObject } from '../../../src/domain/json/json.ts';
import { modern } from '../../helpers/clients/mcp-messages.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('views in search mode');
const app = appFor(test, () => startApp());

const inputSchema = { type: 'object' };
const TOOLS = {
  weather: [
    { name: 'get_forecast', description: 'Weather forecast of a city', inputSchema },
    { name: 'get_history', description: 'Weather of past years', inputSchema },
  ],
  post: [{ name: 'send', description: 'Sends a letter', inputSchema }],
};

test.before(async () => {
  for (const [template, tools] of Object.entries(TOOLS)) {
    const handler = ({ method, params }: { readonly method: string; readonly params?: unknown }) =>
      method === 'tools/list'
        ? { tools }
        : { content: [{ type: 'text', text: JSON.stringify([template, params]) }] };
    await app.gateway.register(template, { id: 'one', handler }, { waitMs: 5_000 });
  }
});

const DESK = {
  from: [
    { template: 'weather', tools: ['get_forecast'], rename: { get_forecast: 'forecast' } },
    { template: 'post', defaults: { send: { stamp: 'red' } } },
  ],
  mode: 'search',
  always: ['send'],
};

async function put(definition: object): Promise<void> {
  const { status } = await app.ask('PUT', '/gateway/views/desk', { body: definition });
  assert.ok(status < 300, String(status));
}

async function overMcp(method: string, params: { readonly name?: string; readonly arguments?: object } = {}) {
  const { body, headers } = modern(method, { ...params });
  const { text } = await app.ask('POST', '/mcp/desk', { body, headers });
  const [data = text] = [...text.matchAll(/^data: (.+)$/gm)].map(([, event]) => event ?? '').reverse();
  const { result = {} } = JSON.parse(data);
  return result as JsonObject;
}

const namesIn = (result: unknown) =>
  isJsonObject(result) && Array.isArray(result.tools)
    ? result.tools.map((tool) => (isJsonObject(tool) ? tool.name : tool))
    : [];

const find = async (query: string) => {
  const { structuredContent } = await overMcp('tools/call', { name: 'find_tools', arguments: { query } });
  return namesIn(structuredContent);
};

const THREE = ['find_tools', 'describe_tool', 'call_tool'];

test('has the same list over MCP, over REST and in its preview', async () => {
  await put(DESK);
  const listed = [...THREE, 'send'];
  assert.equal(namesIn(await overMcp('tools/list')), listed);
  assert.equal(namesIn((await app.ask('GET', '/mcp/desk/tools/list')).body), listed);
  assert.equal(namesIn((await app.ask('GET', '/gateway/views/desk/preview')).body), listed);
  const { instructions } = await overMcp('server/discover');
  assert.match(String(instructions), /partial/);
});

test('finds only what the view has, under its names, and calls it with its defaults', async () => {
  assert.equal(await find('weather in past years'), ['forecast']);
  const call = { name: 'call_tool', arguments: { name: 'send', arguments: { to: 'Ada' } } };
  const [{ text } = { text: '' }] = Object((await overMcp('tools/call', call)).content);
  assert.equal(JSON.parse(text)[0], 'post');
  assert.match(text, /"name":"send".*"to":"Ada".*"stamp":"red"|"stamp":"red".*"to":"Ada"/);
  const overRest = await app.ask('POST', '/mcp/desk/tools/call', { body: call });
  assert.match(overRest.text, /stamp/);
});

test('a changed definition is in force with the next search', async () => {
  await put({ ...DESK, from: [{ template: 'weather' }] });
  assert.equal((await find('weather in past years')).at(0), 'get_history');
  await put({ ...DESK, mode: 'list' });
  assert.equal(namesIn(await overMcp('tools/list')), ['forecast', 'send']);
  assert.equal(await find('weather'), []);
});

test.run();
