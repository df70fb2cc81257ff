import * as assert from 'uvu/assert';
import { importDocument, registryDocument } from '../../../src/cli/database/registry-document.ts';
import { databaseUnavailable } from '../../../src/domain/errors.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import { MemoryStore } from '../../../src/persistence/memory-store.ts';
import { parseRegistryDocument } from '../../../src/persistence/registry-file.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('registry document');

const definition = (fields: Partial<InstanceDefinition>): InstanceDefinition => ({
  id: 'one',
  serverId: 'one',
  template: 'files',
  transport: 'stdio',
  command: 'node',
  args: ['a b', '--c'],
  env: {},
  headers: {},
  weight: 1,
  metadata: {},
  source: 'api',
  nodeId: 'here:8080',
  createdAt: '2027-01-01T00:00:00.000Z',
  updatedAt: '2027-01-01T00:00:00.000Z',
  ...fields,
});
const { command: _command, ...far } = definition({
  id: 'far',
  template: 'search',
  transport: 'http',
  endpoint: 'https://mcp.example.com/mcp',
  args: [],
  headers: { Authorization: 'planted-header' },
  weight: 3,
  metadata: { zone: 'a' },
});
const near = definition({ id: 'near', workingDir: '/srv', env: { KEY: 'planted-variable' } });
const plain = definition({ id: 'alone', command: '/opt/a program', args: [] });
const templates = [
  { name: 'search', loadBalancer: { strategy: 'weighted_round_robin', timeout: 30 } },
  { name: 'empty', loadBalancer: {} },
] as const;

test('tells of secrets that were asked for and cannot be read', () => {
  const locked = definition({ id: 'shut', locked: 'no key fits' });
  const all = registryDocument([], [locked, near], { withSecrets: true });
  assert.equal([all.withheld, all.unreadable], [[], ['files/shut: no key fits']]);
  const open = registryDocument([], [locked, near], { withSecrets: false });
  assert.equal([open.withheld, open.unreadable], [['files/near', 'files/shut'], []]);
});

test('has templates and instances by name, with what a registration needs and no more', () => {
  const { document, withheld, unreadable } = registryDocument(templates, [near, far, plain], {
    withSecrets: true,
  });
  assert.equal([withheld, unreadable], [[], []]);
  assert.equal(Object.keys(document.templates), ['empty', 'files', 'search']);
  assert.equal(document, {
    templates: {
      empty: { instances: [] },
      files: {
        instances: [
          { id: 'alone', transport: 'stdio', command: '/opt/a program', args: [], weight: 1 },
          {
            id: 'near',
            transport: 'stdio',
            command: 'node',
            args: ['a b', '--c'],
            working_dir: '/srv',
            env_vars: { KEY: 'planted-variable' },
            weight: 1,
          },
        ],
      },
      search: {
        load_balancer: { strategy: 'weighted_round_robin', timeout: 30 },
        instances: [
          {
            id: 'far',
            transport: 'http',
            endpoint: 'https://mcp.example.com/mcp',
            headers: { Authorization: 'planted-header' },
            weight: 3,
            metadata: { zone: 'a' },
          },
        ],
      },
    },
  });
});

test('leaves secrets out unless they are asked for, and names whose', () => {
  const { document, withheld } = registryDocument(templates, [near, far, plain], { withSecrets: false });
  assert.not.match(JSON.stringify(document), 'planted');
  assert.equal(withheld, ['files/near', 'search/far']);
});

test('leaves out functions of a program', () => {
  const { command: _none, ...inProcess } = definition({ transport: 'in-process' });
  const { document } = registryDocument([], [inProcess], { withSecrets: true });
  assert.equal(document, { templates: { files: { instances: [] } } });
});

test('is read back as it was written', async () => {
  const { document } = registryDocument(templates, [near, far, plain], { withSecrets: true });
  const contents = await parseRegistryDocument(JSON.stringify(document), 'x.json');
  assert.equal(contents.problems, []);
  assert.equal(
    contents.templates.map(({ name }) => name),
    ['empty', 'files', 'search'],
  );
  const again = contents.entries.map(({ input }) => ({ ...input }));
  assert.equal(JSON.parse(JSON.stringify(again)), [
    ...(document.templates.files?.instances ?? []),
    ...(document.templates.search?.instances ?? []),
  ]);
});

