// The event stream of a call that takes longer than a second begins before the instance answers: its headers still name the
// instance, for every kind of client. The timer is simulated.
// @own-process: connections clear simulated timers after their end, and Node's simulated timers of a later file would lose theirs.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { fixtureHandler } from '../../helpers/backends/function-backend.ts';
import { MCP_TYPES, modern, openSession, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { type AppFixture, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('event streams that begin before the answer');
let app: AppFixture;
/** Resolves when a call reaches the instance, with a function that answers it. */
let reached = Promise.withResolvers<() => void>();

test.before.each(async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  app = await startApp();
  const fixture = fixtureHandler('one');
  await app.serve('demo', 'one', (request, context) =>
    request.method === 'tools/call'
      ? new Promise((answer) => reached.resolve(() => answer({ content: [] })))
      : fixture(request, context),
  );
});
test.after.each(async () => {
  await app.close();
  mock.timers.reset();
});

/** Sends a call that becomes slow; returns the instance that its stream names. */
async function nameOf(path: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  reached = Promise.withResolvers();
  const asked = fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: { ...MCP_TYPES, ...headers },
    body: JSON.stringify(body),
  });
  const answer = await Promise.race([reached.promise, asked.then(answeredEarly)]);
  mock.timers.tick(1_000);
  const response = await asked;
  answer();
  assert.match(await response.text(), '"content":[]');
  return response.headers.get('x-instance-id');
}

function answeredEarly({ status }: Response): never {
  throw new Error(`it was answered with ${status} before the instance answered`);
}

test('name the instance over REST, in a view with its template', async () => {
  await app.gateway.views.put({ id: 'chosen', from: [{ template: 'demo' }] });
  const accept = { accept: 'text/event-stream' };
  for (const [path, instance] of [
    ['demo', 'one'],
    ['chosen', 'demo/one'],
  ])
    assert.is(await nameOf(`/mcp/${path}/tools/call`, { name: 'echo', arguments: {} }, accept), instance);
});

test('name the instance to stateless clients, at /mcp and in a view with its template', async () => {
  await app.gateway.views.put({ id: 'chosen', from: [{ template: 'demo' }] });
  const ask = (path: string, name: string) => {
    const { body, headers } = modern('tools/call', { name, arguments: {} });
    return nameOf(path, body, headers);
  };
  assert.is(await ask('/mcp/demo', 'echo'), 'one');
  assert.is(await ask('/mcp/chosen', 'echo'), 'demo/one');
  assert.is(await ask('/mcp', 'demo__echo'), 'demo/one');
});

test('name the instance to clients with a session, at /mcp and in a view with its template', async () => {
  await app.gateway.views.put({ id: 'chosen', from: [{ template: 'demo' }] });
  const ask = async (path: string, name: string) =>
    nameOf(path, toolCall(name), await openSession(app, path));
  assert.is(await ask('/mcp/demo', 'echo'), 'one');
  assert.is(await ask('/mcp/chosen', 'echo'), 'demo/one');
  assert.is(await ask('/mcp', 'demo__echo'), 'demo/one');
});

test.run();
