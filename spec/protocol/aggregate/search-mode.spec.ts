// Search mode of all templates together: what is listed, found and called, for clients of both eras.

import { firstValueFrom, type Observable } from 'rxjs';
import * as assert from 'uvu/assert';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import {
  type ExchangeRequest,
  isSourcedAnswer,
  type SourcedEvent,
} from '../../../src/domain/calls/exchange.ts';
import {
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
  writeFields,
} from '../../../src/domain/json/json.ts';
import type { Owner } from '../../../src/domain/mcp/client.ts';
import type { AggregatePresentation } from '../../../src/domain/views/view.ts';
import { allTemplates } from '../../../src/protocol/aggregate/all-templates.ts';
import { ToolIndex } from '../../../src/protocol/tool-search/tool-index.ts';
import { suite } from '../../helpers/suite.ts';
import { ADA, ListingBackends, PROFILE } from '../listing-backends.ts';
import { labelledServers } from '../tool-search/labelled-set.ts';
import { aggregateOf } from './aggregate-of.ts';
import { sdkClients } from './sdk-clients.ts';

const test = suite('search mode');

const FORECAST = {
  name: 'get_forecast',
  description: 'Weather forecast of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
  outputSchema: { type: 'object', properties: { degrees: { type: 'number' } } },
  annotations: { readOnlyHint: true },
};
const SEND = { name: 'send', description: 'Sends a letter', inputSchema: { type: 'object' } };

function setUp(
  presentation: AggregatePresentation = { mode: 'search' },
  templates?: Map<string, ListingBackends>,
) {
  const weather = new ListingBackends({ tools: [FORECAST] });
  const post = new ListingBackends({ tools: [SEND] });
  const all =
    templates ??
    new Map([
      ['weather', weather],
      ['post', post],
    ]);
  const { aggregated, listChanges$ } = aggregateOf({
    templates: () => [...all.keys()],
    backendsOf: (template) => all.get(template) ?? new ListingBackends({}),
    selectionOf: (lists, names, scheduler) => allTemplates(lists, names, scheduler, presentation),
  });
  const ask = async (request: ExchangeRequest, owner: Owner = ADA) =>
    resultOf(aggregated.exchange(request, { owner, profile: PROFILE }));
  const call = (name: string, args: JsonFields[string], owner?: Owner) =>
    ask({ method: 'tools/call', params: { name, arguments: args } }, owner);
  const find = async (query: unknown, owner?: Owner) => {
    const { structuredContent, ...result } = await call('find_tools', JsonText.ofValue({ query }), owner);
    return { result, found: toolsIn(structuredContent).map(({ name }) => name), content: structuredContent };
  };
  return { weather, post, aggregated, listChanges$, ask, call, find };
}

/** The result of the last answer, or its error. */
async function resultOf(events$: Observable<SourcedEvent>): Promise<JsonObject> {
  const { event } = await firstValueFrom(events$);
  if (!isSourcedAnswer({ event, instanceId: '', serverId: '' })) throw new Error('not final');
  if (event.kind === 'error') return { ...event.error };
  const value = event.kind === 'result' ? event.result.value : undefined;
  return isJsonObject(value) ? value : {};
}

function toolsIn(result: unknown): JsonObject[] {
  const tools = isJsonObject(result) ? result.tools : [];
  return Array.isArray(tools) ? tools.filter(isJsonObject) : [];
}

const tokensOf = (list: unknown) => Math.ceil(JSON.stringify(list).length / 3.5);

test('lists three tools, says how many there are, and that the list is partial', async () => {
  const { ask, aggregated } = setUp();
  const tools = toolsIn(await ask({ method: 'tools/list' }));
  assert.equal(
    tools.map(({ name }) => name),
    ['find_tools', 'describe_tool', 'call_tool'],
  );
  assert.match(String(tools[0]?.description), /2 tools .* weather \(1\), post \(1\)\.$/);
  assert.equal(
    tools.map(({ annotations }) => isJsonObject(annotations) && annotations.readOnlyHint),
    [true, true, false],
  );
  assert.match(String(aggregated.handshakes(ADA)[0]?.greeting.instructions), /partial.*find_tools/s);
});

test('lists what is always listed, with complete definitions', async () => {
  const { ask } = setUp({ mode: 'search', always: ['weather__*'] });
  const [, , , ...always] = toolsIn(await ask({ method: 'tools/list' }));
  assert.equal(always, [{ ...FORECAST, name: 'weather__get_forecast' }]);
});

