// Search mode over HTTP, for clients of both eras: a call of a found tool is in events, audit log and rights a call of that tool.

import * as assert from 'uvu/assert';
import type { GatewayEvents } from '../../../src/domain/events/events.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { MCP_TYPES, modern, openSession, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('search mode over HTTP');

const app = appFor(
  test,
  () =>
    startWithAccounts({
      gateway: { aggregate: { mode: 'search' } },
      auditSettings: { recordsCalls: true, callArguments: 'full', keptCalls: 1_000, keptDays: 1 },
    }),
  'each',
);

/** A backend with one tool, which answers its own name. */
function serving(name: string, description: string): InProcessHandler {
  const tools = [{ name, description, inputSchema: { type: 'object' } }];
  return ({ method, params }) =>
    method === 'tools/call' ? { content: [{ type: 'text', text: String(params?.name) }] } : { tools };
}

test.before.each(async () => {
  await app.serve('weather', 'one', serving('get_forecast', 'Weather forecast of a city'));
  await app.serve('post', 'one', serving('send', 'Sends a letter'));
});

type Credentials = typeof app.admin;
type Call = (name: string, args: object, credentials?: Credentials) => Promise<Record<string, unknown>>;

const ofModern: Call = async (name, args, credentials = app.admin) => {
  const { body, headers } = modern('tools/call', { name, arguments: args });
  return Object(messageIn((await app.as(credentials, 'POST', '/mcp', { body, headers })).text));
};

const ofLegacy: Call = async (name, args, credentials = app.admin) => {
  const session = await openSession(app, '/mcp', { credentials });
  const ask = { body: toolCall(name, args), headers: { ...MCP_TYPES, ...session } };
  return Object(messageIn((await app.as(credentials, 'POST', '/mcp', ask)).text));
};

/** A body, or the last event of a stream. */
function messageIn(text: string): unknown {
  const [data] = [...text.matchAll(/^data: (.+)$/gm)].map(([, event]) => event).reverse();
  return JSON.parse(data ?? text);
}

const textIn = (message: Record<string, unknown>) => String(Object(message.result).content?.[0]?.text);

for (const [era, call] of Object.entries({ modern: ofModern, legacy: ofLegacy })) {
  test(`a client of the ${era} era finds a tool, and calls it through the gateway or by its name`, async () => {
    const found = await call('find_tools', { query: 'will it rain' });
    assert.match(textIn(found), '"name":"weather__get_forecast"');
    const finished: GatewayEvents['call.finished'][] = [];
    app.gateway.on('call.finished').subscribe((event) => finished.push(event));
    const args = { city: 'Oslo' };
    assert.is(
      textIn(await call('call_tool', { name: 'weather__get_forecast', arguments: args })),
      'get_forecast',
    );
    assert.is(textIn(await call('weather__get_forecast', args)), 'get_forecast');
    const seen = finished.filter(({ method }) => method === 'tools/call');
    assert.equal(
      seen.map(({ template, tool }) => [template, tool]),
      [
        ['weather', 'get_forecast'],
        ['weather', 'get_forecast'],
      ],
    );
    const entries = await app.auth.audit.list({ limit: 10 });
    const calls = entries.flatMap((entry) => (entry.action === 'tools/call' ? [entry.call] : []));
    assert.equal(
      calls.map((each) => [each?.template, each?.tool, each?.arguments]),
      [
        ['weather', 'get_forecast', JSON.stringify(args)],
        ['weather', 'get_forecast', JSON.stringify(args)],
        ['', 'find_tools', '{"query":"will it rain"}'],
      ],
    );
  });

  test(`a client of the ${era} era neither finds nor calls what it may not use`, async () => {
    const key = await app.key(['tools:call'], ['post']);
    assert.not.match(textIn(await call('find_tools', { query: 'weather forecast' }, key)), 'get_forecast');
    const refused = await call('call_tool', { name: 'weather__get_forecast' }, key);
    assert.is(Object(refused.error).code, -32602);
    assert.is(textIn(await call('call_tool', { name: 'post__send' }, key)), 'send');
  });
}

test.run();
