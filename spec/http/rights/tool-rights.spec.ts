// Rights to tools at every door: callers list and call only the tools of their lists, whatever others have made the gateway remember.

import * as assert from 'uvu/assert';
import type { DefinedRoles } from '../../../src/domain/accounts/account.ts';
import type { RightsLists } from '../../../src/domain/accounts/rights.ts';
import { modern, openSession, rpc, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { initialized } from '../../helpers/clients/sse-client.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { type Answer, appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('rights to tools');
const LIMITED = { tools: ['git/issues_*', '!git/issues_delete'] };
const roles: DefinedRoles = { support: { scopes: ['tools:call', 'gateway:read'], ...LIMITED } };
const app = appFor(test, () => startWithAccounts({ roles }));
const NAMES = ['issues_list', 'issues_delete', 'push'];

test.before(async () => {
  for (const [template, id] of [
    ['git', 'git-1'],
    ['files', 'files-1'],
  ] as const)
    await app.serve(template, id, ({ method, params }) => {
      if (method === 'resources/list') return { resources: [{ uri: `file:///${template}`, name: 'r' }] };
      if (method === 'prompts/list') return { prompts: [{ name: `ask-${template}` }] };
      if (method === 'prompts/get') return { messages: [], description: `of ${template}` };
      if (method === 'completion/complete') return { completion: { values: [`of ${template}`] } };
      if (method === 'resources/read')
        return { contents: [{ uri: params?.uri ?? '', text: `of ${template}` }] };
      if (method !== 'tools/call')
        return { tools: NAMES.map(toolNamed), cacheScope: 'public', ttlMs: 60_000, n: 1.5 };
      return { content: [{ type: 'text', text: `${template} ${params?.name}` }] };
    });
  const of = { from: [{ template: 'git' }], names: 'prefixed' } as const;
  await app.gateway.views.put({ id: 'all-of-git', ...of });
  await app.gateway.views.put({ id: 'finder', mode: 'search', ...of });
});

const toolNamed = (name: string) => ({ name, inputSchema: { type: 'object' } });

async function keyWith(lists: RightsLists): Promise<Credentials> {
  const permissions = ['tools:call', 'gateway:read'] as const;
  const { key } = await app.auth.accounts.createApiKey({ name: 'limited', permissions, ...lists });
  return { 'x-api-key': key };
}

interface Door {
  /** Of the template `git`. */
  list(as: Credentials): Promise<readonly string[]>;
  /** Resolves with the text of the result, or the code of the error. */
  call(as: Credentials, tool: string): Promise<string>;
}

const DOORS: Readonly<Record<string, Door>> = {
  'REST for a template': {
    list: async (as) => namesIn((await app.as(as, 'GET', '/mcp/git/tools/list')).body),
    call: async (as, name) => endOf(await app.as(as, 'POST', '/mcp/git/tools/call', { body: { name } })),
  },
  'REST as an event stream': {
    list: async (as) => namesIn((await app.as(as, 'GET', '/mcp/git/tools/list')).body),
    call: async (as, name) => {
      const headers = { accept: 'text/event-stream' };
      const answer = await app.as(as, 'POST', '/mcp/git/tools/call', { body: { name }, headers });
      return /"error_code":"(\w+)"/.exec(answer.text)?.[1] ?? /"text":"([^"]*)"/.exec(answer.text)?.[1] ?? '';
    },
  },
  'REST for a server': {
    list: async (as) => namesIn((await app.as(as, 'GET', '/mcp/git/tools/list')).body),
    call: async (as, tool_name) => {
      const body = { server_id: 'git-1', tool_name };
      const answer = await app.as(as, 'POST', '/tools/call', { body });
      return endOf({ ...answer, body: { ...Object(answer.body.result), ...answer.body } });
    },
  },
  'MCP with a session': sessionDoor('/mcp/git', ''),
  'MCP without a session': modernDoor('/mcp/git', ''),
  'HTTP+SSE': sseDoor('/mcp/git/sse', ''),
  'REST for a view': {
    list: async (as) => ownNames('git__', (await app.as(as, 'GET', '/mcp/all-of-git/tools/list')).body),
    call: async (as, tool) =>
      endOf(await app.as(as, 'POST', '/mcp/all-of-git/tools/call', { body: { name: `git__${tool}` } })),
  },
  'a view, with a session': sessionDoor('/mcp/all-of-git', 'git__'),
  'a view, without a session': modernDoor('/mcp/all-of-git', 'git__'),
  'a view, over HTTP+SSE': sseDoor('/mcp/all-of-git/sse', 'git__'),
  'a view, by the own names of its tools': {
    list: async (as) => ownNames('git__', (await app.as(as, 'GET', '/mcp/all-of-git/tools/list')).body),
    call: async (as, name) =>
      endOf(await app.as(as, 'POST', '/mcp/all-of-git/tools/call', { body: { name } })),
  },
  'a view in search mode': {
    list: async (as) => {
      const found = await callAt('/mcp/finder', as, 'find_tools', {
        query: 'issues list delete push',
        limit: 20,
      });
      const names = ownNames('git__', JSON.parse(textIn(rpcOf(found).result)));
      return NAMES.filter((name) => names.includes(name));
    },
    call: async (as, tool) =>
      rpcEnd(await callAt('/mcp/finder', as, 'call_tool', { name: `git__${tool}`, arguments: {} })),
  },
  'all templates, over HTTP+SSE': sseDoor('/mcp/sse', 'git__'),
  'all templates, with a session': sessionDoor('/mcp', 'git__'),
  'all templates, without a session': modernDoor('/mcp', 'git__'),
};