test('a tool for pages only is not found by a model, and is listed for hosts that show pages', async () => {
  const { post, ask, call, find, aggregated } = setUp();
  const pageOnly = { ...SEND, name: 'redraw', _meta: { ui: { visibility: ['app'] } } };
  const both = { ...SEND, name: 'resend', _meta: { ui: { visibility: ['model', 'app'] } } };
  const odd = { ...SEND, name: 'unsend', _meta: { ui: { visibility: [] } } };
  post.lists = { tools: [pageOnly, both, odd] };
  assert.equal((await find('letter')).found.sort(), ['post__resend', 'post__unsend']);
  assert.is((await call('describe_tool', JsonText.ofValue({ name: 'post__redraw' }))).isError, true);
  const [own] = toolsIn(await ask({ method: 'tools/list' }));
  assert.match(String(own?.description), /3 tools .* post \(2\)\.$/);
  assert.is(toolsIn(await ask({ method: 'tools/list' })).length, 3);
  const capabilities = { extensions: { 'io.modelcontextprotocol/ui': {} } };
  const shown = await resultOf(
    aggregated.exchange({ method: 'tools/list' }, { owner: ADA, profile: { ...PROFILE, capabilities } }),
  );
  assert.equal(
    toolsIn(shown).map(({ name }) => name),
    ['find_tools', 'describe_tool', 'call_tool', 'post__redraw'],
  );
  assert.equal(await call('redraw', {}), { called: { name: 'redraw', arguments: {} } });
});

test('the clients of the official SDKs accept the list', async () => {
  const { ask } = setUp({ mode: 'search', always: ['*'] });
  const tools = toolsIn(await ask({ method: 'tools/list' }));
  for (const client of await sdkClients())
    assert.is((await client.read('tools', tools)).length, 5, client.name);
});

test('700 tools cost at most 2,000 tokens, and 1,000 servers have a bounded description', async () => {
  const servers = labelledServers().map(
    ({ server, tools }) => [server, new ListingBackends({ tools })] as const,
  );
  const [{ description } = { description: '' }, ...others] = toolsIn(
    await setUp(undefined, new Map(servers)).ask({ method: 'tools/list' }),
  );
  assert.ok(tokensOf([description, ...others]) <= 2_000);
  assert.ok(tokensOf(description) <= 300);
  const many = Array.from(
    { length: 1_000 },
    (_, at) => [`s${at}`, new ListingBackends({ tools: [SEND] })] as const,
  );
  const [found] = toolsIn(await setUp(undefined, new Map(many)).ask({ method: 'tools/list' }));
  assert.ok(tokensOf(found?.description) <= 300);
  assert.match(String(found?.description), /, and \d{3} more servers\.$/);
});

test('finds tools by what they do, with complete definitions', async () => {
  const { find } = setUp();
  const { result, content } = await find('will it rain tomorrow');
  const expected = { tools: [{ ...FORECAST, name: 'weather__get_forecast' }], searched: 2 };
  assert.equal(content, expected);
  assert.equal(result, { content: [{ type: 'text', text: JSON.stringify(expected) }] });
});

test('describes one tool, and names similar ones for an unknown name', async () => {
  const { call } = setUp();
  const { structuredContent } = await call('describe_tool', { name: 'weather__get_forecast' });
  assert.equal(structuredContent, { ...FORECAST, name: 'weather__get_forecast' });
  const { isError, content } = await call('describe_tool', { name: 'forecast' });
  assert.is(isError, true);
  assert.match(JSON.stringify(content), /no tool .*forecast.*Similar ones: weather__get_forecast/);
});

test('a call passes its arguments byte by byte, and its other parameters', async () => {
  const { call, ask, weather } = setUp();
  const args = '{ "city" : "B\\u00e9ziers", "n": 1.0, "big": 12345678901234567890, "n": 2e0 }';
  await call('call_tool', JsonText.ofText(`{"arguments": ${args} , "name": "weather__get_forecast"}`));
  const [asked] = weather.asked.filter(({ method }) => method === 'tools/call');
  assert.is(writeFields(asked?.params ?? {}), `{"name":"get_forecast","arguments":${args}}`);
  await ask({
    method: 'tools/call',
    params: { name: 'call_tool', arguments: { name: 'get_forecast' }, _meta: { progressToken: 7 } },
    headers: { 'mcp-param-name': 'x' },
  });
  const { method, params, headers } = weather.asked.at(-1) ?? {};
  assert.equal(
    { method, params, headers },
    {
      method: 'tools/call',
      params: { name: 'get_forecast', _meta: { progressToken: 7 } },
      headers: undefined,
    },
  );
});

test('the report of a call names the real tool and its arguments', async () => {
  const { ask } = setUp();
  const report: { tool?: string; arguments?: JsonFields[string] } = {};
  const args = { name: 'post__send', arguments: { to: 'Ada' } };
  await ask({ method: 'tools/call', params: { name: 'call_tool', arguments: args }, report });
  assert.equal(report, { tool: 'post__send', arguments: { to: 'Ada' } });
});

