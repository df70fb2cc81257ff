// Every route of the table with every kind of caller. The expectations are written by hand, so that a scope that changes by
// mistake is noticed; a new route needs a row here.

import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { SCOPES, type Scope } from '../../src/domain/accounts/account.ts';
import { ROUTES } from '../../src/http/routes/index.ts';
import { modern } from '../helpers/clients/mcp-messages.ts';
import { folderOfAll } from '../helpers/folder.ts';
import { type Credentials, PASSWORD, startWithAccounts } from '../helpers/http/accounts.ts';
import { appFor } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('scopes of the routes');
const folder = folderOfAll(test);
const registryFile = folder('registry.json');
const env = { DOCKER_HOST: '', CONTAINER_HOST: '', HOME: folder() };
const gateway = { discovery: { env, registryFile } };
const app = appFor(test, () =>
  startWithAccounts({ consoleFolder: new URL('none/', import.meta.url), gateway }),
);
// A sync would add this one to `demo`.
writeFileSync(registryFile, '{"templates":{"demo":{"instances":{"two":{"endpoint":"http://127.0.0.1:1"}}}}}');
test.before(() => app.serve('demo', 'one'));

/** The answer of a route to authorized callers, and to callers that may use only another template. */
interface Row {
  /** Any of them is enough; an empty list is open to all. */
  readonly needs: readonly Scope[];
  readonly admitted: string;
  /** Of a caller with all scopes that may not use `demo`. Default: as admitted, without data of `demo`. */
  readonly elsewhere?: string;
  readonly body?: () => unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Values of the path, where they are not `demo` and `one`, which callers of other templates always name. */
  readonly params?: Readonly<Record<string, string>>;
}

const read: readonly Scope[] = ['gateway:read'];
const write: readonly Scope[] = ['gateway:write'];
const call: readonly Scope[] = ['tools:call'];
const lists: readonly Scope[] = ['gateway:read', 'tools:call'];
const admin: readonly Scope[] = ['admin'];
const open: readonly Scope[] = [];
const hidden = { elsewhere: '404 TEMPLATE_NOT_FOUND' };

let count = 0;
const unique = (): string => {
  count += 1;
  return `made-${count}`;
};
const nobody = { user_id: '00000000-0000-4000-8000-000000000000', key_id: '0000000000000000' };

const listing = modern('tools/list');
const message = { body: () => listing.body, headers: listing.headers };
/** Without it an admitted GET opens a stream. */
const noStream = { headers: { accept: 'application/json' } };
const toDemo = { admitted: '200', ...hidden };

/** The same row for several routes. */
function rows(routes: readonly string[], row: Row): Readonly<Record<string, Row>> {
  return Object.fromEntries(routes.map((route) => [route, row]));
}

