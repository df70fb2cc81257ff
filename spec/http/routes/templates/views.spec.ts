// Views over HTTP: what is stored, what is refused, and what callers of a view get.

import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the routes of views');
const app = appFor(test, () => startApp());

const object = { type: 'object' } as const;
const TOOLS = {
  github: [
    {
      name: 'issues_list',
      inputSchema: { ...object, properties: { repo: { type: 'string' }, page: {} }, required: ['repo'] },
      annotations: { readOnlyHint: true },
    },
    { name: 'issues_delete', inputSchema: object },
    { name: 'search', inputSchema: object, annotations: { destructiveHint: false } },
  ],
  files: [
    { name: 'read_file', description: 'Reads.', inputSchema: object },
    { name: 'search', inputSchema: object },
  ],
};

test.before(async () => {
  for (const [template, tools] of Object.entries(TOOLS))
    await app.gateway.register(
      template,
      {
        id: 'one',
        handler: (request) =>
          request.method === 'tools/list'
            ? { tools: tools as never }
            : { content: [{ type: 'text', text: JSON.stringify([template, request.params]) }] },
      },
      { waitMs: 5_000 },
    );
});

const SUPPORT = {
  title: 'Support desk',
  from: [
    {
      template: 'github',
      tools: ['issues_*', '!issues_delete'],
      rename: { issues_list: 'list_tickets' },
      defaults: { list_tickets: { repo: 'acme/support' } },
    },
    { template: 'files', tools: ['read_file'], describe: { read_file: 'Reads a file of the handbook.' } },
  ],
};

function recordsIn(list: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(list) ? list : [];
}

async function namesIn(view: string): Promise<readonly string[]> {
  const { body } = await app.ask('GET', `/mcp/${view}/tools/list`);
  return recordsIn(body.tools).map(({ name }) => String(name));
}

test('a view is created, read, replaced and deleted', async () => {
  const created = await app.ask('PUT', '/gateway/views/support', { body: SUPPORT });
  assert.equal([created.status, created.body.id, created.body.problems], [201, 'support', []]);
  const read = await app.ask('GET', '/gateway/views/support');
  assert.equal(read.body, created.body);
  assert.equal((await app.ask('GET', '/gateway/views')).body, { views: [created.body] });
  const replaced = await app.ask('PUT', '/gateway/views/support', { body: { ...SUPPORT, version: '2' } });
  assert.equal([replaced.status, replaced.body.version], [200, '2']);
  assert.is.not(replaced.body.etag, created.body.etag);
  const old = { 'If-Match': `"${created.body.etag}"` };
  const refused = await app.ask('PUT', '/gateway/views/support', { body: SUPPORT, headers: old });
  assert.equal([refused.status, refused.body.error_code], [412, 'PRECONDITION_FAILED']);
  assert.is((await app.ask('DELETE', '/gateway/views/support')).status, 204);
  assert.is((await app.ask('GET', '/gateway/views/support')).body.error_code, 'VIEW_NOT_FOUND');
  assert.is((await app.ask('GET', '/mcp/support/tools/list')).body.error_code, 'TEMPLATE_NOT_FOUND');
});

test('a wrong definition is refused where it is wrong, and a taken name', async () => {
  const issuesOf = async (body: object) =>
    recordsIn((await app.ask('PUT', '/gateway/views/wrong', { body })).body.detail).map(
      ({ loc, type }) => `${[loc].flat().join('.')} ${type}`,
    );
  const from = [{ template: 'github' }];
  assert.equal(await issuesOf({ from, nonsense: 1 }), ['body.nonsense extra_forbidden']);
  assert.equal(await issuesOf({ from: [{ template: 'github', tool: [] }] }), [
    'body.from.0.tool extra_forbidden',
  ]);
  assert.equal(await issuesOf({ from: [...from, ...from] }), ['body.from.1.template value_error']);
  assert.equal(await issuesOf({ id: 'other', from }), ['body.id value_error']);
  assert.equal(await issuesOf({ from, name_length: 20 }), ['body.name_length greater_than_equal']);
  const rename = { issues_list: 'same', search: 'same' };
  assert.equal(await issuesOf({ from: [{ template: 'github', rename }] }), [
    'body.from.0.rename.search value_error',
  ]);
  const badId = await app.ask('PUT', '/gateway/views/Bad%20Id', { body: { from } });
  assert.equal([badId.status, recordsIn(badId.body.detail).map(({ loc }) => loc)], [422, [['path', 'view']]]);
  const clash = await app.ask('PUT', '/gateway/views/files', { body: { from } });
  assert.equal([clash.status, clash.body.error_code], [400, 'DUPLICATE_VIEW']);
  await app.ask('PUT', '/gateway/views/taken', { body: { from } });
  const instance = { template_name: 'taken', instance: { endpoint: 'http://127.0.0.1:1' } };
  const other = await app.ask('POST', '/gateway/register', { body: instance });
  assert.equal([other.status, other.body.error_code], [400, 'DUPLICATE_VIEW']);
});

