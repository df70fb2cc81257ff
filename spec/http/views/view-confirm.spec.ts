// Tools of a view whose calls their user confirms: the official clients of both SDKs, which ask their user or cannot, callers of REST, and
// who may set it.

import { Client as CurrentClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('confirmed calls of views', { timeoutMs: 30_000 });
const app = appFor(test, () => startApp());

const inputSchema = { type: 'object' };
const TOOLS = ['drop', 'read'].map((name) => ({ name, description: `May ${name} a table.`, inputSchema }));
const VIEW = {
  from: [{ template: 'tables', rename: { drop: 'remove' } }],
  confirm: ['remove', 'none_*'],
};
let reached: unknown[] = [];

test.before(async () => {
  const handler = ({ method, params }: { readonly method: string; readonly params?: unknown }) => {
    if (method === 'tools/list') return { tools: TOOLS };
    if (method !== 'tools/call') return {};
    reached.push(Object(params).arguments ?? null);
    return { content: [{ type: 'text', text: 'done' }] };
  };
  await app.gateway.register('tables', { id: 'one', handler }, { waitMs: 5_000 });
});
test.before.each(async () => {
  reached = [];
  await app.ask('PUT', '/gateway/views/desk', { body: VIEW });
});

type Action = 'accept' | 'decline' | 'cancel' | undefined;

/** Undefined: it cannot ask. `asked`: the questions that its user got. */
async function connected(kind: string, action: Action) {
  const asked: string[] = [];
  const url = new URL('/mcp/desk', app.url);
  const info = { name: 'spec', version: '1' };
  const capabilities = action === undefined ? {} : { elicitation: {} };
  const answer = ({ params }: { readonly params: { readonly message: string } }) => {
    asked.push(params.message);
    return action === 'accept'
      ? { action, content: {} }
      : { action: action === 'decline' ? ('decline' as const) : ('cancel' as const) };
  };
  if (kind === 'SDK 1') {
    const client = new OldClient(info, { capabilities });
    if (action !== undefined) client.setRequestHandler(ElicitRequestSchema, answer);
    await client.connect(new OldTransport(url) as never);
    return { client, asked };
  }
  const mode = kind === 'SDK 2, modern' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {};
  const client = new CurrentClient(info, { capabilities, ...mode });
  if (action !== undefined) client.setRequestHandler('elicitation/create', answer);
  await client.connect(new StreamableHTTPClientTransport(url));
  return { client, asked };
}

for (const kind of ['SDK 1', 'SDK 2, legacy', 'SDK 2, modern'])
  test(`${kind}: the user accepts, declines, dismisses, or cannot be asked`, async () => {
    const question = 'Call "remove" (drop of tables) with these arguments? {"id":7}';
    for (const [action, words, count] of [
      ['accept', 'done', 1],
      ['decline', 'The user declined the call: it was not made.', 0],
      ['cancel', 'The user did not confirm the call: it was not made.', 0],
      [undefined, '"remove" needs confirmation by its user', 0],
    ] as const) {
      reached = [];
      const { client, asked } = await connected(kind, action);
      const result = await client.callTool({ name: 'remove', arguments: { id: 7 } });
      assert.match(JSON.stringify(result.content), JSON.stringify(words).slice(1, -1));
      assert.equal([result.isError === true, reached.length], [count === 0, count], String(action));
      assert.equal(asked, action === undefined ? [] : [question]);
      await client.callTool({ name: 'read', arguments: {} });
      assert.is(reached.length, count + 1, 'another tool is called at once');
      await client.close();
    }
  });

test('a tool that search mode found is confirmed, too', async () => {
  await app.ask('PUT', '/gateway/views/desk', { body: { ...VIEW, mode: 'search' } });
  for (const kind of ['SDK 1', 'SDK 2, modern']) {
    const { client, asked } = await connected(kind, 'accept');
    const inner = { name: 'remove', arguments: { id: 9 } };
    await client.callTool({ name: 'call_tool', arguments: inner });
    await client.callTool(inner);
    const question = 'Call "remove" (drop of tables) with these arguments? {"id":9}';
    assert.equal(asked, [question, question]);
    await client.close();
  }
  assert.equal(reached, [{ id: 9 }, { id: 9 }, { id: 9 }, { id: 9 }]);
});

test('a caller of REST is refused, by every name of the tool', async () => {
  for (const name of ['remove', 'drop'])
    for (const headers of [{}, { accept: 'text/event-stream' }]) {
      const { status, text } = await app.ask('POST', '/mcp/desk/tools/call', { body: { name }, headers });
      assert.match(text, 'CONFIRMATION_REQUIRED');
      if (!('accept' in headers)) assert.is(status, 403);
    }
  assert.is((await app.ask('POST', '/mcp/desk/tools/call', { body: { name: 'read' } })).status, 200);
  assert.equal(reached, [null]);
});

test('its globs, problems and preview', async () => {
  const { body } = await app.ask('PUT', '/gateway/views/desk', { body: VIEW });
  assert.equal(body.confirm, VIEW.confirm);
  assert.equal(
    Object(body.problems).map(({ code, message }: Record<string, string>) => [code, message]),
    [['confirm_unmet', '`confirm` has the glob "none_*", which matches no listed tool.']],
  );
  assert.equal((await app.ask('GET', '/gateway/views/desk/preview')).body.asks, ['remove']);
  const prefixed = { ...VIEW, names: 'prefixed', confirm: ['*', '!tables__read'] };
  assert.equal((await app.ask('POST', '/gateway/views/preview', { body: prefixed })).body.asks, [
    'tables__remove',
  ]);
  const wrong = await app.ask('PUT', '/gateway/views/desk', { body: { ...VIEW, confirm: 'remove' } });
  assert.is(wrong.outcome, '422 VALIDATION_ERROR');
});

test('a tool that did not get its name asks by the name that it wishes', async () => {
  const handler = ({ method }: { readonly method: string }) =>
    method === 'tools/list' ? { tools: TOOLS } : { content: [] };
  await app.ask('PUT', '/gateway/views/later', {
    body: { from: [{ template: 'tables' }], confirm: ['drop'] },
  });
  await app.gateway.register('others', { id: 'two', handler }, { waitMs: 5_000 });
  const body = { from: [{ template: 'tables' }, { template: 'others' }], confirm: ['drop'] };
  await app.ask('PUT', '/gateway/views/later', { body });
  const { asks } = (await app.ask('GET', '/gateway/views/later/preview')).body;
  assert.equal(asks, ['drop', 'others__drop']);
});

test('only an admin sets it, ends it, and changes a view that has it', async () => {
  const guarded = await startWithAccounts();
  await guarded.gateway.register('tables', { id: 'one', endpoint: 'http://127.0.0.1:1' });
  const writer = await guarded.key(['gateway:write']);
  const { confirm, ...open } = VIEW;
  const path = '/gateway/views/desk';
  const put = async (who: typeof writer, body: object) =>
    (await guarded.as(who, 'PUT', path, { body })).outcome;
  assert.is(await put(writer, VIEW), '403 INSUFFICIENT_PERMISSIONS');
  assert.is(await put(writer, open), '201');
  assert.is(await put(writer, VIEW), '403 INSUFFICIENT_PERMISSIONS');
  assert.is(await put(guarded.admin, VIEW), '200');
  assert.is(await put(writer, open), '403 INSUFFICIENT_PERMISSIONS');
  assert.is(await put(writer, { ...VIEW, from: [{ template: 'tables' }] }), '403 INSUFFICIENT_PERMISSIONS');
  assert.is((await guarded.as(writer, 'DELETE', path)).outcome, '403 INSUFFICIENT_PERMISSIONS');
  assert.is(await put(guarded.admin, open), '200');
  assert.is((await guarded.as(writer, 'DELETE', path)).status, 204);
  const preview = await guarded.as(writer, 'POST', '/gateway/views/preview', { body: { ...open, confirm } });
  assert.is(preview.status, 200, 'a preview stores nothing');
  await guarded.close();
});

test.run();