const ROWS: Readonly<Record<string, Row>> = {
  ...rows(['GET /mcp', 'GET /mcp/sse'], { needs: call, admitted: '406', ...noStream }),
  ...rows(['GET /mcp/:template', 'GET /mcp/:template/mcp', 'GET /mcp/:template/sse'], {
    ...{ needs: call, admitted: '406', ...hidden, ...noStream },
  }),
  'DELETE /mcp': { needs: call, admitted: '400' },
  ...rows(['DELETE /mcp/:template', 'DELETE /mcp/:template/mcp'], {
    needs: call,
    admitted: '400',
    ...hidden,
  }),
  'POST /mcp': { needs: call, admitted: '200', ...message },
  ...rows(['POST /mcp/:template', 'POST /mcp/:template/mcp'], { needs: call, ...toDemo, ...message }),
  'POST /mcp/:template/messages': { needs: call, admitted: '404', ...hidden, ...message },
  'POST /mcp/:template/tools/call': { needs: call, body: () => ({ name: 'name' }), ...toDemo },
  'POST /mcp/:template/resources/read': {
    ...{ needs: call, admitted: '404 RESOURCE_NOT_FOUND', ...hidden },
    body: () => ({ uri: 'x:none' }),
  },
  'POST /mcp/:template/prompts/get': {
    ...{ needs: call, admitted: '404 PROMPT_NOT_FOUND', ...hidden },
    body: () => ({ name: 'none' }),
  },
  'POST /mcp/:template/completion/complete': {
    ...{ needs: call, ...toDemo },
    body: () => ({ ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: 'a' } }),
  },
  ...rows(
    [
      ...['GET /mcp/:template/tools/list', 'GET /mcp/:template/resources/list'],
      ...['GET /mcp/:template/resources/templates/list', 'GET /mcp/:template/prompts/list'],
    ],
    { needs: lists, ...toDemo },
  ),
  ...rows(
    ['GET /mcp/:template/health', 'GET /gateway/connect/:template', 'GET /gateway/templates/:template'],
    { needs: read, ...toDemo },
  ),
  ...rows(
    [
      ...['GET /gateway/health', 'GET /health', 'GET /', 'GET /livez', 'GET /readyz'],
      ...['GET /openapi.json', 'GET /docs', 'GET /redoc'],
    ],
    { needs: open, admitted: '200' },
  ),
  // Clients cannot sign in at this app: see sign-in.spec.ts.
  ...rows(
    [
      ...['GET /.well-known/oauth-protected-resource', 'GET /.well-known/oauth-protected-resource/mcp'],
      'GET /.well-known/oauth-protected-resource/mcp/:template',
    ],
    { needs: open, admitted: '404 NOT_FOUND' },
  ),
  'GET /docs/assets/:file': { needs: open, admitted: '200', params: { file: 'swagger-ui.min.css' } },
  'GET /redoc/assets/:file': { needs: open, admitted: '200', params: { file: 'redoc.standalone.js' } },
  ...rows(['GET /console', 'GET /console/*path'], {
    ...{ needs: open, admitted: '404 NOT_FOUND', params: { path: 'templates' } },
  }),
  ...rows(
    [
      ...[
        'GET /metrics',
        'GET /events',
        'GET /gateway/stats',
        'GET /stats',
        'GET /gateway/sessions',
        'GET /gateway/nodes',
        'GET /gateway/history',
        'GET /gateway/template-settings',
      ],
      ...['GET /gateway/registry', 'GET /gateway/templates', 'GET /servers', 'GET /gateway/connect'],
    ],
    { needs: read, admitted: '200' },
  ),
  ...rows(['POST /gateway/nodes/:node_id/drain', 'POST /gateway/nodes/:node_id/resume'], {
    ...{ needs: write, admitted: '404 NOT_FOUND', params: { node_id: 'unknown' } },
    // A node serves all templates.
    elsewhere: '403 INSUFFICIENT_PERMISSIONS',
  }),
  'DELETE /gateway/sessions/:session_id': {
    ...{ needs: read, admitted: '404 SESSION_NOT_FOUND' },
    params: { session_id: '000000000000' },
  },
  'PATCH /gateway/templates/:template': { needs: write, body: () => ({ max_retries: 3 }), ...toDemo },
  'DELETE /gateway/templates/:template': { needs: write, admitted: '422 VALIDATION_ERROR', ...hidden },
  'POST /gateway/templates/:template/doctor': { needs: write, ...toDemo },
  'GET /v0.1/servers': { needs: lists, admitted: '200' },
  'GET /v0.1/servers/:registry_name/versions/:version': {
    ...{ needs: lists, admitted: '404 NOT_FOUND' },
    params: { registry_name: 'none%2Fnone', version: 'latest' },
  },
  'PUT /gateway/templates/:template/definition': {
    ...{ needs: admin, admitted: '422 VALIDATION_ERROR', params: { template: 'stored' } },
    body: () => ({ name: 'Stored' }),
  },
  ...rows(['GET /gateway/templates/:template/definition', 'DELETE /gateway/templates/:template/definition'], {
    needs: admin,
    admitted: '404 TEMPLATE_NOT_FOUND',
    params: { template: 'none' },
  }),
  'GET /gateway/templates/:template/tools': { needs: write, ...toDemo },
  'POST /gateway/templates/:template/tools/approve': {
    ...{ needs: admin, admitted: '404 TEMPLATE_NOT_FOUND', params: { template: 'none' } },
    body: () => ({}),
  },
  'GET /gateway/views': { needs: lists, admitted: '200' },
  ...rows(['GET /gateway/views/:view', 'GET /gateway/views/:view/preview'], {
    ...{ needs: lists, admitted: '404 VIEW_NOT_FOUND', params: { view: 'none' } },
  }),
  'GET /gateway/views/:view/tools': {
    ...{ needs: write, admitted: '404 VIEW_NOT_FOUND', params: { view: 'none' } },
  },
  'POST /gateway/views/:view/tools/approve': {
    ...{ needs: admin, admitted: '404 VIEW_NOT_FOUND', params: { view: 'none' } },
    body: () => ({}),
  },
  'POST /gateway/views/preview': {
    ...{ needs: write, ...toDemo },
    body: () => ({ from: [{ template: 'demo' }] }),
  },
  'PUT /gateway/views/:view': {
    ...{ needs: write, admitted: '422 VALIDATION_ERROR', params: { view: 'none' } },
    body: () => ({ from: [] }),
  },
  'DELETE /gateway/views/:view': {
    ...{ needs: write, admitted: '404 VIEW_NOT_FOUND', params: { view: 'none' } },
  },
  'POST /gateway/register': {
    ...{ needs: write, admitted: '201', ...hidden },
    body: () => ({ template_name: 'demo', id: unique(), endpoint: 'http://127.0.0.1:1' }),
  },
  'POST /gateway/test': {
    ...{ needs: write, admitted: '200 BACKEND_UNAVAILABLE', ...hidden },
    body: () => ({ template_name: 'demo', endpoint: 'http://127.0.0.1:1' }),
  },
  'POST /gateway/sync': { needs: write, admitted: '200', body: () => ({ dry_run: true }) },
  'GET /gateway/instances/:template/:instance_id': { needs: read, ...toDemo },
  'PATCH /gateway/instances/:template/:instance_id': { needs: write, body: () => ({ weight: 1 }), ...toDemo },
  'POST /gateway/instances/:template/:instance_id/resume': { needs: write, ...toDemo },
  ...rows(
    [
      'DELETE /gateway/deregister/:template/:instance_id',
      'POST /gateway/instances/:template/:instance_id/drain',
      'POST /gateway/instances/:template/:instance_id/restart',
    ],
    { needs: write, admitted: '404 SERVER_NOT_FOUND', ...hidden, params: { instance_id: 'none' } },
  ),
  'POST /servers': {
    ...{ needs: write, admitted: '201', ...hidden },
    body: () => ({ template_name: 'demo', config: { endpoint: 'http://127.0.0.1:1' } }),
  },
  'GET /servers/:server_id': { needs: read, admitted: '200', elsewhere: '404 SERVER_NOT_FOUND' },
  'DELETE /servers/:server_id': {
    ...{ needs: write, admitted: '404 SERVER_NOT_FOUND', elsewhere: '404 SERVER_NOT_FOUND' },
    params: { server_id: 'none' },
  },
  'POST /tools/call': {
    ...{ needs: call, admitted: '200', elsewhere: '404 SERVER_NOT_FOUND' },
    body: () => ({ server_id: 'one', tool_name: 'name' }),
  },
  'POST /auth/login': {
    ...{ needs: open, admitted: '200' },
    body: () => ({ username: 'ada', password: PASSWORD }),
  },
  'POST /auth/proof': {
    ...{ needs: open, admitted: '200' },
    body: () => ({ key_id: '0123456789abcdef', nonce: 'n'.repeat(22) }),
  },
  'POST /auth/logout': { needs: SCOPES, admitted: '204' },
  'GET /auth/me': { needs: SCOPES, admitted: '200' },
  ...rows(
    [
      ...['GET /gateway/settings', 'GET /auth/users', 'GET /auth/api-keys'],
      ...['GET /gateway/audit', 'GET /gateway/log-level'],
    ],
    { needs: admin, admitted: '200' },
  ),
  'POST /auth/users': {
    ...{ needs: admin, admitted: '201' },
    body: () => ({ username: unique(), email: 'a@b', password: PASSWORD }),
  },
  ...rows(['GET /auth/users/:user_id', 'PATCH /auth/users/:user_id', 'DELETE /auth/users/:user_id'], {
    ...{ needs: admin, admitted: '404 USER_NOT_FOUND', params: nobody, body: () => ({ email: 'a@b' }) },
  }),
  ...rows(['POST /auth/users/:user_id/link', 'DELETE /auth/users/:user_id/link'], {
    ...{ needs: admin, admitted: '404 USER_NOT_FOUND', params: nobody },
    body: () => ({ issuer: 'https://login.example.com', subject: 's-1' }),
  }),
  'POST /auth/api-keys': {
    ...{ needs: admin, admitted: '201' },
    body: () => ({ name: 'k', permissions: ['tools:call'] }),
  },
  'PATCH /auth/api-keys/:key_id': {
    ...{ needs: admin, admitted: '404 API_KEY_NOT_FOUND', params: nobody, body: () => ({ tools: [] }) },
  },
  'DELETE /auth/api-keys/:key_id': { needs: admin, admitted: '404 API_KEY_NOT_FOUND', params: nobody },
  'GET /auth/grants': { needs: SCOPES, admitted: '200' },
  'DELETE /auth/grants/:grant_id': { needs: SCOPES, admitted: '404 NOT_FOUND', params: { grant_id: 'none' } },
  'GET /gateway/connections': { needs: SCOPES, admitted: '200' },
  'POST /gateway/connections': {
    ...{ needs: SCOPES, admitted: '404 TEMPLATE_NOT_FOUND' },
    body: () => ({ template: 'none', instance_id: 'none-1' }),
  },
  'POST /gateway/connections/confirm': {
    ...{ needs: admin, admitted: '404 TEMPLATE_NOT_FOUND' },
    body: () => ({ template: 'none', instance_id: 'none-1' }),
  },
  'DELETE /gateway/connections/:connection_id': {
    ...{ needs: SCOPES, admitted: '404 NOT_FOUND', params: { connection_id: 'none' } },
  },
  // This app has no authorization server.
  ...rows(['GET /auth/clients', 'POST /auth/clients', 'DELETE /auth/clients/:client_id'], {
    ...{ needs: admin, admitted: '404 NOT_FOUND', params: nobody },
    body: () => ({ name: 'k', redirect_uris: ['https://a.example/x'] }),
  }),
  'PATCH /gateway/log-level': { needs: admin, admitted: '200', body: () => ({ level: 'silent' }) },
};

