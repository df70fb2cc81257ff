// What stands around the MCP endpoint: paths, door, body, counting, errors, sockets. The endpoint itself is a fake one
// that says what each test needs; what a real one says is in spec/protocol and in the journeys.

import * as assert from 'uvu/assert';
import { rateLimitExceeded, sessionNotFound } from '../../../src/domain/error-catalogue.ts';
import { type FakeMcp, fakeMcp } from '../../helpers/fake-mcp.ts';
import { startWithAccounts } from '../../helpers/http-accounts.ts';
import { type Ask, startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the way to the MCP endpoint');

const PATHS = ['/mcp/demo', '/mcp/demo/mcp', '/mcp'];
const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const windowOf = ({ headers }: { headers: Headers }) =>
  ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`));

/** An app without authentication, with the template `demo`. */
async function start(answer?: FakeMcp['answer'], options: Parameters<typeof startApp>[0] = {}) {
  const mcp = fakeMcp(answer);
  const app = await startApp({ mcp, gateway: { templates: ['demo', 'mcp', 'tools'] }, ...options });
  return { ...app, mcp };
}

test('is the same on every path, with every method', async () => {
  const app = await start();
  const statuses = [];
  for (const path of PATHS) {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const ask = { ...(method === 'POST' ? { body: MESSAGE } : {}), headers: { 'Mcp-Session-Id': path } };
      statuses.push((await app.ask(method, path, ask)).status);
    }
  }
  await app.close();
  assert.equal(statuses, [200, 200, 200, 200, 200, 200, 200, 200, 200]);
  const text = JSON.stringify(MESSAGE);
  assert.equal(
    app.mcp.requests.map(({ method, template, headers, body, principal }) => [
      ...[method, template, headers['mcp-session-id'], Buffer.from(body).toString(), principal.name],
    ]),
    PATHS.flatMap((path) => {
      const template = path === '/mcp' ? undefined : 'demo';
      return [
        ['POST', template, path, text, 'anonymous'],
        ['GET', template, path, '', 'anonymous'],
        ['DELETE', template, path, '', 'anonymous'],
      ];
    }),
  );
});

test('neither hides the operations of a template nor is hidden by them, whatever a template is called', async () => {
  const app = await start();
  await app.serve('mcp', 'one');
  const seen = async (method: string, path: string, ask: Ask = {}) => {
    const before = app.mcp.requests.length;
    const { status } = await app.ask(method, path, ask);
    const [asked] = app.mcp.requests.slice(before);
    return [status, asked === undefined ? 'elsewhere' : (asked.template ?? 'all')];
  };
  const body = { name: 'name' };
  assert.equal(await seen('GET', '/mcp/mcp/health'), [200, 'elsewhere']);
  assert.equal(await seen('GET', '/mcp/mcp/tools/list'), [200, 'elsewhere']);
  assert.equal(await seen('POST', '/mcp/mcp/tools/call', { body }), [200, 'elsewhere']);
  assert.equal(await seen('POST', '/mcp/mcp', { body: MESSAGE }), [200, 'mcp']);
  assert.equal(await seen('POST', '/mcp/mcp/mcp', { body: MESSAGE }), [200, 'mcp']);
  assert.equal(await seen('POST', '/mcp/tools', { body: MESSAGE }), [200, 'tools']);
  assert.equal(await seen('POST', '/mcp/', { body: MESSAGE }), [200, 'all']);
  assert.equal(await seen('POST', '/mcp/demo/mcp/mcp', { body: MESSAGE }), [404, 'elsewhere']);
  assert.equal(await seen('POST', '/mcp/demo/tools', { body: MESSAGE }), [404, 'elsewhere']);
  await app.close();
});

test('lists its methods, and is not taken by any other', async () => {
  const app = await start();
  for (const path of PATHS) {
    const options = await app.ask('OPTIONS', path);
    assert.equal([options.status, options.headers.get('allow')], [204, 'DELETE, GET, OPTIONS, POST'], path);
    for (const method of ['HEAD', 'PUT', 'PATCH']) {
      const { status, headers } = await app.ask(method, path);
      assert.equal([status, headers.get('allow')], [405, 'DELETE, GET, OPTIONS, POST'], `${method} ${path}`);
    }
  }
  await app.close();
  assert.equal(app.mcp.requests, []);
});

test('counts requests, not posts: what is free is free, and a list counts for all in it', async () => {
  const mcp = fakeMcp(async ({ method, body, consumeRateLimit }, reply) => {
    if (method === 'GET') {
      reply.stream().end();
      return;
    }
    const messages: unknown = JSON.parse(Buffer.from(body).toString() || '[]');
    const count = Array.isArray(messages) ? messages.length : 1;
    await consumeRateLimit(count);
    executed += count;
    if (count === 0) reply.empty(method === 'DELETE' ? 200 : 202);
    else reply.json(200, '[]');
  });
  let executed = 0;
  const limits = { userPerHour: 8, apiKeyPerHour: 8 };
  const app = await startWithAccounts({ mcp, limits, gateway: { templates: ['demo'] } });
  const post = (body: unknown) => app.as(app.user, 'POST', '/mcp/demo', { body });
  const outcomes = [];
  for (const answer of [
    await post([]),
    await app.as(app.user, 'GET', '/mcp/demo'),
    await post(MESSAGE),
    await post([1, 2, 3, 4, 5]),
    await app.as(app.user, 'DELETE', '/mcp/demo'),
  ]) {
    outcomes.push([answer.status, ...windowOf(answer)]);
  }
  assert.equal(outcomes, [
    [202, '8', '8'],
    [200, '8', '8'],
    [200, '8', '7'],
    [200, '8', '2'],
    [200, '8', '2'],
  ]);
  const over = await post([1, 2, 3]);
  assert.equal([over.status, ...windowOf(over), executed], [429, '8', '2', 6]);
  assert.equal([over.body.jsonrpc, over.body.id], ['2.0', null]);
  const retryAfter = Number(over.headers.get('retry-after'));
  assert.ok(retryAfter > 3_500 && retryAfter <= 3_600);
  // Who is over the limit may still listen, and end what is open.
  assert.equal((await app.as(app.user, 'DELETE', '/mcp/demo')).status, 200);
  await app.close();
});

test('answers what the endpoint throws, at once or later, without what nobody should read', async () => {
  const thrown: unknown[] = [sessionNotFound(), rateLimitExceeded(5, 99), new TypeError('a secret')];
  for (const fail of [
    (error: unknown) => {
      throw error;
    },
    (error: unknown) => Promise.reject(error),
  ]) {
    let next = 0;
    const throwNext = () => {
      next += 1;
      return fail(thrown[next - 1]);
    };
    const app = await start(throwNext, { logLevel: 'error' });
    const answers = [];
    for (const _ of thrown) answers.push(await app.ask('POST', '/mcp', { body: MESSAGE }));
    assert.equal(
      answers.map(({ status, body }) => [status, Object(body.error).code]),
      [
        [404, -32_001],
        [429, 429],
        [500, -32_603],
      ],
    );
    assert.not.match(String(answers[2]?.text), /secret/);
    assert.equal(
      app.log.map(({ msg }) => msg),
      ['request failed'],
    );
    await app.close();
  }
});

test('sends clients that look for an OAuth server away, in JSON', async () => {
  const app = await startWithAccounts({ gateway: { templates: ['demo'] } });
  for (const path of [
    ...['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp/demo'],
    ...['/.well-known/oauth-authorization-server', '/.well-known/oauth-authorization-server/mcp/demo'],
    ...['/.well-known/openid-configuration', '/.well-known/openid-configuration/mcp/demo'],
    '/mcp/demo/.well-known/openid-configuration',
  ]) {
    const { status, body, headers } = await app.ask('GET', path);
    assert.equal([status, body.error_code], [404, 'NOT_FOUND'], path);
    assert.is(headers.get('content-type'), 'application/json');
  }
  const register = await app.ask('POST', '/register', { body: { redirect_uris: [] } });
  assert.equal([register.status, register.body.error_code], [404, 'NOT_FOUND']);
  await app.close();
});

test.run();
