// A program that takes seconds to start: requests at every door wait for it. Real programs, real HTTP.

import * as assert from 'uvu/assert';
import { MCP_TYPES, modern, openSession, rpc } from '../../helpers/clients/mcp-messages.ts';
import { type AppFixture, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture } from '../../transports/stdio/open-stdio.ts';

const test = suite('requests while a program starts', { timeoutMs: 60_000 });
let app: AppFixture;

test.before.each(async () => {
  app = await startApp();
  const { command, args } = fixture('--slow-start=1500');
  await app.gateway.register('t', { id: 'a', command, args: [...args] });
});
test.after.each(() => app.close());

test('requests at every door wait for the program', async () => {
  const call = { name: 'echo', arguments: { text: 'x' } };
  const asked = {
    'legacy session': openSession(app, '/mcp/t').then((headers) =>
      app.ask('POST', '/mcp/t', { body: rpc('tools/call', call), headers }),
    ),
    'modern discovery': app.ask('POST', '/mcp/t', modern('server/discover')),
    'modern list': app.ask('POST', '/mcp/t', modern('tools/list')),
    'modern call': app.ask('POST', '/mcp/t', modern('tools/call', call)),
    'HTTP API, list': app.ask('GET', '/mcp/t/tools/list'),
    'HTTP API, call': app.ask('POST', '/mcp/t/tools/call', { body: call }),
    'HTTP API, call of an instance': app.ask('POST', '/tools/call', {
      body: { server_id: 'a', tool_name: 'echo', arguments: { text: 'x' } },
    }),
  };
  assert.is(app.gateway.instance('t', 'a').snapshot.state, 'starting');
  for (const [door, answer] of Object.entries(asked)) {
    const { status, body } = await answer;
    assert.equal([door, status, body.error], [door, 200, undefined]);
  }
});

test('requests at every door end when the program is removed', async () => {
  const asked = [
    app.ask('POST', '/mcp/t/tools/call', { body: { name: 'echo', arguments: {} } }),
    app.ask('POST', '/mcp/t', { body: rpc('initialize', {}, 0), headers: MCP_TYPES }),
  ];
  await app.gateway.deregister('t', 'a');
  for (const answer of asked) assert.not.equal((await answer).status, 200);
});

test.run();