function sessionDoor(path: string, prefix: string): Door {
  const ask = async (as: Credentials, body: object) =>
    app.ask('POST', path, { body, headers: await openSession(app, path, { credentials: as }) });
  return {
    list: async (as) => ownNames(prefix, rpcOf(await ask(as, rpc('tools/list'))).result),
    call: async (as, tool) => rpcEnd(await ask(as, toolCall(`${prefix}${tool}`))),
  };
}

function modernDoor(path: string, prefix: string): Door {
  const ask = (as: Credentials, ...of: Parameters<typeof modern>) => {
    const { body, headers } = modern(...of);
    return app.as(as, 'POST', path, { body, headers });
  };
  return {
    list: async (as) => ownNames(prefix, rpcOf(await ask(as, 'tools/list')).result),
    call: async (as, tool) => rpcEnd(await ask(as, 'tools/call', { name: `${prefix}${tool}` })),
  };
}

function callAt(path: string, as: Credentials, name: string, args: object): Promise<Answer> {
  const { body, headers } = modern('tools/call', { name, arguments: args });
  return app.as(as, 'POST', path, { body, headers });
}

function sseDoor(path: string, prefix: string): Door {
  const ask = async (as: Credentials, body: object) => {
    const stream = await initialized(app, path, as);
    try {
      assert.is((await stream.post(body)).status, 202);
      return { text: JSON.stringify(await stream.answer(Object(body).id)) };
    } finally {
      stream.socket.destroy();
    }
  };
  return {
    list: async (as) => ownNames(prefix, rpcOf(await ask(as, rpc('tools/list'))).result),
    call: async (as, tool) => rpcEnd(await ask(as, toolCall(`${prefix}${tool}`))),
  };
}

for (const [door, { list, call }] of Object.entries(DOORS)) {
  test(`${door}: only the tools of the list are listed and called`, async () => {
    const all = await keyWith({});
    const limited = await keyWith(LIMITED);
    // In both orders: neither list is served to the other caller.
    assert.equal(
      [await list(limited), await list(all), await list(limited)],
      [['issues_list'], NAMES, ['issues_list']],
    );
    assert.is(await call(limited, 'issues_list'), 'git issues_list');
    for (const tool of ['issues_delete', 'push', 'unheard-of'])
      assert.is(await call(limited, tool), 'TOOL_NOT_FOUND', tool);
    assert.is(await call(all, 'push'), 'git push');
  });

  test(`${door}: a role limits its users in the same way`, async () => {
    const username = `user-${Object.keys(DOORS).indexOf(door)}`;
    await app.createUser(username, 'support');
    const user = await app.login(username);
    assert.equal(await list(user), ['issues_list']);
    const ends = await Promise.all(['issues_list', 'issues_delete'].map((tool) => call(user, tool)));
    assert.equal(ends, ['git issues_list', 'TOOL_NOT_FOUND']);
  });

  test(`${door}: an entry for all templates works, and an empty list leaves nothing`, async () => {
    const reader = await keyWith({ tools: ['*/*list'] });
    assert.equal([await list(reader), await call(reader, 'push')], [['issues_list'], 'TOOL_NOT_FOUND']);
    assert.is(await call(reader, 'issues_list'), 'git issues_list');
  });
}

test('a name in a field that only servers read which ignore its case is refused at each door', async () => {
  const limited = await keyWith(LIMITED);
  const headers = await openSession(app, '/mcp/git', { credentials: limited });
  const params = { name: 'issues_list', arguments: {}, Name: 'issues_delete' };
  const inSession = await app.ask('POST', '/mcp/git', { body: rpc('tools/call', params), headers });
  const stateless = modern('tools/call', params);
  const without = await app.as(limited, 'POST', '/mcp/git', stateless);
  const rest = await app.as(limited, 'POST', '/mcp/git/tools/call', { body: params });
  for (const answer of [inSession, without]) assert.is(Object(rpcOf(answer).error).code, -32602, answer.text);
  assert.is(rest.status, 422);
});

