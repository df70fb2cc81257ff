// Servers with equal URIs, as one server, for the clients of both official SDKs: all templates together, and a view.

import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import type { RightsLists } from '../../../src/domain/accounts/rights.ts';
import { listenHttp } from '../../fixtures/everything/http-face.ts';
import { createInstance } from '../../fixtures/everything/instance.ts';
import { WATCHED_URI } from '../../fixtures/everything/resources.ts';
import { type PageServer, startPageServer } from '../../fixtures/page-server.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('equal URIs of two servers', { timeoutMs: 60_000 });
const app = appFor(test, () => startWithAccounts(), 'each');

const PAGE = 'ui://clock/view';
const FILE = 'file:///notes/today';
const FILES = 'file:///notes/{day}';

let servers: Record<'one' | 'two', PageServer>;
const closing: (() => Promise<unknown>)[] = [];

test.before.each(async () => {
  const started = (name: string, own: string) =>
    startPageServer({ name, uris: [PAGE, FILE, own], uriTemplates: [FILES, `${name}:///{x}`], page: PAGE });
  servers = { one: await started('one', 'file:///only-one'), two: await started('two', 'file:///only-two') };
  for (const [template, { url }] of Object.entries(servers))
    await app.gateway.register(template, { id: `${template}-1`, endpoint: url }, { waitMs: 20_000 });
  const definition = { from: [{ template: 'one' }, { template: 'two', rename: { show: 'display' } }] };
  await app.as(app.admin, 'PUT', '/gateway/views/both', { body: definition });
});

test.after.each(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await Promise.all(Object.values(servers).map((server) => server.close()));
});

async function keyWith(lists: RightsLists = {}): Promise<Credentials> {
  const permissions = ['tools:call', 'gateway:read'] as const;
  const { key } = await app.auth.accounts.createApiKey({ name: 'key', permissions, ...lists });
  return { 'x-api-key': key };
}

/** What both SDKs have in common here. */
interface Reader {
  readonly listTools: () => Promise<{ readonly tools: readonly object[] }>;
  readonly listResources: () => Promise<{ readonly resources: readonly { readonly uri: string }[] }>;
  readonly listResourceTemplates: () => Promise<{
    readonly resourceTemplates: readonly { readonly uriTemplate: string }[];
  }>;
  readonly readResource: (params: {
    readonly uri: string;
  }) => Promise<{ readonly contents: readonly object[] }>;
  readonly complete: (
    params: never,
  ) => Promise<{ readonly completion: { readonly values: readonly string[] } }>;
}

