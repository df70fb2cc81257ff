// Invalid fields of bodies and queries: each is refused with 422, which names the field and the kind of error, and changes
// nothing. Bodies that are invalid as a whole: app.spec.ts; commands and endpoints that are not allowed: routes/.

import * as assert from 'uvu/assert';
import { PASSWORD, startWithAccounts } from '../helpers/http/accounts.ts';
import { appFor } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';
import { withRawServer } from '../transports/raw-server.ts';
import { type Answer, result, serving } from '../transports/scripted-server.ts';

const test = suite('bad fields');
const app = appFor(test, () => startWithAccounts());
test.before(() => app.serve('demo', 'one'));

const key = { name: 'ci', permissions: ['tools:call'] };
const user = { username: 'refused', email: 'x@localhost', password: PASSWORD };
const inDemo = (instance: object, more: object = {}) => ({ template_name: 'demo', instance, ...more });
const server = (config: unknown, more: object = {}) => ({ template_name: 'demo', config, ...more });
const endpoint = 'http://127.0.0.1:1';
const tool = (more: object) => ({ server_id: 'one', tool_name: 'x', ...more });
const completion = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'a' } };

type Case = readonly [body: unknown, issue: string];

/** By request: a body (a string is a form; undefined is not a body), and field and kind of the first issue. */
const TABLE: Readonly<Record<string, readonly Case[]>> = {
  'POST /auth/api-keys': [
    [{ ...key, name: undefined }, 'body.name missing'],
    [{ ...key, name: '' }, 'body.name string_too_short'],
    [{ ...key, name: ' \u00a0' }, 'body.name string_pattern_mismatch'],
    [{ ...key, name: 'a\u202eb' }, 'body.name string_pattern_mismatch'],
    [{ ...key, permissions: [] }, 'body.permissions too_short'],
    [{ ...key, permissions: ['tools:call', 'root'] }, 'body.permissions.1 enum'],
    [{ ...key, expires_at: '2999-01-01T00:00:00' }, 'body.expires_at datetime_parsing'],
    [{ ...key, expires_at: '2020-01-01T00:00:00Z' }, 'body.expires_at datetime_future'],
    [{ ...key, owner_id: 'x' }, 'body.owner_id extra_forbidden'],
  ],
  'POST /auth/users': [
    [{ ...user, username: undefined }, 'body.username missing'],
    [{ ...user, password: 'ü'.repeat(37) }, 'body.password string_too_long'],
    ...['', '.ada', 'a b', 'ü', 'a'.repeat(65)].map((username): Case => {
      return [{ ...user, username }, 'body.username string_pattern_mismatch'];
    }),
    ...['', '@', 'a@', '@b', 'a b@c', 'a@b@c', 'a\u001bb@c', 'a\u202eb@c', 'a@b\u2066'].map((email): Case => {
      return [{ ...user, email }, 'body.email string_pattern_mismatch'];
    }),
    [{ ...user, role: 'root' }, 'body.role enum'],
    [{ ...user, role: 'user', is_superuser: true }, 'body.is_superuser value_error'],
    [{ ...user, templates: ['Bad'] }, 'body.templates.0 string_pattern_mismatch'],
    [{ ...user, password_hash: 'x' }, 'body.password_hash extra_forbidden'],
  ],
  'POST /auth/login': [
    ['x=1', 'body.username missing'],
    ['username=ada&username=eve&password=x', 'body value_error'],
    ['username=ada%00&password=x', 'body string_unicode'],
    [`username=ada&password=${'x'.repeat(2_000)}`, 'body.password string_too_long'],
    ['', 'body missing'],
    [{ username: 'ada', password: null }, 'body.password string_type'],
  ],
  'POST /auth/proof': [
    [{ key_id: 'x' }, 'body.nonce missing'],
    [{ key_id: 'x/y', nonce: 'n'.repeat(22) }, 'body.key_id string_pattern_mismatch'],
    [{ key_id: 'x', nonce: 'short' }, 'body.nonce string_pattern_mismatch'],
  ],
  'POST /gateway/register': [
    [{}, 'body.template_name missing'],
    [{ template_name: 'Demo', instance: {} }, 'body.template_name string_pattern_mismatch'],
    [inDemo({ weight: 0 }), 'body.instance.weight greater_than_equal'],
    [{ template_name: 'demo', endpoint: 'http://x', url: 'x' }, 'body.url extra_forbidden'],
    [inDemo({ endpoint: 'ftp://x' }), 'body.instance.endpoint url_scheme'],
    [{ template_name: 'demo', endpoint: 'ftp://x' }, 'body.endpoint url_scheme'],
    [inDemo({}, { load_balancer: { strategy: 'x' } }), 'body.load_balancer.strategy enum'],
  ],
  'POST /gateway/register?wait=x': [[inDemo({ endpoint }), 'query.wait int_parsing']],
  'POST /gateway/register?wait=-1': [[inDemo({ endpoint }), 'query.wait greater_than_equal']],
  'POST /gateway/register?wait=301': [[inDemo({ endpoint }), 'query.wait less_than_equal']],
  'POST /gateway/test': [[{ template_name: 'demo', endpoint: 'ftp://x' }, 'body.endpoint url_scheme']],
  'POST /servers': [
    [{}, 'body.template_name missing'],
    [server([]), 'body.config dict_type'],
    [server({ endpoint: 1 }), 'body.config.endpoint string_type'],
    [server({ endpoint: 'ftp://x' }), 'body.config.endpoint url_scheme'],
    [server({ endpoint }, { instance_metadata: { weight: 0 } }), 'body.instance_metadata.weight value_error'],
    [server({ unheard_of: 1 }), 'body.config.unheard_of extra_forbidden'],
    [{ template_name: 'x', endpoint: 'http://x' }, 'body.endpoint extra_forbidden'],
  ],
  'GET /servers?include_health=maybe': [[undefined, 'query.include_health bool_parsing']],
  'GET /servers?limit=0': [[undefined, 'query.limit greater_than_equal']],
  'GET /servers?limit=1001': [[undefined, 'query.limit less_than_equal']],
  'GET /servers?cursor=': [[undefined, 'query.cursor string_too_short']],
  'GET /gateway/audit?limit=0': [[undefined, 'query.limit greater_than_equal']],
  'GET /gateway/audit?limit=1001': [[undefined, 'query.limit less_than_equal']],
  'GET /gateway/audit?cursor=': [[undefined, 'query.cursor string_too_short']],
  'GET /gateway/audit?limt=2': [[undefined, 'query.limt extra_forbidden']],
  'POST /tools/call': [
    [tool({ server_id: undefined }), 'body.server_id missing'],
    [tool({ tool_name: '' }), 'body.tool_name string_too_short'],
    [tool({ arguments: [] }), 'body.arguments dict_type'],
    [tool({ name: 'y' }), 'body.name extra_forbidden'],
  ],
  'POST /mcp/demo/tools/call': [
    [{}, 'body.name missing'],
    [{ name: '' }, 'body.name string_too_short'],
    [{ name: 'x', arguments: [] }, 'body.arguments dict_type'],
    [{ name: 'x', argument: {} }, 'body.argument extra_forbidden'],
  ],
  'POST /mcp/demo/resources/read': [
    [{}, 'body.uri missing'],
    [{ uri: '' }, 'body.uri string_too_short'],
    [{ uri: 'x:y', other: 1 }, 'body.other extra_forbidden'],
  ],
  'POST /mcp/demo/prompts/get': [[{ name: '' }, 'body.name string_too_short']],
  'POST /mcp/demo/completion/complete': [
    [{}, 'body.ref missing'],
    [{ ...completion, ref: 'greet' }, 'body.ref dict_type'],
    [{ ...completion, ref: { type: 'x' } }, 'body.ref.type enum'],
  ],
  'PATCH /gateway/templates/demo': [
    [{ strategy: 'fastest' }, 'body.strategy enum'],
    [{ timeout: 0 }, 'body.timeout greater_than_equal'],
    [{ timeout: 1.5 }, 'body.timeout int_from_float'],
    [{ session: 'private' }, 'body.session enum'],
    [{ session_failover: true }, 'body.session_failover enum'],
    [{ max_retries: 11 }, 'body.max_retries less_than_equal'],
    [{ load_balancer: null }, 'body.load_balancer dict_type'],
    [{ load_balancer: {}, timeout: 3 }, 'body.timeout extra_forbidden'],
    [{ load_balancer: { sesion: 'shared' } }, 'body.load_balancer.sesion extra_forbidden'],
  ],
  'PATCH /gateway/instances/demo/one': [
    [{ endpoint: 'http://x' }, 'body.endpoint extra_forbidden'],
    [{ weight: 0 }, 'body.weight greater_than_equal'],
    [{ metadata: [] }, 'body.metadata dict_type'],
  ],
};

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** The state that a refused request could have changed. */
async function everything(): Promise<readonly string[]> {
  const places = ['/auth/users', '/auth/api-keys', '/servers', '/gateway/registry'];
  return Promise.all(places.map(async (path) => (await app.as(app.admin, 'GET', path)).text));
}

