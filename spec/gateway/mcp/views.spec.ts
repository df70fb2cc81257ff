// Views for MCP clients of both eras, over a gateway with functions as backends.

import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { ViewDefinition } from '../../../src/domain/views/view.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { begin, modernRequest, openSession, postTo } from './post.ts';

const test = suite('views at the MCP endpoint');

const inputSchema = { type: 'object' };
const TOOLS: Record<string, string[]> = { a: ['read', 'shared'], b: ['write', 'shared'] };
const VIEW: ViewDefinition = {
  id: 'v',
  title: 'Both',
  from: [
    { template: 'a', rename: { read: 'look' } },
    { template: 'b', tools: ['*', '!write'] },
  ],
};

let store: MemoryStore;
let gateway: Gateway;
test.before.each(async () => {
  store = new MemoryStore();
  gateway = await start();
});
test.after.each(() => gateway.close({ graceMs: 0 }));

async function start(): Promise<Gateway> {
  const made = await createGateway({ store });
  for (const [template, names] of Object.entries(TOOLS))
    await made.register(
      template,
      {
        id: 'one',
        handler: ({ method, params }) =>
          method === 'tools/list'
            ? { tools: names.map((name) => ({ name, inputSchema })) }
            : { content: [{ type: 'text', text: `${template} ${String(Object(params).name)}` }] },
      },
      { waitMs: 5_000 },
    );
  return made;
}

const modern = (method: string, params?: JsonObject, principal?: Principal) =>
  postTo(gateway, { template: 'v', ...modernRequest(method, params), ...(principal && { principal }) });
const namesIn = (result: unknown): string[] => Object(result).tools.map(({ name }: { name: string }) => name);
const textIn = (result: unknown): string => Object(result).content[0].text;

test('a modern client lists and calls by the names of the view', async () => {
  await gateway.views.put(VIEW);
  const discovered = Object((await modern('server/discover')).answer.result);
  assert.equal(Object(discovered.serverInfo ?? Object(discovered._meta)).title ?? 'Both', 'Both');
  const { answer } = await modern('tools/list');
  assert.equal(namesIn(answer.result), ['look', 'a__shared', 'b__shared']);
  assert.is(textIn((await modern('tools/call', { name: 'look' })).answer.result), 'a read');
  assert.is(textIn((await modern('tools/call', { name: 'b__shared' })).answer.result), 'b shared');
  assert.is(textIn((await modern('tools/call', { name: 'read' })).answer.result), 'a read');
  for (const name of ['write', 'shared', 'b__write'])
    assert.is(Object((await modern('tools/call', { name })).answer.error).code, -32602, name);
});

test('a legacy client has a session with the view, and gets a notice when it changes', async () => {
  await gateway.views.put(VIEW);
  const headers = await openSession(gateway, 'v');
  const post = (method: string, params: JsonObject = {}, template = 'v') =>
    postTo(gateway, { template, headers, message: { method, params } });
  assert.equal(namesIn((await post('tools/list')).answer.result), ['look', 'a__shared', 'b__shared']);
  assert.is(textIn((await post('tools/call', { name: 'look' })).answer.result), 'a read');
  assert.is(
    (await postTo(gateway, { template: undefined, headers, message: { method: 'tools/list' } })).status,
    404,
  );
  const { reply } = begin(gateway, 'GET', { template: 'v', headers });
  await until(() => reply.opened !== undefined);
  await gateway.views.put({ ...VIEW, from: [{ template: 'a' }] });
  const told = () => reply.opened?.events.some(({ data }) => String(data).includes('tools/list_changed'));
  await until(() => told() === true);
  assert.equal(namesIn((await post('tools/list')).answer.result), ['read', 'shared']);
  await gateway.views.delete('v');
  await until(() => reply.opened?.isEnded !== false);
});