async function legacy(path: string, headers: Credentials): Promise<Client> {
  const client = new Client({ name: 'spec', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(app.url + path), { requestInit: { headers } });
  await client.connect(transport as never);
  closing.push(() => client.close());
  return client;
}

async function modern(path: string, headers: Credentials): Promise<ModernClient> {
  const negotiation = { versionNegotiation: { mode: { pin: '2026-07-28' } } };
  const client = new ModernClient({ name: 'spec', version: '1' }, negotiation);
  await client.connect(new ModernTransport(new URL(app.url + path), { requestInit: { headers } }));
  closing.push(() => client.close());
  return client;
}

const urisOf = async (client: Reader) => (await client.listResources()).resources.map(({ uri }) => uri);
const pagesOf = async (client: Reader) =>
  (await client.listTools()).tools.map((tool) => Object(tool)._meta?.ui?.resourceUri);
const readBy = async (client: Reader, uri: string) => {
  const [content] = (await client.readResource({ uri })).contents;
  return [Object(content).uri, Object(content).text];
};

const refusalOf = (client: Reader, uri: string) =>
  client.readResource({ uri }).then(
    () => 'it was read',
    (thrown) => String(thrown),
  );

const SHOWN = [
  'ui://one/clock/view',
  'file://one//notes/today',
  'file:///only-one',
  'ui://two/clock/view',
  'file://two//notes/today',
  'file:///only-two',
];

for (const path of ['/mcp', '/mcp/both'])
  for (const [era, connect] of [
    ['legacy', legacy],
    ['modern', modern],
  ] as const) {
    test(`${path}, ${era}: both are listed with their template, and each is read in both forms`, async () => {
      const client: Reader = (await connect(path, await keyWith())) as never;
      assert.equal(await pagesOf(client), ['ui://one/clock/view', 'ui://two/clock/view']);
      assert.equal(await urisOf(client), SHOWN);
      const { resourceTemplates } = await client.listResourceTemplates();
      assert.equal(
        resourceTemplates.map(({ uriTemplate }) => uriTemplate),
        ['file://one//notes/{day}', 'one:///{x}', 'file://two//notes/{day}', 'two:///{x}'],
      );
      assert.equal(await readBy(client, 'ui://two/clock/view'), ['ui://two/clock/view', `two ${PAGE}`]);
      assert.equal(await readBy(client, 'file://two//notes/today'), [
        'file://two//notes/today',
        `two ${FILE}`,
      ]);
      assert.equal(await readBy(client, PAGE), [PAGE, `one ${PAGE}`], 'the first that has it');
      for (const uri of ['file:///only-two', 'file://two//only-two'])
        assert.equal(await readBy(client, uri), [uri, 'two file:///only-two'], 'one that is not shared');
      for (const day of ['/notes/monday', '/notes/x/y'])
        assert.equal(await readBy(client, `file://two/${day}`), [`file://two/${day}`, `two file://${day}`]);
      for (const [uri, text] of [
        ['file://two//notes/{day}', `two ${FILES}`],
        [FILES, `one ${FILES}`],
      ]) {
        const asked = { ref: { type: 'ref/resource', uri }, argument: { name: 'day', value: '' } };
        assert.equal((await client.complete(asked as never)).completion.values, [text]);
      }
    });
  }

test('a client that comes without a list before reads composed URIs, and unknown ones do not exist', async () => {
  const client: Reader = (await modern('/mcp', await keyWith())) as never;
  assert.equal(await readBy(client, 'ui://two/clock/view'), ['ui://two/clock/view', `two ${PAGE}`]);
  for (const uri of ['ui://three/clock/view', 'ui://one/none', 'ui://one/ui://one/clock/view'])
    assert.match(await refusalOf(client, uri), /not found/i, uri);
});

test('links in the results of tools are not translated', async () => {
  const client = await legacy('/mcp', await keyWith());
  const { content } = await client.callTool({ name: 'two__show', arguments: {} });
  assert.is(Object(content)[0].uri, PAGE);
});

for (const path of ['/mcp', '/mcp/both'])
  test(`${path}: updates have the URI that a client with a session subscribed to`, async () => {
    const client = await legacy(path, await keyWith());
    const updated: string[] = [];
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void updated.push(params.uri),
    );
    const { one, two } = servers;
    await client.subscribeResource({ uri: 'file://two//notes/today' });
    await client.subscribeResource({ uri: 'ui://one/clock/view' });
    await client.subscribeResource({ uri: PAGE });
    await becomes(() => [[...one.subscribed], [...two.subscribed]], [[PAGE], [FILE]]);
    const told = async (update: () => void, uris: readonly string[]) => {
      updated.length = 0;
      update();
      await becomes(() => [...updated].sort(), [...uris].sort());
    };
    await told(() => two.update(FILE), ['file://two//notes/today']);
    await told(() => two.update(`${FILE}/part`, FILE), ['file://two//notes/today/part']);
    await told(() => one.update(PAGE), [PAGE, 'ui://one/clock/view']);
    await client.unsubscribeResource({ uri: PAGE });
    await told(() => one.update(PAGE), ['ui://one/clock/view']);
    await client.unsubscribeResource({ uri: 'ui://one/clock/view' });
    await client.unsubscribeResource({ uri: 'file://two//notes/today' });
    await becomes(() => [[...one.subscribed], [...two.subscribed]], [[], []]);
  });

test('updates have the URI that a client without a session listens to', async () => {
  for (const path of ['/mcp', '/mcp/both']) {
    const client = await modern(path, await keyWith());
    const updated: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', (({ params }: never) => {
      updated.push(String(Object(params).uri));
    }) as never);
    const uris = ['file://two//notes/today', FILE, 'ui://two/clock/view'];
    const subscription = await client.listen({ resourceSubscriptions: uris });
    const { one, two } = servers;
    await becomes(() => [[...one.subscribed].sort(), [...two.subscribed].sort()], [[FILE], [FILE, PAGE]]);
    two.update(`${FILE}#1`, FILE);
    await becomes(() => updated, ['file://two//notes/today#1']);
    one.update(FILE);
    await becomes(() => updated, ['file://two//notes/today#1', FILE]);
    await subscription.close();
  }
});

