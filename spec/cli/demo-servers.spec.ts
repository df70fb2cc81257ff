import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { planDemo } from '../../src/cli/demo-servers.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('demo servers');

const scratch = folderOfEach(test);

test('run everything three times, once of these over HTTP, and the other templates once', async () => {
  const { servers, problems } = await planDemo(scratch());
  assert.equal(problems, []);
  assert.equal(
    servers.map(({ template, id, input }) => [template, id, input.endpoint === undefined ? 'stdio' : 'http']),
    [
      ['everything', 'everything-1', 'stdio'],
      ['everything', 'everything-2', 'stdio'],
      ['everything', 'everything-3', 'http'],
      ['filesystem', 'filesystem-1', 'stdio'],
      ['memory', 'memory-1', 'stdio'],
    ],
  );
});

test('start the program directly with this Node, and tell the HTTP one to serve HTTP', async () => {
  const { servers } = await planDemo(scratch());
  const [first, , third] = servers;
  assert.is(first?.input.command, process.execPath);
  assert.equal([first?.input.args?.at(-1), third?.input.args?.at(-1)], ['stdio', 'streamableHttp']);
  assert.match(String(third?.input.endpoint), /^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
});

test('keep their files in folders of their own', async () => {
  const { servers } = await planDemo(scratch());
  const inputOf = (id: string) => servers.find((server) => server.id === id)?.input;
  assert.is(inputOf('filesystem-1')?.args?.at(-1), scratch('filesystem-1'));
  assert.equal(await readdir(scratch('filesystem-1')), ['welcome.txt']);
  assert.match(String(inputOf('memory-1')?.env_vars?.MEMORY_FILE_PATH), scratch('memory-1'));
});

test('leave out a template that cannot be used, and say why', async () => {
  const templates = scratch('templates');
  await mkdir(join(templates, 'broken'), { recursive: true });
  await writeFile(join(templates, 'broken', 'template.json'), '{}');
  const { servers, problems } = await planDemo(scratch(), templates);
  assert.equal(servers, []);
  assert.match(String(problems[0]), /^broken\/template\.json: /);
});

test('say what npx downloads when a package is not installed beside the gateway', async () => {
  const templates = scratch('templates');
  await mkdir(join(templates, 'far'), { recursive: true });
  const definition = {
    id: 'far',
    name: 'Far',
    description: 'A package that nobody installed.',
    tags: ['demo'],
    version: '1.0.0',
    command: 'npx',
    args: ['-y', '@stagedoor/not-installed@1.2.3', 'x'],
  };
  await writeFile(join(templates, 'far', 'template.json'), JSON.stringify(definition));
  const near = (await planDemo(scratch())).servers.map(({ downloads }) => downloads);
  const far = (await planDemo(scratch(), templates)).servers.map(({ downloads }) => downloads);
  assert.equal([new Set(near), far], [new Set([undefined]), ['@stagedoor/not-installed@1.2.3']]);
});

test.run();