test('a template that the list does not mention does not exist', async () => {
  const limited = await keyWith(LIMITED);
  const none = await keyWith({ tools: [] });
  for (const [as, path] of [
    [limited, '/mcp/files/tools/list'],
    [limited, '/mcp/files/resources/list'],
    [none, '/mcp/git/tools/list'],
  ] as const)
    assert.is((await app.as(as, 'GET', path)).outcome, '404 TEMPLATE_NOT_FOUND');
  const body = { server_id: 'files-1', tool_name: 'push' };
  assert.is((await app.as(limited, 'POST', '/tools/call', { body })).outcome, '404 SERVER_NOT_FOUND');
  const { body: registry } = await app.as(limited, 'GET', '/gateway/registry');
  assert.equal(Object.keys(Object(registry.templates)), ['git']);
  assert.is((await app.as(limited, 'GET', '/mcp/git/resources/list')).status, 200);
});

test('nor do its resources and prompts, in views and at all templates', async () => {
  const from = [{ template: 'git' }, { template: 'files' }];
  await app.gateway.views.put({ id: 'both', from });
  const [limited, all] = [await keyWith(LIMITED), await keyWith({})];
  for (const [path, prompt] of [
    ['/mcp/both', 'ask-files'],
    ['/mcp', 'files__ask-files'],
  ] as const) {
    const ask = async (
      as: Credentials,
      method: string,
      params: { uri?: string; name?: string; ref?: object } = {},
    ) => {
      const { body, headers } = modern(method, params);
      const named = params.uri === undefined ? {} : { 'mcp-name': params.uri };
      return rpcOf(await app.as(as, 'POST', path, { body, headers: { ...headers, ...named } }));
    };
    const urisOf = async (as: Credentials) =>
      [Object((await ask(as, 'resources/list')).result).resources]
        .flat()
        .map(({ uri }) => uri)
        .sort();
    const promptsOf = async (as: Credentials) =>
      [Object((await ask(as, 'prompts/list')).result).prompts].flat().map(({ name }) => name);
    assert.equal([await urisOf(all), (await promptsOf(all)).length], [['file:///files', 'file:///git'], 2]);
    const completed = { ref: { type: 'ref/prompt', name: prompt }, argument: { name: 'x', value: '' } };
    assert.match(JSON.stringify(await ask(all, 'prompts/get', { name: prompt })), 'of files');
    assert.match(JSON.stringify(await ask(all, 'completion/complete', completed)), 'of files');
    assert.equal([await urisOf(limited), (await promptsOf(limited)).length], [['file:///git'], 1], path);
    for (const [method, params] of [
      ['resources/read', { uri: 'file:///files' }],
      ['prompts/get', { name: prompt }],
      ['completion/complete', completed],
    ] as const)
      assert.not.match(JSON.stringify(await ask(limited, method, params)), 'of files', `${path} ${method}`);
    assert.ok((await ask(limited, 'resources/read', { uri: 'file:///git' })).result);
  }
});

test('an own name at /mcp means the only template whose tool the caller may call', async () => {
  const limited = await keyWith(LIMITED);
  const headers = await openSession(app, '/mcp', { credentials: limited });
  const ask = (body: object) => app.ask('POST', '/mcp', { body, headers });
  await ask(rpc('tools/list'));
  assert.is(rpcEnd(await ask(toolCall('issues_list'))), 'git issues_list');
  for (const name of ['push', 'files__push', 'git__push'])
    assert.is(rpcEnd(await ask(toolCall(name))), 'TOOL_NOT_FOUND', name);
});

test('suggestions for unknown names contain only tools of the list', async () => {
  const limited = await keyWith({ tools: ['git/issues_*', '!git/issues_delete'] });
  const answer = await app.as(limited, 'POST', '/mcp/git/tools/call', { body: { name: 'issues_delet' } });
  assert.is(Object(answer.body).suggestion, undefined);
  assert.not.match(answer.text, /did you mean "issues_delete"/);
  const near = await app.as(limited, 'POST', '/mcp/git/tools/call', { body: { name: 'issues_lis' } });
  assert.match(near.text, /did you mean \\"issues_list\\"/);
  assert.is(Object(near.body).suggestion, 'issues_list');
});

test('REST for a view lists the allowed tools, under the names of the view', async () => {
  await app.gateway.views.put({ id: 'desk', from: [{ template: 'git', rename: { issues_list: 'find' } }] });
  const limited = await keyWith({ templates: [], views: ['desk'], tools: ['git/issues_list'] });
  const answer = await app.as(limited, 'GET', '/mcp/desk/tools/list');
  assert.equal([namesIn(answer.body), answer.body.count], [['find'], 1]);
});

