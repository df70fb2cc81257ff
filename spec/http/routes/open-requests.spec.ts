// A request over REST that waits for its backend ends when its caller may no longer make it. Event streams: spec/http/sse/events.spec.ts.

import * as assert from 'uvu/assert';
import { HeldTool, serving, text } from '../../helpers/backends/function-backend.ts';
import { until } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { type Answer, appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('open requests over REST');
const app = appFor(test, () => startWithAccounts(), 'each');

const REQUESTS = {
  'a call of a template': ['POST', '/mcp/demo/tools/call', { name: 'held' }],
  'a call of a server': ['POST', '/tools/call', { server_id: 'one', tool_name: 'held' }],
  'a list': ['GET', '/mcp/demo/prompts/list', undefined],
} as const;

/** Serves `held`, whose calls wait, as do lists of prompts, and `quick`. */
async function serveHeld(): Promise<HeldTool> {
  const held = new HeldTool();
  const tools = serving({ held: held.body, quick: () => text('quick') });
  await app.serve('demo', 'one', (request, context) =>
    request.method === 'prompts/list' ? held.body({}, context) : tools(request, context),
  );
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
