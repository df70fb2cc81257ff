// Exports and imports of a registry: cases that the commands do not show. The commands: spec/cli/commands/database.spec.ts.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders

import * as assert from 'uvu/assert';
import { importDocument, registryDocument } from '../../../src/cli/database/registry-document.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { parseRegistryDocument } from '../../../src/registry/files/registry-file.ts';
import { definition } from '../../helpers/backends/profiles.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('registry document');

test('exports no in-process functions and no instances of a sync', () => {
  const definitions = [
    definition('one', { template: 'files', transport: 'in-process' }),
    definition('two', { template: 'files', transport: 'stdio', command: 'node', source: 'sync' }),
  ];
  const { document } = registryDocument([], definitions, { withSecrets: true });
  assert.equal(document, { templates: { files: { instances: [] } } });
});

const context: Parameters<typeof importDocument>[2] = {
  nodeId: 'here:8080',
  now: '2027-01-01T00:00:00.000Z',
  folder: '/',
  protectedPaths: [],
};
const document = {
  templates: {
    files: {
      load_balancer: { timeout: 9 },
      instances: [{ id: 'one', command: 'node server.js', env_vars: { A: '1' } }],
    },
  },
  servers: { far: { template_name: 'search', url: 'http://127.0.0.1:9', weight: 3 } },
};

test('imports over instances of the same id, keeps their server ids, and changes no others', async () => {
  const store = new MemoryStore();
  await take(store, { templates: { other: { instances: [{ id: 'one', endpoint: 'http://a' }] } } });
  await take(store, document);
  await store.templates.save({ name: 'files', loadBalancer: { timeout: 1, max_retries: 5 } });
  const again = await take(store, document, { ...context, now: '2028-01-01T00:00:00.000Z' });
  assert.equal(again, { added: [], replaced: ['files/one', 'search/far'], problems: [], stripped: [] });
  const instances = await store.instances.list();
  const kept = instances.map((one) => `${one.template} ${one.serverId} ${one.createdAt.slice(0, 4)}`);
  assert.equal(kept, ['other one 2027', 'files files.one 2027', 'search far 2027']);
  assert.equal((await store.templates.list()).find(({ name }) => name === 'files')?.loadBalancer, {
    timeout: 9,
    max_retries: 5,
  });
});

test('texts that look like placeholders survive an export and an import', async () => {
  const store = new MemoryStore();
  const text = '$${A} ${env:B} ${input:c}';
  await store.instances.save(
    definition('one', { transport: 'stdio', command: 'sh', args: ['-c', text], env: { T: text } }),
  );
  const { document } = registryDocument([], await store.instances.list(), { withSecrets: true });
  const copy = new MemoryStore();
  assert.equal((await take(copy, document)).problems, []);
  const [read] = await copy.instances.list();
  assert.equal([read?.args, read?.env], [['-c', text], { T: text }]);
});

