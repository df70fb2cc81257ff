// Event streams of callers that lost their rights, over a real port: each of them ends, and no others.

import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { MCP_TYPES, openSession } from '../../helpers/clients/mcp-messages.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { type Answer, appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest } from './post.ts';

const test = suite('event streams of callers that lost rights');
const app = appFor(test, () => startWithAccounts({ callerCheckMs: 40 }));
let [begun, cancelled] = [0, 0];

/** A tool that reports progress and never ends. */
const endless: InProcessHandler = ({ method, params }, { signal, notify }) => {
  if (method === 'tools/list') return { tools: [{ name: 'endless', inputSchema: { type: 'object' } }] };
  if (method !== 'tools/call') return {};
  begun += 1;
  signal.addEventListener('abort', () => {
    cancelled += 1;
  });
  notify('notifications/progress', { progressToken: Object(params?._meta).progressToken, progress: 1 });
  return new Promise(() => {});
};
test.before(async () => {
  for (const template of ['demo', 'other']) await app.serve(template, 'one', endless);
});

/** A stream of each kind, by name; each resolves when it has ended. */
async function streamsOf(credentials: Credentials): Promise<ReadonlyMap<string, Promise<Answer>>> {
  const [one, all] = [
    await openSession(app, '/mcp/demo', { credentials }),
    await openSession(app, '/mcp', { credentials }),
  ];
  const modern = (path: string, method: string, params: JsonObject) => {
    const { message, headers } = modernRequest(method, params, { progressToken: 'p' });
    return app.as(credentials, 'POST', path, { body: { jsonrpc: '2.0', id: 1, ...message }, headers });
  };
  const listen = { notifications: { toolsListChanged: true } };
  begun = 0;
  const streams = new Map([
    ['session', app.ask('GET', '/mcp/demo', { headers: one })],
    ['joined session', app.ask('GET', '/mcp', { headers: all })],
    ['listen', modern('/mcp', 'subscriptions/listen', listen)],
    ['call', modern('/mcp/demo', 'tools/call', { name: 'endless' })],
    [
      'rest',
      app.as(credentials, 'POST', '/mcp/demo/tools/call', {
        ...{ body: { name: 'endless' }, headers: { accept: 'text/event-stream' } },
      }),
    ],
  ]);
  await becomes(() => begun, 2);
  return streams;
}

/** Names of the streams that ended within some checks of the callers; waits longer for as many as are expected. */
async function ended(streams: ReadonlyMap<string, Promise<Answer>>, expected = 0): Promise<string[]> {
  const over: string[] = [];
  for (const [name, stream] of streams) void stream.then(() => over.push(name));
  await sleep(300);
  for (let rounds = 0; over.length < expected && rounds < 100; rounds += 1) await sleep(50);
  return over.toSorted();
}

async function revokeAll(): Promise<void> {
  const { accounts } = app.auth;
  for (const { apiKey } of await accounts.apiKeys()) await accounts.revokeApiKey(apiKey.id);
}

test('end with their calls when their key is revoked, and a later request is refused', async () => {
  const key = await app.key(['tools:call']);
  const streams = await streamsOf(key);
  assert.equal(await ended(streams), []);
  cancelled = 0;
  await revokeAll();
  assert.equal(await ended(streams, streams.size), [...streams.keys()].toSorted());
  await becomes(() => cancelled, 2); // the backend hears of it after the caller
  const { text } = (await streams.get('rest')) ?? { text: '' };
  assert.match(text, /event: error\ndata: \{.*"INVALID_CREDENTIALS".*\}\n\n$/);
  assert.is((await app.as(key, 'GET', '/mcp/demo', { headers: MCP_TYPES })).status, 401);
});

test('at /mcp end when the templates of the caller change, all others when theirs is removed', async () => {
  const bob = await app.createUser('bob', 'user', ['demo']);
  const streams = await streamsOf(await app.login('bob'));
  assert.equal(await ended(streams), []);
  await app.auth.accounts.changeUser(bob.id, { templates: ['demo', 'other'] });
  assert.equal(await ended(streams, 2), ['joined session', 'listen']);
  await app.auth.accounts.changeUser(bob.id, { templates: ['other'] });
  assert.is((await ended(streams, streams.size)).length, streams.size);
});

test('stay open when another user is deleted', async () => {
  const eve = await app.createUser('eve');
  const key = await app.key(['tools:call']);
  const streams = await streamsOf(key);
  await app.auth.accounts.deleteUser(eve.id);
  assert.equal(await ended(streams), []);
  await revokeAll();
  await Promise.all(streams.values());
});

test.run();