test('the lists of a key and of its owner both limit', async () => {
  const { id } = await app.createUser('both');
  await app.auth.accounts.changeUser(id, { tools: ['*/issues_*'] });
  const made = await app.auth.accounts.createApiKey({
    ...{ name: 'own', permissions: ['tools:call'], ownerId: id, tools: ['git/*', '!*/*_delete'] },
  });
  const both = { 'x-api-key': made.key };
  const { list, call } = sessionDoor('/mcp/git', '');
  assert.equal(await list(both), ['issues_list']);
  assert.is(await call(both, 'push'), 'TOOL_NOT_FOUND');
});

test('records of templates and views have no other tools and templates', async () => {
  const from = [{ template: 'git', describe: { push: 'Pushes.' } }, { template: 'files' }];
  await app.gateway.views.put({ id: 'recorded', from, always: ['gone', 'push'], names: 'prefixed' });
  const permissions = ['gateway:read', 'gateway:write'] as const;
  const { key } = await app.auth.accounts.createApiKey({ name: 'writer', permissions, ...LIMITED });
  const read = async (path: string) => (await app.as({ 'x-api-key': key }, 'GET', path)).body;
  assert.equal(namesIn(await read('/gateway/templates/git/tools')), ['issues_list']);
  assert.equal(namesIn(await read('/gateway/views/recorded/tools')), ['git__issues_list']);
  const paths = ['/gateway/views/recorded', '/gateway/views', '/gateway/views/recorded/preview'];
  const views = JSON.stringify(await Promise.all(paths.map(read)));
  assert.match(views, '"recorded"');
  for (const text of [views, JSON.stringify(await read('/mcp/recorded/health'))])
    assert.not.match(text, /files|push/);
  await app.gateway.views.put({ id: 'foreign', from: [{ template: 'files' }] });
  const { status, total_instances: total } = await read('/mcp/foreign/health');
  assert.equal([status, total], ['unhealthy', 0]);
  // Not those of another caller, either.
  const admin = await app.auth.accounts.createApiKey({ name: 'a', permissions: ['admin'], ...LIMITED });
  const { user_id: id } = (await app.as(app.admin, 'GET', '/auth/me')).body;
  const as = `${paths[2]}?as=${id}`;
  const { body: preview } = await app.as(app.admin, 'GET', as);
  assert.is(namesIn(preview).length, 6);
  assert.is((await app.as({ 'x-api-key': admin.key }, 'GET', as)).outcome, '403 INSUFFICIENT_PERMISSIONS');
  const { body: whole } = await app.as(app.admin, 'GET', '/gateway/views/recorded');
  assert.match(JSON.stringify([whole.from, whole.problems]), /push.*files.*gone/);
  const { id: limitedId } = await app.createUser('limited');
  await app.auth.accounts.changeUser(limitedId, { tools: LIMITED.tools });
  const { body: theirs } = await app.as(app.admin, 'GET', `${paths[2]}?as=${limitedId}`);
  assert.equal([theirs.count, theirs.problems], [1, preview.problems]);
  assert.match(JSON.stringify(preview.problems), 'gone');
});

test('narrower rights end the session that was opened with wider ones', async () => {
  const { id } = await app.createUser('narrowed');
  const credentials = await app.login('narrowed');
  const headers = await openSession(app, '/mcp', { credentials });
  const list = () => app.ask('POST', '/mcp', { body: rpc('tools/list'), headers });
  assert.is((await list()).status, 200);
  await app.auth.accounts.changeUser(id, { tools: ['git/push'] });
  assert.is((await list()).status, 404);
});

function namesIn(result: unknown): readonly string[] {
  return [Object(result).tools ?? []].flat().map(({ name }) => String(name));
}

function ownNames(prefix: string, result: unknown): readonly string[] {
  return namesIn(result).flatMap((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : []));
}

function endOf({ body }: Pick<Answer, 'body'>): string {
  return typeof body.error_code === 'string' ? body.error_code : textIn(body);
}

function rpcOf({ text }: Pick<Answer, 'text'>) {
  const data = /^data: (\{.*)$/m.exec(text)?.[1] ?? text;
  return JSON.parse(data) as { readonly result?: unknown; readonly error?: { readonly data?: unknown } };
}

function rpcEnd(answer: Pick<Answer, 'text'>): string {
  const { result, error } = rpcOf(answer);
  if (error === undefined) return textIn(result);
  assert.is(Object(error).code, -32602, answer.text);
  return String(Object(error.data).error_code);
}

function textIn(result: unknown): string {
  return String(Object([Object(result).content ?? []].flat()[0]).text);
}

test.run();
