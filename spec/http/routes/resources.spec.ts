import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of resources');
const started = startApp();
const backend = startHttpServer({ name: 'b' });
const toolsOnly = startHttpServer({ capabilities: ['tools'] });
test.before(async () => {
  const { gateway } = await started;
  await gateway.register('demo', { id: 'one', endpoint: (await backend).url }, { waitMs: 5_000 });
  await gateway.register('bare', { endpoint: (await toolsOnly).url }, { waitMs: 5_000 });
});
test.after(async () => {
  await (await started).close();
  await (await backend).close();
  await (await toolsOnly).close();
});

const ask = async (...parameters: Parameters<Awaited<typeof started>['ask']>) =>
  (await started).ask(...parameters);

test('list resources', async () => {
  const { status, body, headers } = await ask('GET', '/mcp/demo/resources/list');
  assert.is(status, 200);
  assert.equal(body, {
    resources: [{ uri: 'test://greeting', name: 'greeting', mimeType: 'text/plain' }],
    count: 1,
  });
  assert.is(headers.get('x-instance-id'), 'one');
});

test('list resource templates', async () => {
  const { body } = await ask('GET', '/mcp/demo/resources/templates/list');
  assert.equal(body, {
    resourceTemplates: [{ uriTemplate: 'test://item/{id}', name: 'item', mimeType: 'text/plain' }],
    count: 1,
  });
});

test('are empty where the server offers none', async () => {
  assert.equal((await ask('GET', '/mcp/bare/resources/list')).body, { resources: [], count: 0 });
  assert.equal((await ask('GET', '/mcp/bare/resources/templates/list')).body, {
    resourceTemplates: [],
    count: 0,
  });
});

test('read one', async () => {
  const { status, body, headers } = await ask('POST', '/mcp/demo/resources/read', {
    body: { uri: 'test://greeting' },
  });
  assert.is(status, 200);
  assert.equal(body, {
    contents: [{ uri: 'test://greeting', mimeType: 'text/plain', text: 'content of test://greeting from b' }],
  });
  assert.is(headers.get('x-instance-id'), 'one');
});

test('are 404 when there is no such one', async () => {
  const { status, body } = await ask('POST', '/mcp/demo/resources/read', { body: { uri: 'other://x' } });
  assert.equal([status, body.error_code], [404, 'RESOURCE_NOT_FOUND']);
  assert.ok(body.backend_error);
});

test.run();
