// A call that lasts longer than a second begins its event stream then, before an instance answered: the instance that works
// on it is named all the same, on every way in. The timers of the watch are simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { fixtureHandler } from '../helpers/function-backend.ts';
import { type AppFixture, startApp } from '../helpers/http-app.ts';
import { MCP_TYPES, modern, openSession, toolCall } from '../helpers/http-mcp.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('streams that begin before an answer');
let app: AppFixture;
/** Calls that reached the instance and are not answered. */
let reached = Promise.withResolvers<() => void>();

test.before.each(async () => {
  mock.timers.enable({ apis: ['setInterval'] });
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

/** Sends a call that becomes slow; the name that its stream begins with. */
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

test('name it over REST', async () => {
  const accept = { accept: 'text/event-stream' };
  assert.is(await nameOf('/mcp/demo/tools/call', { name: 'echo', arguments: {} }, accept), 'one');
});

test('name it to clients of revision 2026-07-28, at /mcp with its template', async () => {
  const ask = (path: string, name: string) => {
    const { body, headers } = modern('tools/call', { name, arguments: {} });
    return nameOf(path, body, headers);
  };
  assert.is(await ask('/mcp/demo', 'echo'), 'one');
  assert.is(await ask('/mcp', 'demo__echo'), 'demo/one');
});

test('name it to clients with a session, at /mcp with its template', async () => {
  const ask = async (path: string, name: string) =>
    nameOf(path, toolCall(name), await openSession(app, path));
  assert.is(await ask('/mcp/demo', 'echo'), 'one');
  assert.is(await ask('/mcp', 'demo__echo'), 'demo/one');
});

test.run();