test('a view lists what it has, under its names, and calls go to the right tool', async () => {
  await app.ask('PUT', '/gateway/views/support', { body: SUPPORT });
  const { body } = await app.ask('GET', '/mcp/support/tools/list');
  assert.is(body.count, 2);
  const [tickets = {}, file = {}] = recordsIn(body.tools);
  assert.equal(
    [tickets.name, tickets.inputSchema],
    ['list_tickets', { ...object, properties: { page: {} } }],
  );
  assert.equal([file.name, file.description], ['read_file', 'Reads a file of the handbook.']);
  const call = async (body: object) => (await app.ask('POST', '/mcp/support/tools/call', { body })).body;
  const said = async (body: object) => JSON.parse(String(recordsIn((await call(body)).content)[0]?.text));
  const listed = { name: 'issues_list', arguments: { page: 1, repo: 'acme/support' } };
  assert.equal(await said({ name: 'list_tickets', arguments: { page: 1 } }), ['github', listed]);
  // By its own name, too.
  assert.equal(await said({ name: 'issues_list', arguments: { page: 1 } }), ['github', listed]);
  assert.is((await call({ name: 'issues_delete' })).error_code, 'TOOL_NOT_FOUND');
  assert.is((await call({ name: 'github__issues_list' })).error_code, 'TOOL_NOT_FOUND');
  for (const key of ['repo', 're\\u0070o', 'Repo']) {
    const body = `{"name":"list_tickets","arguments":{"${key}":"other"}}`;
    const refused = await app.ask('POST', '/mcp/support/tools/call', { body });
    const { error_code, backend_error = null, detail } = refused.body;
    assert.equal([refused.status, error_code, backend_error], [400, 'INVALID_TOOL_ARGUMENTS', null], key);
    assert.match(String(detail), /^The argument ".+" is set by the gateway: leave it out\.$/);
  }
});

test('clashing bare names are prefixed on all sides; a given one stays with its tool', async () => {
  const both = { from: [{ template: 'github' }, { template: 'files' }] };
  const { body } = await app.ask('PUT', '/gateway/views/both', { body: both });
  assert.equal(await namesIn('both'), [
    ...['issues_list', 'issues_delete', 'github__search', 'read_file', 'files__search'],
  ]);
  assert.equal(
    recordsIn(body.problems).map(({ code, template, tool }) => [code, template, tool]),
    [
      ['name_taken', 'github', 'search'],
      ['name_taken', 'files', 'search'],
    ],
  );
  await app.ask('PUT', '/gateway/views/later', { body: { from: [{ template: 'files' }] } });
  assert.equal(await namesIn('later'), ['read_file', 'search']);
  await app.ask('PUT', '/gateway/views/later', { body: both });
  assert.equal((await namesIn('later')).slice(2), ['github__search', 'read_file', 'search']);
});

test('hints choose tools, and what meets nothing is a problem', async () => {
  const from = [
    {
      template: 'github',
      tools: ['*', '!none_*'],
      only: { destructive: false },
      rename: { gone: 'new' },
      defaults: { search: { nothing: 1 } },
    },
    { template: 'unknown' },
  ];
  const body = { from, limits: { never: { timeout: 5 } }, always: ['search', 'never*'] };
  const { problems } = (await app.ask('PUT', '/gateway/views/odd', { body })).body;
  assert.equal(
    recordsIn(problems)
      .map(({ code }) => String(code))
      .sort(),
    [
      ...['always_unmet', 'default_unknown_argument', 'glob_unmet', 'limit_unmet', 'rename_unmet'],
      'template_unknown',
    ],
  );
  assert.equal(await namesIn('odd'), ['issues_list', 'search']);
  const ofView = await app.ask('PUT', '/gateway/views/of-view', { body: { from: [{ template: 'odd' }] } });
  assert.equal(
    recordsIn(ofView.body.problems).map(({ code, message }) => [code, message]),
    [['template_unknown', '"odd" is a view: name its templates.']],
  );
  await app.serve('left', 'one');
  await app.gateway.deregister('left', 'one');
  const ofLeft = await app.ask('PUT', '/gateway/views/of-left', { body: { from: [{ template: 'left' }] } });
  assert.equal(
    recordsIn(ofLeft.body.problems).map(({ code, message }) => [code, message]),
    [['template_missing', 'The template "left" has no instances.']],
  );
});

