import * as assert from 'uvu/assert';
import { fakeMcp } from '../../helpers/fake-mcp.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('handling a matched request');
const started = startApp({ mcp: fakeMcp() });
test.before(async () => (await started).serve('demo', 'one'));
test.after(async () => (await started).close());

test('writes the reply of the route', async () => {
  const answer = await (await started).ask('GET', '/livez');
  assert.is(answer.status, 200);
  assert.equal(answer.body, { status: 'alive' });
  assert.is(answer.headers.get('content-length'), '18');
  assert.is(answer.headers.get('x-content-type-options'), 'nosniff');
});

test('answers HEAD like GET without the body', async () => {
  const answer = await (await started).ask('HEAD', '/livez');
  assert.is(answer.status, 200);
  assert.is(answer.text, '');
  assert.is(answer.headers.get('content-length'), '18');
});

test('decodes the names of the path once', async () => {
  assert.is((await (await started).ask('GET', '/mcp/%64emo/health')).status, 200);
  assert.is((await (await started).ask('GET', '/mcp/%2564emo/health')).status, 404);
});

test('writes an event stream when the reply is one', async () => {
  const answer = await (await started).ask('POST', '/mcp/demo/tools/call', {
    body: { name: 'name' },
    headers: { accept: 'text/event-stream' },
  });
  assert.is(answer.headers.get('content-type'), 'text/event-stream');
  assert.match(answer.text, /^event: result\ndata: \{.*\}\n\n$/);
});

test('lets the handler answer by itself when the reply is a conversation', async () => {
  const answer = await (await started).ask('POST', '/mcp/demo', { body: {} });
  assert.equal([answer.status, answer.body], [200, { jsonrpc: '2.0', id: 1, result: {} }]);
});

test.run();
