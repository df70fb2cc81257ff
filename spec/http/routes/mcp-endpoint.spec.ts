// What stands around the MCP endpoint: paths, door, body, counting, errors, sockets. The endpoint itself is a fake one
// that says what each test needs; what a real one says is in spec/protocol and in the journeys.

import * as assert from 'uvu/assert';
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

test.run();