for (const [request, rows] of Object.entries(TABLE))
  test(`of ${request} are refused with 422, which names the field and the kind of error`, async () => {
    const [method = '', path = ''] = request.split(' ');
    const before = await everything();
    for (const [body, issue] of rows) {
      const headers = typeof body === 'string' ? FORM : {};
      const answer = await app.as(app.admin, method, path, { body, headers });
      assert.equal([answer.outcome, answer.issue], ['422 VALIDATION_ERROR', issue], JSON.stringify(body));
    }
    assert.equal(await everything(), before);
  });

/** By request: bodies whose null fields are absent. */
const NULLS: Readonly<Record<string, readonly object[]>> = {
  'POST /gateway/register': [
    inDemo(
      { id: 'nulls', endpoint, command: null, args: null, era: null, weight: null },
      { load_balancer: null },
    ),
    { template_name: 'demo', id: 'nulls', endpoint, headers: null, metadata: null, transport: null },
  ],
  'POST /servers': [server({ endpoint, env_vars: null, force: null }, { instance_metadata: null })],
  'PATCH /gateway/instances/demo/one': [{ weight: null, metadata: null, era: null }],
  'POST /mcp/demo/tools/call': [{ name: 'name', arguments: null, _meta: null }],
};

for (const [request, bodies] of Object.entries(NULLS))
  test(`of ${request} are absent if they are null and optional`, async () => {
    const [method = '', path = ''] = request.split(' ');
    for (const body of bodies) {
      const { status, text } = await app.as(app.admin, method, path, { body });
      assert.ok(status === 200 || status === 201, `${status} ${text}`);
    }
  });