test('servers of the modern era are read and watched alike, by clients of both eras and over REST', async () => {
  const instances = { three: createInstance('three'), four: createInstance('four') };
  for (const [template, instance] of Object.entries(instances)) {
    const server = await listenHttp(instance, 'modern');
    closing.push(() => server.close());
    await app.gateway.register(template, { id: template, endpoint: server.url }, { waitMs: 20_000 });
  }
  const uri = 'test://four/watched-resource';
  const updated = { legacy: [] as string[], modern: [] as string[] };
  const key = await keyWith();
  const [old, current] = [await legacy('/mcp', key), await modern('/mcp', key)];
  old.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
    updated.legacy.push(params.uri);
  });
  current.setNotificationHandler('notifications/resources/updated', (({ params }: never) => {
    updated.modern.push(String(Object(params).uri));
  }) as never);
  for (const client of [old, current] as never as Reader[]) {
    assert.ok((await urisOf(client)).includes(uri));
    assert.equal(await readBy(client, uri), [uri, 'Watched resource content']);
    assert.equal((await readBy(client, 'test://four/template/7/data'))[0], 'test://four/template/7/data');
  }
  const definition = { from: [{ template: 'three' }, { template: 'four' }] };
  await app.as(app.admin, 'PUT', '/gateway/views/everything', { body: definition });
  const read = await app.as(key, 'POST', '/mcp/everything/resources/read', { body: { uri } });
  assert.equal([read.status, Object(read.body.contents)[0]?.uri], [200, uri], read.text);
  await old.subscribeResource({ uri });
  const subscription = await current.listen({ resourceSubscriptions: [uri] });
  const told = { legacy: [uri], modern: [uri] };
  await becomes(async () => {
    instances.three.changes$.next({ kind: 'resource', uri: WATCHED_URI });
    if (updated.legacy.length === 0 || updated.modern.length === 0)
      instances.four.changes$.next({ kind: 'resource', uri: WATCHED_URI });
    return { legacy: updated.legacy.slice(0, 1), modern: updated.modern.slice(0, 1) };
  }, told);
  assert.equal([...new Set([...updated.legacy, ...updated.modern])], [uri]);
  await subscription.close();
});

test('a URI that a third template lists goes before a composed one', async () => {
  const composed = 'ui://one/clock/view';
  const third = await startPageServer({ name: 'three', uris: [composed] });
  closing.push(() => third.close());
  await app.gateway.register('three', { id: 'three-1', endpoint: third.url }, { waitMs: 20_000 });
  const client: Reader = (await modern('/mcp', await keyWith())) as never;
  const uris = await urisOf(client);
  assert.is(new Set(uris).size, 7, 'no two are equal');
  assert.equal(await readBy(client, composed), [composed, `three ${composed}`]);
  const [ofFirst = ''] = await pagesOf(client);
  assert.ok(uris.includes(ofFirst) && ofFirst !== composed, ofFirst);
  assert.equal(await readBy(client, ofFirst), [ofFirst, `one ${PAGE}`]);
});

test('a URI is plain again when the other server is gone, and both forms are still read', async () => {
  const client: Reader = (await modern('/mcp', await keyWith())) as never;
  assert.equal(await urisOf(client), SHOWN);
  await app.gateway.deregister('one', 'one-1');
  await becomes(() => urisOf(client), [PAGE, FILE, 'file:///only-two']);
  assert.equal((await pagesOf(client)).at(-1), PAGE);
  for (const uri of [PAGE, 'ui://two/clock/view'])
    assert.equal(await readBy(client, uri), [uri, `two ${PAGE}`]);
});

