import * as assert from 'uvu/assert';
import { registryDocument } from '../../../src/cli/database/registry-document.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
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