test('keeps every server id when an export is imported into another store', async () => {
  const store = new MemoryStore();
  const http = { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp' } as const;
  for (const [template, serverId] of [
    ['c', 'x'],
    ['b', 'b.x'],
    ['a', 'a~x'],
  ] as const)
    await store.instances.save(definition('x', { ...http, template, serverId, source: 'api' }));
  const before = await store.instances.list();
  const exported = registryDocument([], before, { withSecrets: true }).document;
  const elsewhere = new MemoryStore();
  await take(elsewhere, exported);
  const idsOf = (instances: typeof before) =>
    instances.map(({ template, serverId }) => `${template}: ${serverId}`).toSorted();
  assert.equal(idsOf(await elsewhere.instances.list()), idsOf(before));
  await take(elsewhere, { servers: { y: { template: 'd', server_id: 'x', id: 'y', url: 'http://h' } } });
  assert.is((await elsewhere.instances.list()).at(-1)?.serverId, 'y', 'no other name than its own');
});

test('ends the import when the database is unavailable, and continues when one entry is refused', async () => {
  const refusing = new MemoryStore();
  refusing.instances.save = () => Promise.reject(databaseUnavailable(new Error('gone')));
  assert.is(await codeOf(take(refusing, document)), 'DATABASE_UNAVAILABLE');
  const twins = {
    servers: { one: { url: 'http://a' }, two: { template_name: 'one', id: 'one', url: 'http://b' } },
  };
  const { added, problems } = await take(new MemoryStore(), twins);
  assert.equal([added, problems.length], [['one/one'], 1]);
});

const VIEW = { from: [{ template: 'a' }] };
const definitions = {
  files: {
    name: 'Files',
    description: 'Reads files.',
    version: '1.0.0',
    command: 'node',
    args: ['server.js'],
  },
};

test('an export has the stored template definitions, and an import brings them back', async () => {
  const store = new MemoryStore();
  assert.equal((await take(store, { definitions })).problems, []);
  const stored = await store.definitions.list();
  assert.equal(
    stored.map(({ id, value }) => [id, value.id, value.command]),
    [['files', 'files', 'node']],
  );
  const { document } = registryDocument([], [], { withSecrets: false, definitions: stored });
  assert.equal(document, { templates: {}, definitions });
  const copy = new MemoryStore();
  await take(copy, document);
  const changed = { definitions: { files: { ...definitions.files, version: '2.0.0' } } };
  assert.equal((await take(copy, changed)).problems, []);
  const [{ value } = {}] = await copy.definitions.list();
  assert.equal({ ...value, version: '1.0.0' }, stored[0]?.value, 'replaced, not added');
});

test('an import refuses unusable definitions, each by itself, with the checks of the API', async () => {
  const { files } = definitions;
  const written = {
    definitions: {
      ...definitions,
      bare: 1,
      other: { ...files, id: 'another' },
      secret: { ...files, environment: { API_TOKEN: 'planted' } },
      short: { name: 'x' },
      keys: { ...files, args: ['/var/lib/keys/gateway.key'] },
      taken: files,
    },
    views: { files: VIEW },
  };
  const store = new MemoryStore();
  await take(store, { views: { taken: VIEW } });
  const protectedPaths = [{ path: '/var/lib/keys/gateway.key', what: 'the key' }];
  const { problems } = await take(store, written, { ...context, protectedPaths });
  assert.equal(
    (await store.definitions.list()).map(({ id }) => id),
    ['files'],
  );
  const paths = problems.map((line) => line.split(':')[0]);
  const refused = ['bare', 'other', 'secret', 'short', 'keys', 'taken'].map((id) => `definitions.${id}`);
  assert.equal(paths, [...refused, 'views.files']);
  assert.not.match(problems.join(), 'planted');
});

test('an import refuses a template with the name of a view, and its instances', async () => {
  const store = new MemoryStore();
  await take(store, { views: { taken: VIEW } });
  const instances = [{ id: 'one', endpoint: 'http://a/mcp' }];
  const servers = { taken: { url: 'http://b' } };
  for (const written of [{ templates: { taken: { instances } } }, { servers }]) {
    const { added, problems } = await take(store, written);
    assert.equal(added, []);
    assert.match(problems.join(), /taken: .*view/);
    assert.equal([await store.templates.list(), await store.instances.list()], [[], []]);
  }
});

test('an import keeps programs of any node, and makes new ones such where that is the default', async () => {
  const program = { command: 'npx' };
  const servers = {
    one: program,
    two: { ...program, cwd: '/srv' },
    three: { ...program, cwd: '/srv', node: 'any' },
  };
  const store = new MemoryStore();
  await take(store, { servers }, { ...context, isAnyDefault: true });
  const nodes = async (of: MemoryStore) =>
    Object.fromEntries((await of.instances.list()).map(({ id, nodeId }) => [id, nodeId]));
  const expected = { one: 'any', two: 'here:8080', three: 'any' };
  assert.equal(await nodes(store), expected);
  const { document } = registryDocument([], await store.instances.list(), { withSecrets: false });
  const other = new MemoryStore();
  await take(other, document, { ...context, isAnyDefault: true });
  assert.equal(await nodes(other), expected);
});

test('an import refuses programs of one node where names of nodes do not return, each by itself', async () => {
  const servers = { one: { command: 'npx' }, two: { command: 'npx', cwd: '/srv' } };
  const where = { ...context, isAnyDefault: true, hasEphemeralNodes: true };
  const { added, problems } = await take(new MemoryStore(), { servers }, where);
  assert.equal(added, ['one/one']);
  assert.is(problems.length, 1);
  assert.match(String(problems), /^two\/two: .*Set "node" to "any"/);
});

/** That many parts, by id. */
function many(count: number, value: object): Record<string, object> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, value]));
}

test('refuses what would exceed the bounds of a registry, and takes the rest', async () => {
  const full = (most: string) => `The registry is full (${most}): deregister or delete unused ones first.`;
  const endpoint = 'http://127.0.0.1:9';
  const store = new MemoryStore();
  const present = Array.from({ length: 10_000 }, (_, index) => definition(`x${index}`, { template: 'a' }));
  store.instances.list = async () => present;
  store.definitions.list = async () =>
    Object.keys(many(1_000, {})).map((id) => ({ id, value: definitions.files }));
  const written = {
    templates: {
      a: { instances: { x0: { endpoint }, new: { endpoint } } },
      ...many(1_000, { instances: [] }),
    },
    definitions: { x0: definitions.files, d: definitions.files },
    views: Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`v${index}`, VIEW])),
  };
  const { added, replaced, problems } = await take(store, written);
  assert.equal(replaced, ['definitions.x0', 'a/x0']);
  assert.is(added.length, 1_000);
  assert.equal(problems, [
    `definitions.d: ${full('1000 stored definitions')}`,
    `a/new: ${full('10000 instances')}`,
    `views.v1000: ${full('1000 views')}`,
  ]);
  const templates = many(2_000, { instances: [] });
  assert.equal((await take(store, { templates })).problems, [`templates.x1999: ${full('2000 templates')}`]);
});

test('refuses large parts whose memory would exceed that of a registry', async () => {
  const store = new MemoryStore();
  const metadata = { large: 'x'.repeat(1024 * 1024) };
  store.instances.list = async () =>
    Array.from({ length: 70 }, (_, index) => definition(`x${index}`, { template: 'a', metadata }));
  const endpoint = 'http://127.0.0.1:9';
  const instances = { large: { endpoint, metadata: { large: 'x'.repeat(6_000) } }, small: { endpoint } };
  const { added, problems } = await take(store, { templates: { a: { instances } } });
  assert.match(`${added} ${problems}`, /^a\/small a\/large: .*64 MiB of large definitions/);
});

async function take(store: MemoryStore, written: object, where = context) {
  return importDocument(store, await parseRegistryDocument(JSON.stringify(written), 'x.json'), where);
}

test.run();