interface Caller {
  readonly who: string;
  readonly credentials: () => Promise<Credentials> | Credentials;
  readonly scopes: readonly Scope[];
  /** The refusal of a caller without valid credentials. */
  readonly refused?: string;
  readonly limit: string | null;
  readonly isElsewhere?: boolean;
}

const unknown = { scopes: [], limit: null };
const CALLERS: readonly Caller[] = [
  { who: 'no credentials', credentials: () => ({}), refused: '401 AUTHENTICATION_REQUIRED', ...unknown },
  {
    ...{ who: 'an invalid token', refused: '401 INVALID_CREDENTIALS', ...unknown },
    credentials: () => ({ authorization: 'Bearer eyJhbGciOiJIUzI1NiJ9.e30.x' }),
  },
  {
    ...{ who: 'an unknown key', refused: '401 INVALID_CREDENTIALS', ...unknown },
    credentials: () => ({ 'x-api-key': `sd_0123456789abcdef_${'a'.repeat(43)}` }),
  },
  {
    ...{ who: 'a header other than Bearer', refused: '401 INVALID_CREDENTIALS', ...unknown },
    credentials: () => ({ authorization: 'Basic YTpi' }),
  },
  {
    ...{ who: 'an expired token', refused: '401 TOKEN_EXPIRED', ...unknown },
    credentials: async () => app.expired(),
  },
  {
    ...{ who: 'a user', scopes: ['gateway:read', 'tools:call'], limit: '1000' },
    credentials: async () => app.login('ada'),
  },
  { who: 'an admin', scopes: SCOPES, limit: null, credentials: async () => app.login('admin') },
  ...SCOPES.map((scope) => ({
    who: `a key with ${scope}`,
    scopes: scope === 'admin' ? SCOPES : [scope],
    limit: scope === 'admin' ? null : '5000',
    credentials: async () => app.key([scope]),
  })),
  {
    ...{ who: 'a key with all scopes for another template', scopes: SCOPES, limit: null, isElsewhere: true },
    credentials: async () => app.key(['admin'], ['other']),
  },
];

