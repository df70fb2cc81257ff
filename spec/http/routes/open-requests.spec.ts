// A request that waits for its backend ends at once when its caller may no longer make it. Event streams: spec/http/sse/events.spec.ts.

import * as assert from 'uvu/assert';
import { modernRequest } from '../../gateway/mcp/post.ts';
import { HeldTool, serving, text } from '../../helpers/backends/function-backend.ts';
import { until } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { type Answer, appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('open requests');
// No stream is checked by itself.
const app = appFor(test, () => startWithAccounts({ callerCheckMs: 1e9 }), 'each');

const REQUESTS = {
  'a call of a template': ['POST', '/mcp/demo/tools/call', { name: 'held' }],
  'a call of a server': ['POST', '/tools/call', { server_id: 'one', tool_name: 'held' }],
  'a list': ['GET', '/mcp/demo/prompts/list', undefined],
} as const;

/** Serves `held` and `telling`, whose calls wait, as do lists of prompts, and `quick`. `telling` reports progress first. */
async function serveHeld(): Promise<HeldTool> {
  const held = new HeldTool();
  const tools = serving({ held: held.body, telling: held.body, quick: () => text('quick') });
  await app.serve('demo', 'one', (request, context) => {
    const { progressToken = undefined } = Object(request.params?._meta);
    if (request.params?.name === 'telling') {
      context.notify('notifications/progress', { progressToken, progress: 1 });
      return held.body({}, context);
    }
    return request.method === 'prompts/list' ? held.body({}, context) : tools(request, context);
  });
  return held;
}

/** Sends that request of each caller, and resolves when the backend has all of them. */
async function send(
  held: HeldTool,
  [method, path, body]: (typeof REQUESTS)[keyof typeof REQUESTS],
  callers: readonly Credentials[],
): Promise<Promise<Answer>[]> {
  const answers = callers.map((who) => app.as(who, method, path, { body }));
  await until(() => held.waiting === callers.length, 'the backend has them');
  return answers;
}

const AS_STREAMS = {
  'a call over REST with an event stream': (name: string) => ({
    path: '/mcp/demo/tools/call',
    sent: { body: { name }, headers: { accept: 'text/event-stream' } },
  }),
  'a call without a session': (name: string) => {
    const { message, headers } = modernRequest('tools/call', { name }, { progressToken: 'p' });
    return { path: '/mcp/demo', sent: { body: { jsonrpc: '2.0', id: 1, ...message }, headers } };
  },
} as const;

for (const [what, requestOf] of Object.entries(AS_STREAMS))
  for (const hasBegun of [false, true])
    test(`end ${what} when its key is revoked, ${hasBegun ? 'after' : 'before'} its stream has begun`, async () => {
      const held = await serveHeld();
      const { path, sent } = requestOf(hasBegun ? 'telling' : 'held');
      const [key, otherKey] = [await app.key(['tools:call']), await app.key(['tools:call'])];
      const [revoked, other] = [key, otherKey].map((who) => app.as(who, 'POST', path, sent));
      await until(() => held.waiting === 2, 'the backend has both');
      await revoke(key);
      const answer = await revoked;
      assert.is(answer?.status, hasBegun ? 200 : 401, answer?.text);
      await until(() => held.cancelled === 1, 'the backend sees the cancellation');
      held.answerAll();
      assert.match((await other)?.text ?? '', 'held');
      assert.is(held.cancelled, 1);
      await until(() => app.app.openCallers().size === 0, 'none is left');
    });

test('end the event stream of a key that lost a template', async () => {
  const key = await app.key(['gateway:read']);
  const stream = app.as(key, 'GET', '/events?follow=true');
  await until(() => app.app.openCallers().size === 1, 'it is open');
  const change = { body: { templates: ['other'] } };
  assert.is((await app.as(app.admin, 'PATCH', `/auth/api-keys/${idOf(key)}`, change)).status, 200);
  assert.match((await stream).text, 'INSUFFICIENT_PERMISSIONS');
});

test('a call without a session gets the answer of its path when its key loses the template', async () => {
  const held = await serveHeld();
  const key = await app.key(['tools:call']);
  const { path, sent } = AS_STREAMS['a call without a session']('held');
  const answer = app.as(key, 'POST', path, sent);
  await until(() => held.waiting === 1, 'the backend has it');
  const change = { body: { templates: ['other'] } };
  assert.is((await app.as(app.admin, 'PATCH', `/auth/api-keys/${idOf(key)}`, change)).status, 200);
  const { status, body } = await answer;
  assert.equal([status, Object(body).jsonrpc], [404, '2.0']);
});

const idOf = (key: Credentials) => /sd_([0-9a-f]+)_/.exec(String(key['x-api-key']))?.[1] ?? '';
const revoke = (key: Credentials) => app.as(app.admin, 'DELETE', `/auth/api-keys/${idOf(key)}`);

for (const [what, request] of Object.entries(REQUESTS))
  test(`end ${what} when its key is revoked, and no request of others`, async () => {
    const held = await serveHeld();
    const keys = [await app.key(['tools:call']), await app.key(['tools:call'])] as const;
    const [revoked, other] = await send(held, request, keys);
    assert.is(app.app.openCallers().size, 2);
    assert.is((await revoke(keys[0])).status, 204);
    assert.is((await revoked)?.outcome, '401 INVALID_CREDENTIALS');
    await until(() => held.cancelled === 1, 'the backend sees the cancellation');
    held.answerAll();
    assert.is((await other)?.status, 200);
    assert.is(held.cancelled, 1);
    await until(() => app.app.openCallers().size === 0, 'none is left');
  });

for (const [what, change, outcome] of [
  ['is disabled', { is_active: false }, '401 INVALID_CREDENTIALS'],
  ['gets another password', { password: 'another horse' }, '401 INVALID_CREDENTIALS'],
  ['gets another role', { role: 'admin' }, '401 INVALID_CREDENTIALS'],
  ['loses the template', { templates: ['other'] }, '404 TEMPLATE_NOT_FOUND'],
  ['gets other tools', { tools: ['demo/other'] }, '403 INSUFFICIENT_PERMISSIONS'],
  ['keeps the template', { templates: ['demo', 'other'] }, '200'],
  ['gets another address', { email: 'new@example.org' }, '200'],
] as const)
  test(`end, or go on, when their user ${what}`, async () => {
    const held = await serveHeld();
    const { id } = await app.createUser('bob');
    const bob = await app.login('bob');
    const answers = [
      ...(await send(held, REQUESTS['a call of a template'], [bob])),
      app.as(bob, 'POST', '/tools/call', { body: { server_id: 'one', tool_name: 'held' } }),
    ];
    await until(() => held.waiting === 2, 'the backend has both');
    assert.is((await app.as(app.admin, 'PATCH', `/auth/users/${id}`, { body: change })).status, 200);
    if (outcome === '200') {
      await app.as(app.admin, 'GET', '/auth/me');
      held.answerAll();
    }
    for (const answer of answers) assert.is((await answer).outcome, outcome);
    assert.is(held.cancelled, outcome === '200' ? 0 : 2);
  });

test('end a connection test when its key is revoked', async () => {
  const key = await app.key(['gateway:write', 'admin']);
  const command = [process.execPath, '-e', 'setInterval(() => {}, 1000)'];
  const body = { template_name: 'new', command: command[0], args: command.slice(1) };
  const answer = app.as(key, 'POST', '/gateway/test', { body });
  await until(() => app.app.openCallers().size === 1, 'it runs');
  await revoke(key);
  assert.is((await answer).outcome, '401 INVALID_CREDENTIALS');
});

test('log a call that was ended as a failure with the code of its answer', async () => {
  const logged = await startWithAccounts({ logLevel: 'info' });
  const held = new HeldTool();
  await logged.serve('demo', 'one', serving({ held: held.body }));
  const key = await logged.key(['tools:call']);
  const answer = logged.as(key, 'POST', '/mcp/demo/tools/call', { body: { name: 'held' } });
  await until(() => held.waiting === 1, 'the backend has it');
  await logged.auth.accounts.revokeApiKey(idOf(key));
  assert.is((await answer).status, 401);
  const line = logged.log.find(({ rpc_method }) => rpc_method === 'tools/call');
  assert.equal([line?.outcome, line?.error_code], ['failed', 'INVALID_CREDENTIALS']);
  await logged.close();
});

test.run();
