// A call that lasts longer than a second begins its event stream then, before an instance answered: the instance that works
// on it is named all the same, on every way in. The timers of the watch are simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { type AppFixture, fixtureHandler, startApp } from '../helpers/http-app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('streams that begin before an answer');
const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const TYPES = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
const clientInfo = { name: 'spec', version: '1' };
const _meta = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
};

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
    headers: { ...TYPES, ...headers },
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
  const ask = (path: string, name: string) =>
    nameOf(
      path,
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, _meta } },
      { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': name },
    );
  assert.is(await ask('/mcp/demo', 'echo'), 'one');
  assert.is(await ask('/mcp', 'demo__echo'), 'demo/one');
});

test('name it to clients with a session, at /mcp with its template', async () => {
  const ask = async (path: string, name: string) => {
    const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo };
    const opened = await app.ask('POST', path, {
      body: { jsonrpc: '2.0', id: 0, method: 'initialize', params },
      headers: TYPES,
    });
    return nameOf(
      path,
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } },
      { 'mcp-protocol-version': LEGACY, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' },
    );
  };
  assert.is(await ask('/mcp/demo', 'echo'), 'one');
  assert.is(await ask('/mcp', 'demo__echo'), 'demo/one');
});

test.run();