function expected({ needs, admitted, elsewhere = admitted }: Row, caller: Caller): string {
  if (needs.length === 0) return admitted;
  if (caller.refused !== undefined) return caller.refused;
  if (!needs.some((scope) => caller.scopes.includes(scope))) return '403 INSUFFICIENT_PERMISSIONS';
  if (caller.isElsewhere !== true) return admitted;
  // It could create an account without that restriction.
  return needs === admin ? '403 INSUFFICIENT_PERMISSIONS' : elsewhere;
}

const keyOf = ({ method, path }: { method: string; path: string }): string => `${method} ${path}`;

/** The last request of a caller: it revokes the token. */
const LOGOUT = 'POST /auth/logout';
const LOGOUT_LAST = ROUTES.toSorted((a, b) => Number(keyOf(a) === LOGOUT) - Number(keyOf(b) === LOGOUT));

test('have a row here for every route, and no other rows', () => {
  assert.equal(Object.keys(ROWS).sort(), ROUTES.map(keyOf).sort());
});

for (const caller of CALLERS) {
  test(`of every route are enforced for ${caller.who}`, async () => {
    const credentials = await caller.credentials();
    for (const route of LOGOUT_LAST) {
      const row = ROWS[keyOf(route)];
      if (row === undefined) continue; // the test above reports it
      const existing = { template: 'demo', instance_id: 'one', server_id: 'one' };
      const params = caller.isElsewhere ? { ...row.params, ...existing } : { ...existing, ...row.params };
      const path = route.path.replaceAll(/[:*](\w+)/g, (_name, field) => String(Reflect.get(params, field)));
      const query = route.path === '/events' ? '?follow=false' : '';
      const { headers = {} } = row;
      const ask =
        row.body === undefined || route.method === 'GET' ? { headers } : { headers, body: row.body() };
      const answer = await app.as(credentials, route.method, `${path}${query}`, ask);
      const what = `${keyOf(route)} for ${caller.who}`;

      const { error_code: code } = answer.body;
      const said = [answer.status, code].filter(Boolean).join(' ');
      assert.is(said, expected(row, caller), what);
      const isLimited = row.needs.length > 0 && caller.refused === undefined;
      assert.is(answer.headers.get('x-ratelimit-limit'), isLimited ? caller.limit : null, what);
      if (row.needs.length > 0) assert.match(answer.headers.get('cache-control') ?? '', 'no-store', what);
      assert.is(answer.headers.get('www-authenticate'), answer.status === 401 ? 'Bearer' : null, what);
      // Else its templates are the reason, and no scope would help.
      if (answer.status === 403 && said !== row.elsewhere) {
        assert.equal(answer.body.required_permissions, [...row.needs], what);
        const { kind, id } = (await app.as(credentials, 'GET', '/auth/me')).body;
        assert.equal(answer.body.credential, { kind, id }, what);
      }
      if (caller.isElsewhere && answer.status === 200 && row.needs.length > 0) {
        assert.not.match(answer.text, /"(demo|one)"/, what);
      }
    }
  });
}

test('are checked before the body is read and validated', async () => {
  const broken = { body: '{"name":', headers: { 'content-type': 'text/plain' } };
  assert.is((await app.ask('POST', '/mcp/demo/tools/call', broken)).status, 401);
  assert.is((await app.as(app.user, 'POST', '/auth/users', broken)).status, 403);
});

test('for HEAD are those of GET, and are not checked where no route matches', async () => {
  assert.is((await app.ask('HEAD', '/servers')).status, 401);
  assert.is((await app.as(app.user, 'HEAD', '/servers')).status, 200);
  assert.is((await app.ask('GET', '/nowhere')).status, 404);
  assert.is((await app.ask('PUT', '/servers')).status, 405);
  assert.is((await app.ask('OPTIONS', '/servers')).status, 204);
});

test('do not reveal whether a template that the caller may not use exists', async () => {
  const elsewhere = await app.key(['admin'], ['other']);
  const answerAbout = async (template: string) => {
    const { body } = await app.as(elsewhere, 'GET', `/mcp/${template}/health`);
    return { ...body, detail: String(body.detail).replace(template, '*'), request_id: '' };
  };
  assert.equal(await answerAbout('demo'), await answerAbout('never-heard-of'));
});

test.run();
