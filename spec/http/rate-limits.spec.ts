// What callers with a limit see of it, whatever they ask for. Counting itself is src/auth.

import * as assert from 'uvu/assert';
import { type AccountsFixture, type Credentials, startWithAccounts } from '../helpers/http-accounts.ts';
import type { Answer } from '../helpers/http-app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('rate limits');

const windowOf = ({ headers }: Answer) =>
  ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}`));

const call = (app: AccountsFixture, who: Credentials, headers: Record<string, string> = {}) =>
  app.as(who, 'POST', '/mcp/demo/tools/call', { body: { name: 'name' }, headers });

test('are on every answer to a limited caller, and every request counts', async () => {
  const app = await startWithAccounts();
  await app.serve('demo', 'one');
  const startSeconds = Date.now() / 1000;
  const answers: [what: string, status: number, answer: Answer][] = [
    ['a result', 200, await call(app, app.user)],
    ['an event stream', 200, await call(app, app.user, { accept: 'text/event-stream' })],
    ['no body', 200, await app.as(app.user, 'HEAD', '/servers')],
    ['a scope that is missing', 403, await app.as(app.user, 'DELETE', '/servers/one')],
    ['a template that is not there', 404, await app.as(app.user, 'GET', '/mcp/none/health')],
    ['broken JSON', 400, await app.as(app.user, 'POST', '/tools/call', { body: '{' })],
    ['a wrong shape', 422, await app.as(app.user, 'POST', '/tools/call', { body: {} })],
    [
      'a wrong type',
      415,
      await app.as(app.user, 'POST', '/tools/call', { body: 'x', headers: { 'content-type': 'text/plain' } }),
    ],
    [
      'a tool that fails',
      500,
      await app.as(app.user, 'POST', '/tools/call', { body: { server_id: 'one', tool_name: 'fail' } }),
    ],
  ];
  for (const [index, [what, status, answer]] of answers.entries()) {
    const [limit, remaining, reset] = windowOf(answer);
    assert.is(answer.status, status, what);
    assert.equal([limit, remaining], ['1000', String(999 - index)], what);
    const inSeconds = Number(reset) - startSeconds;
    assert.ok(inSeconds > 3_590 && inSeconds <= 3_602, what);
  }
  await app.close();
});

test('end with 429 and the time to wait, also where the caller may not go anyway', async () => {
  const app = await startWithAccounts({ limits: { userPerHour: 2, apiKeyPerHour: 3 } });
  await app.serve('demo', 'one');
  const statuses = [];
  for (let time = 0; time < 4; time += 1) statuses.push((await call(app, app.user)).status);
  assert.equal(statuses, [200, 200, 429, 429]);
  for (const answer of [await call(app, app.user), await app.as(app.user, 'GET', '/auth/users')]) {
    assert.equal([answer.status, answer.body.error_code], [429, 'RATE_LIMIT_EXCEEDED']);
    assert.equal(windowOf(answer).slice(0, 2), ['2', '0']);
    const retryAfter = Number(answer.headers.get('retry-after'));
    assert.ok(retryAfter > 3_500 && retryAfter <= 3_600);
    assert.is(answer.body.request_id, answer.headers.get('x-request-id'));
  }
  await app.close();
});

test('are counted for each user and each key, not for each token', async () => {
  const app = await startWithAccounts({ limits: { userPerHour: 10, apiKeyPerHour: 20 } });
  const remaining = async (who: Credentials) => windowOf(await app.as(who, 'GET', '/stats'))[1];
  await app.createUser('eve');
  const [ada, other, eve] = [app.user, await app.login('ada'), await app.login('eve')];
  const [one, two] = [await app.key(['gateway:read']), await app.key(['gateway:read'])];
  const seen = [];
  for (const who of [ada, other, eve, one, one, two, ada]) seen.push(await remaining(who));
  assert.equal(seen, ['9', '8', '9', '19', '18', '19', '7']);
  await app.close();
});

test.run();