test('of a completion that are null do not reach the server', async () => {
  const asked: unknown[] = [];
  const complete: Answer = (response, { params, ...rest }) => {
    asked.push(params?.ref);
    result({ completion: { values: [] } })(response, rest);
  };
  const capabilities = { completions: {}, prompts: {} };
  const initialize = result({ protocolVersion: '2025-11-25', capabilities });
  const answers = serving({ initialize, 'completion/complete': complete });
  await withRawServer(answers, async ({ url }) => {
    await app.gateway.register('completing', { endpoint: url }, { waitMs: 10_000 });
    for (const ref of [
      { type: 'ref/prompt', name: 'greet', uri: null },
      { type: 'ref/resource', name: null, uri: 'x:{y}' },
    ]) {
      const body = { ...completion, ref, context: null };
      const { status } = await app.as(app.admin, 'POST', '/mcp/completing/completion/complete', { body });
      assert.is(status, 200);
    }
    assert.equal(asked, [
      { type: 'ref/prompt', name: 'greet' },
      { type: 'ref/resource', uri: 'x:{y}' },
    ]);
  });
});

test('of many characters are refused without a long look at their pattern', async () => {
  const body = { name: `${'n'.repeat(400_000)}\u200b`, permissions: ['tools:call'] };
  assert.is((await app.as(app.admin, 'POST', '/auth/api-keys', { body })).status, 422);
});

test.run();