test.run();

const imported = suite('import document');
const context = { nodeId: 'here:8080', now: '2027-01-01T00:00:00.000Z', folder: '/', protectedPaths: [] };
const document = {
  templates: {
    files: {
      load_balancer: { timeout: 9 },
      instances: [{ id: 'one', command: 'node server.js', env_vars: { A: '1' } }],
    },
  },
  servers: { far: { template_name: 'search', url: 'http://127.0.0.1:9', weight: 3 } },
};

imported('saves what the document lists, as if it had been registered', async () => {
  const store = new MemoryStore();
  assert.equal(await take(store, document), {
    added: ['files/one', 'search/far'],
    replaced: [],
    problems: [],
  });
  assert.equal(await store.listTemplates(), [
    { name: 'files', loadBalancer: { timeout: 9 } },
    { name: 'search', loadBalancer: {} },
  ]);
  const [one, far] = await store.listInstances();
  assert.equal(one, {
    id: 'one',
    serverId: 'one',
    template: 'files',
    transport: 'stdio',
    command: 'node',
    args: ['server.js'],
    env: { A: '1' },
    headers: {},
    weight: 1,
    metadata: {},
    source: 'api',
    nodeId: 'here:8080',
    createdAt: context.now,
    updatedAt: context.now,
  });
  assert.equal(
    [far?.endpoint, far?.weight, far?.source, far?.nodeId],
    ['http://127.0.0.1:9/mcp', 3, 'api', undefined],
  );
});

imported('replaces what has the same id, keeps its server id, and leaves the rest alone', async () => {
  const store = new MemoryStore();
  await take(store, { templates: { other: { instances: [{ id: 'one', endpoint: 'http://a' }] } } });
  await take(store, document);
  await store.saveTemplate({ name: 'files', loadBalancer: { timeout: 1, max_retries: 5 } });
  await store.saveTombstone({ template: 'files', id: 'one', fingerprint: 'x' });
  const again = await take(store, document, { ...context, now: '2028-01-01T00:00:00.000Z' });
  assert.equal(again, { added: [], replaced: ['files/one', 'search/far'], problems: [] });
  const instances = await store.listInstances();
  assert.equal(
    instances.map(({ template, serverId, createdAt }) => [template, serverId, createdAt.slice(0, 4)]),
    [
      ['other', 'one', '2027'],
      ['files', 'files.one', '2027'],
      ['search', 'far', '2027'],
    ],
  );
  assert.equal((await store.listTemplates()).find(({ name }) => name === 'files')?.loadBalancer, {
    timeout: 9,
    max_retries: 5,
  });
  assert.equal(await store.listTombstones(), []);
});

imported('uses what it can and tells the rest', async () => {
  const store = new MemoryStore();
  const { added, problems } = await take(store, {
    templates: {
      files: {
        instances: [
          { id: 'good', endpoint: 'http://a' },
          { id: 'bad', endpoint: 'ftp://a' },
          { id: 'masked', endpoint: 'http://a', headers: { A: '***' } },
        ],
      },
    },
  });
  assert.equal(added, ['files/good']);
  assert.is(problems.length, 2);
  assert.match(problems.join('\n'), /^templates\.files\.instances\[1\]\.endpoint: /m);
  assert.match(problems.join('\n'), /^templates\.files\.instances\[2\]\.headers\.A: is masked/m);
});

imported('ends when the database is gone, and goes on when one entry is refused', async () => {
  class Refusing extends MemoryStore {
    override saveInstance(): Promise<void> {
      return Promise.reject(databaseUnavailable(new Error('gone')));
    }
  }
  const error = await take(new Refusing(), document).catch((reason: unknown) => reason);
  assert.match(Object(error).code, 'DATABASE_UNAVAILABLE');
  const twins = {
    servers: { one: { url: 'http://a' }, two: { template_name: 'one', id: 'one', url: 'http://b' } },
  };
  const { added, problems } = await take(new MemoryStore(), twins);
  assert.equal([added, problems.length], [['one/one'], 1]);
});

imported.run();

async function take(store: MemoryStore, written: object, where = context) {
  return importDocument(store, await parseRegistryDocument(JSON.stringify(written), 'x.json'), where);
}