test('limits hold by the listed name: calls a minute, and bytes of a result', async () => {
  const limits = {
    read_file: { calls_per_minute: 2, result_bytes: 1_000 },
    list_tickets: { result_bytes: 1_000 },
  };
  await app.ask('PUT', '/gateway/views/support', { body: { ...SUPPORT, limits } });
  const call = (name: string, text: string) =>
    app.ask('POST', '/mcp/support/tools/call', { body: { name, arguments: { text } } });
  const long = (await call('read_file', 'é'.repeat(1_000))).body;
  const text = String(recordsIn(long.content)[0]?.text);
  assert.match(text, /\n\[\d+ of \d+ bytes are left out\]$/);
  assert.not.match(text, '\ufffd');
  assert.is((await call('read_file', 'short')).body.isError, undefined);
  const third = await call('read_file', 'short');
  assert.equal([third.status, third.body.error_code], [429, 'RATE_LIMIT_EXCEEDED']);
  assert.ok(Number(third.headers.get('retry-after')) > 0);
  assert.is((await call('list_tickets', 'other')).status, 200);
});

test('a preview shows the tools and their tokens, and stores nothing', async () => {
  const preview = await app.ask('POST', '/gateway/views/preview', { body: SUPPORT });
  const { tools, count, tokens } = preview.body;
  assert.equal([count, tokens], [2, Math.ceil(JSON.stringify(tools).length / 3.5)]);
  assert.is((await app.ask('GET', '/gateway/views/preview')).status, 404);
  await app.ask('PUT', '/gateway/views/support', { body: SUPPORT });
  assert.equal((await app.ask('GET', '/gateway/views/support/preview')).body, preview.body);
});

test('an admin sees what another caller gets', async () => {
  const app = await startWithAccounts();
  for (const [template, tools] of Object.entries(TOOLS))
    await app.gateway.register(
      template,
      { id: 'one', handler: () => ({ tools: tools as never }) },
      { waitMs: 5_000 },
    );
  const body = { ...SUPPORT, limits: {} };
  assert.is((await app.as(app.admin, 'PUT', '/gateway/views/support', { body })).status, 201);
  const made = {
    name: 'k',
    permissions: ['tools:call'],
    views: ['support'],
    templates: [],
    tools: ['files/*'],
  };
  const { id } = (await app.as(app.admin, 'POST', '/auth/api-keys', { body: made })).body;
  const shown = await app.as(app.admin, 'GET', `/gateway/views/support/preview?as=${id}`);
  assert.equal(
    recordsIn(shown.body.tools).map(({ name }) => name),
    ['read_file'],
  );
  const reader = await app.key(['gateway:read']);
  const refused = await app.as(reader, 'GET', `/gateway/views/support/preview?as=${id}`);
  assert.is(refused.status, 403);
  assert.is(
    (await app.as(app.admin, 'GET', '/gateway/views/support/preview?as=none')).body.error_code,
    'USER_NOT_FOUND',
  );
  const { from } = (await app.as(reader, 'GET', '/gateway/views/support')).body;
  assert.is(recordsIn(from)[0]?.defaults, undefined, 'values that the gateway sets');
  await app.close();
});

test('only an admin changes what a key may use through a view', async () => {
  const app = await startWithAccounts();
  await app.gateway.register('files', { id: 'one', endpoint: 'http://127.0.0.1:1' });
  const writer = await app.key(['gateway:write']);
  const body = { from: [{ template: 'files' }] };
  const path = '/gateway/views/support';
  const statusOf = async (who: typeof writer, method: string) =>
    (await app.as(who, method, path, method === 'PUT' ? { body } : {})).status;
  assert.is(await statusOf(writer, 'PUT'), 201);
  const made = { name: 'k', permissions: ['tools:call'], views: ['support'] };
  assert.is((await app.as(app.admin, 'POST', '/auth/api-keys', { body: made })).status, 201);
  assert.equal([await statusOf(writer, 'PUT'), await statusOf(writer, 'DELETE')], [403, 403]);
  assert.equal([await statusOf(app.admin, 'PUT'), await statusOf(app.admin, 'DELETE')], [200, 204]);
  assert.is(await statusOf(writer, 'PUT'), 403, 'the key would get a view again');
  await app.close();
});

test('the health of a view is that of its worst template', async () => {
  await app.ask('PUT', '/gateway/views/support', { body: SUPPORT });
  const { body } = await app.ask('GET', '/mcp/support/health');
  assert.equal([body.status, body.total_instances, body.health_percentage], ['healthy', 2, 100]);
  await app.ask('PUT', '/gateway/views/odd', {
    body: { from: [{ template: 'unknown' }, { template: 'files' }] },
  });
  assert.is((await app.ask('GET', '/mcp/odd/health')).body.status, 'unhealthy');
});

test.run();