test('a call is answered although its tool goes from the list meanwhile', async () => {
  let names = ['slow', 'kept'];
  const answer = Promise.withResolvers<JsonObject>();
  const called = Promise.withResolvers<() => void>();
  const handler: InProcessHandler = ({ method }, { notify }) => {
    if (method === 'tools/list') return { tools: names.map((name) => ({ name, inputSchema })) };
    called.resolve(() => notify('notifications/tools/list_changed', {}));
    return answer.promise;
  };
  await gateway.register('c', { id: 'one', handler }, { waitMs: 5_000 });
  await gateway.views.put({
    id: 'v',
    title: 'Changing',
    from: [{ template: 'c', rename: { slow: 'late' } }],
  });
  const listed = async () => namesIn((await modern('tools/list')).answer.result);
  assert.equal(await listed(), ['late', 'kept']);
  const call = modern('tools/call', { name: 'late' });
  const tellChange = await called.promise;
  names = ['kept', 'new'];
  tellChange();
  await until(async () => !(await listed()).includes('late'));
  assert.equal(await listed(), ['kept', 'new']);
  answer.resolve({ content: [{ type: 'text', text: 'answered' }] });
  assert.is(textIn((await call).answer.result), 'answered');
  assert.is(Object((await modern('tools/call', { name: 'late' })).answer.error).code, -32602);
});

test('rights to tools limit a view, too, and a view needs no right to its templates', async () => {
  await gateway.views.put(VIEW);
  const tools = new ToolRights([['a/*']]);
  const limited: Principal = { ...ANONYMOUS, id: 'user:a', templates: new Set(), tools };
  assert.equal(namesIn((await modern('tools/list', {}, limited)).answer.result), ['look', 'a__shared']);
  assert.is(textIn((await modern('tools/call', { name: 'look' }, limited)).answer.result), 'a read');
  const refused = (await modern('tools/call', { name: 'b__shared' }, limited)).answer.error;
  assert.is(Object(refused).code, -32602);
});

test('the names of a view do not depend on the rights of the caller that lists it first', async () => {
  await gateway.close({ graceMs: 0 });
  store = new MemoryStore();
  gateway = await createGateway({ store });
  await gateway.views.put(VIEW);
  await gateway.close({ graceMs: 0 });
  gateway = await start();
  const limited: Principal = { ...ANONYMOUS, id: 'user:a', tools: new ToolRights([['a/*']]) };
  assert.equal(namesIn((await modern('tools/list', {}, limited)).answer.result), ['look', 'a__shared']);
  assert.equal(namesIn((await modern('tools/list')).answer.result), ['look', 'a__shared', 'b__shared']);
});

test('a resource that a view does not take is not read, however its URI is written', async () => {
  await gateway.register(
    'files',
    {
      id: 'one',
      handler: ({ method, params }) => {
        if (method === 'resources/list') return { resources: [{ uri: 'file:///public/a', name: 'a' }] };
        if (method !== 'resources/read') return { tools: [] };
        const { href } = new URL(String(Object(params).uri)); // as the SDKs do
        return { contents: [{ uri: href, text: decodeURIComponent(href) }] };
      },
    },
    { waitMs: 5_000 },
  );
  const read = async (uri: string) => {
    const { result } = (await modern('resources/read', { uri })).answer;
    return result === undefined ? undefined : Object(result).contents[0].uri;
  };
  for (const resources of [['file:///public/*', 'note://Z%C3%BCrich/*'], ['!file:///private/*']]) {
    await gateway.views.put({ ...VIEW, from: [{ template: 'files', resources }] });
    const served = ['file:///public/a', 'file:///public/b%20c', 'file:///public/b c', 'note://Z%C3%BCrich/1'];
    for (const uri of served) assert.is(await read(uri), new URL(uri).href, uri);
    for (const uri of [
      'file:///private/key',
      'file:///public/../private/key',
      'file:///public/%2e%2E/private/key',
      'file:///public/..%2fprivate/key',
      'file:///public/%252e%252e/private/key',
      'file:///public/%23/../../private/key',
      'file:///public/..\\private/key',
      'file:///priv%61te/key',
      'FILE:///private/key',
      'file://localhost/private/key',
      ' file:///private/key',
      'file:///priv\tate/key',
      'file:/private/key',
    ])
      assert.is(await read(uri), undefined, uri);
  }
});

test('names and definitions are those of before after a restart', async () => {
  await gateway.views.put({ id: 'v', from: [{ template: 'b' }] });
  await gateway.views.put({ id: 'v', from: [{ template: 'a' }, { template: 'b' }] });
  const before = namesIn((await modern('tools/list')).answer.result);
  assert.equal(before, ['read', 'a__shared', 'write', 'shared']);
  await gateway.close({ graceMs: 0 });
  gateway = await start();
  assert.equal(namesIn((await modern('tools/list')).answer.result), before);
});

test.run();