test('a URI is plain when its other server stops listing it', async () => {
  const client: Reader = (await modern('/mcp', await keyWith())) as never;
  assert.equal(await urisOf(client), SHOWN);
  servers.one.uris = [PAGE];
  await becomes(
    () => urisOf(client),
    ['ui://one/clock/view', 'ui://two/clock/view', FILE, 'file:///only-two'],
  );
});

test('a caller that may use one of the templates sees its URIs as they are', async () => {
  for (const path of ['/mcp', '/mcp/both']) await urisOf((await modern(path, await keyWith())) as never);
  const limited: Reader = (await modern('/mcp', await keyWith({ templates: ['two'] }))) as never;
  assert.equal(await urisOf(limited), [PAGE, FILE, 'file:///only-two']);
  assert.equal(await pagesOf(limited), [PAGE]);
  assert.equal(await readBy(limited, PAGE), [PAGE, `two ${PAGE}`]);
  assert.is(
    (await readBy(limited, 'ui://one/clock/view'))[1],
    'two ui://one/clock/view',
    'its only template',
  );
  const byTools: Reader = (await legacy('/mcp', await keyWith({ tools: ['one/*'] }))) as never;
  assert.equal(await urisOf(byTools), [PAGE, FILE, 'file:///only-one']);
});

for (const [era, connect] of [
  ['legacy', legacy],
  ['modern', modern],
] as const)
  test(`a view, ${era}: a caller with tools of one template gets its pages and completions, and nothing of the other`, async () => {
    await urisOf((await modern('/mcp/both', await keyWith())) as never);
    const limited: Reader = (await connect('/mcp/both', await keyWith({ tools: ['two/show'] }))) as never;
    assert.equal(await pagesOf(limited), ['ui://two/clock/view'], 'the URIs of the whole view');
    for (const uri of await pagesOf(limited)) assert.equal(await readBy(limited, uri), [uri, `two ${PAGE}`]);
    assert.equal(await readBy(limited, PAGE), [PAGE, `two ${PAGE}`], 'as results of its tool name it');
    const complete = async (uri: string) => {
      const asked = { ref: { type: 'ref/resource', uri }, argument: { name: 'day', value: '' } };
      return String((await limited.complete(asked as never)).completion.values[0]);
    };
    for (const uri of ['file://two//notes/{day}', FILES]) assert.is(await complete(uri), `two ${FILES}`);
    for (const uri of ['file://one//notes/{day}', 'one:///{x}', 'file:///only-one']) {
      const ended = await complete(uri).catch((thrown) => String(thrown));
      assert.match(ended, /not found/i, uri);
      assert.match(await refusalOf(limited, uri), /not found/i, uri);
    }
  });

test('a view: a caller with tools of one template subscribes to nothing of the other', async () => {
  const { one, two } = servers;
  const key = await keyWith({ tools: ['two/*'] });
  const [old, current] = [await legacy('/mcp/both', key), await modern('/mcp/both', key)];
  const uris = ['ui://one/clock/view', 'file:///only-one', 'file:///only-two'];
  const ends = await Promise.all(
    uris.map((uri) =>
      old.subscribeResource({ uri }).then(
        () => 'subscribed',
        (thrown) => String(thrown),
      ),
    ),
  );
  assert.equal(
    ends.map((end) => /not found|subscribed/i.exec(end)?.[0].toLowerCase()),
    ['not found', 'not found', 'subscribed'],
  );
  await old.unsubscribeResource({ uri: 'file:///only-two' });
  await becomes(() => two.subscribed.size, 0);
  const subscription = await current.listen({ resourceSubscriptions: uris });
  await becomes(() => [...two.subscribed], ['file:///only-two']);
  assert.equal([...one.subscribed], []);
  await subscription.close();
});

test('a view that takes the resources of one template shows them as they are', async () => {
  const from = [{ template: 'one', resources: 'none', tools: ['!show'] }, { template: 'two' }];
  await app.as(app.admin, 'PUT', '/gateway/views/both', { body: { from } });
  const client: Reader = (await modern('/mcp/both', await keyWith())) as never;
  assert.equal(await urisOf(client), [PAGE, FILE, 'file:///only-two']);
  assert.equal(await readBy(client, PAGE), [PAGE, `two ${PAGE}`]);
  assert.match(await refusalOf(client, 'file://one//notes/today'), /not found/i);
});

test.run();