test('a found tool is also called by its name', async () => {
  const { call, weather } = setUp();
  await call('weather__get_forecast', { city: 'Oslo' });
  assert.equal(weather.asked.at(-1)?.params, { name: 'get_forecast', arguments: { city: 'Oslo' } });
});

test('a call of an unknown tool is refused as in list mode', async () => {
  const { call } = setUp();
  const direct = await call('get_forecats', {});
  assert.is(direct.code, -32602);
  assert.equal(await call('call_tool', { name: 'get_forecats' }), direct);
  assert.is((await call('call_tool', { name: 'call_tool' })).code, -32602);
});

test('wrong arguments are errors for the model, which say what is needed', async () => {
  const { call, find } = setUp();
  const wrong: [string, JsonFields[string]][] = [
    ['find_tools', undefined],
    ['find_tools', { query: '  ' }],
    ['find_tools', { query: ['rain'] }],
    ['find_tools', { query: 'rain', limit: 0 }],
    ['find_tools', { query: 'rain', limit: '3' }],
    ['describe_tool', {}],
    ['call_tool', { arguments: {} }],
    ['call_tool', { name: 'post__send', arguments: '{"to":"Ada"}' }],
    ['call_tool', JsonText.ofText('{"name":"post__send","arguments":[1]}')],
  ];
  for (const [name, args] of wrong)
    assert.is((await call(name, args)).isError, true, JSON.stringify([name, args]));
  const { found, content } = await find('zyzzyva');
  assert.equal([found, isJsonObject(content) && typeof content.hint], [[], 'string']);
});

test('nothing is found, described or counted that the caller may not use', async () => {
  const { find, call, ask } = setUp();
  const restricted: Owner = { ...ADA, templates: new Set(['post']) };
  assert.equal((await find('rain')).found, ['weather__get_forecast']);
  assert.equal((await find('rain', restricted)).found, []);
  assert.is((await call('describe_tool', { name: 'weather__get_forecast' }, restricted)).isError, true);
  assert.is((await call('call_tool', { name: 'weather__get_forecast' }, restricted)).code, -32602);
  const [first] = toolsIn(await ask({ method: 'tools/list' }, restricted));
  assert.not.match(String(first?.description), 'weather');
});

test('rights to single tools hold for what is found, also after they changed', async () => {
  const { find, call } = setUp();
  const withTools = (...lists: string[]): Owner => ({ ...ADA, tools: new ToolRights([lists]) });
  assert.equal((await find('rain', withTools('post/*'))).found, []);
  assert.equal((await find('rain', withTools('weather/get_*'))).found, ['weather__get_forecast']);
  assert.equal((await find('rain', withTools('post/*'))).found, []);
  const args = { name: 'weather__get_forecast' };
  assert.is((await call('describe_tool', args, withTools('weather/set_*'))).isError, true);
});

test('finds a new tool after its server announced it, and lists nothing for a search before that', async () => {
  const { find, weather, listChanges$ } = setUp();
  assert.equal((await find('moon')).found, []);
  const asked = weather.asked.length;
  await find('rain');
  assert.is(weather.asked.length, asked);
  weather.lists = { tools: [FORECAST, { ...SEND, name: 'moon_phase' }] };
  listChanges$.next({ template: 'weather', list: 'tools' });
  assert.equal((await find('moon')).found, ['weather__moon_phase']);
});

test('callers with equal tools share one index, also when they search at the same time', async () => {
  const { find } = setUp();
  const { of } = ToolIndex;
  let made = 0;
  ToolIndex.of = (...input) => {
    made += 1;
    return of.call(ToolIndex, ...input);
  };
  try {
    const owners = Array.from({ length: 20 }, (_, at) => ({ ...ADA, id: `user-${at}` }));
    const found = await Promise.all(owners.map((owner) => find('weather', owner)));
    for (const { found: names } of found) assert.equal(names, ['weather__get_forecast']);
  } finally {
    ToolIndex.of = of;
  }
  assert.is(made, 1);
});

test('list mode has no tools of the gateway', async () => {
  const { ask, call } = setUp({});
  assert.equal(
    toolsIn(await ask({ method: 'tools/list' })).map(({ name }) => name),
    ['weather__get_forecast', 'post__send'],
  );
  assert.is((await call('find_tools', { query: 'rain' })).code, -32602);
});

test('instructions of the operator stand in the place of those of the templates', () => {
  const { aggregated } = setUp({ instructions: 'Ask first.' });
  assert.is(aggregated.handshakes(ADA)[0]?.greeting.instructions, 'Ask first.');
});

test.run();
