// Folders of templates: the bundled one, and folders with invalid files.

import { existsSync, readdirSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { readCatalogue, readTemplateText } from '../../src/templates/catalogue.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { canFindProcesses, NO_PROCESSES } from '../helpers/programs/processes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('catalogue of templates');

const folder = folderOfEach(test);
const onLinux = test.needs(canFindProcesses, NO_PROCESSES);

async function add(name: string, definition: unknown): Promise<void> {
  await mkdir(folder(name));
  const text = typeof definition === 'string' ? definition : JSON.stringify(definition);
  await writeFile(folder(name, 'template.json'), text);
}

function definitionOf(id: string) {
  return { id, name: id, description: 'Shows things.', version: '1.0.0' };
}

test('reads the bundled templates without a problem', async () => {
  const { templates, problems } = await readCatalogue();
  assert.equal(problems, []);
  const ids = templates.map(({ id }) => id);
  assert.equal(ids, [
    ...['calculator', 'eslint', 'everything', 'filesystem', 'git', 'map', 'memory', 'pdf', 'repomix'],
    ...['sequential-thinking', 'threejs', 'time'],
  ]);
});

test('reports invalid files and reads the others, sorted by id', async () => {
  await add('weather', definitionOf('weather'));
  await add('alpha', definitionOf('alpha'));
  await add('broken', '{');
  await add('double', '{"id": "double",\n "id": "double"}');
  await add('renamed', definitionOf('other'));
  await add('wrong', { ...definitionOf('wrong'), version: 1, name: 2 });
  const { templates, problems } = await readCatalogue(folder());
  const found = templates.map(({ id }) => id);
  assert.equal(found, ['alpha', 'weather']);
  assert.match(problems[0] ?? '', /^broken\/template\.json: not JSON: /);
  assert.equal(problems.slice(1), [
    'double/template.json: not JSON: Keys must be unique at line 2, column 2',
    'renamed/template.json: id: is "other", but the folder is "renamed"',
    'wrong/template.json: name: Input should be a valid string',
    'wrong/template.json: version: Input should be a valid string',
  ]);
});

onLinux('a folder with thousands of templates opens few files at a time', async () => {
  const names = Array.from({ length: 600 }, (_, n) => `t${1_000 + n}`);
  for (const name of names) await add(name, definitionOf(name));
  const openFiles = () => readdirSync('/proc/self/fd').length;
  const before = openFiles();
  let most = 0;
  const look = () => {
    most = Math.max(most, openFiles());
    looking = setImmediate(look);
  };
  let looking = setImmediate(look);
  const { templates, problems } = await readCatalogue(folder()).finally(() => clearImmediate(looking));
  assert.equal([templates.map(({ id }) => id), problems], [names, []]);
  assert.ok(most - before < 50, `${most - before} files were open`);
});

test('uses the name of the folder for a missing id', async () => {
  await add('nameless', { ...definitionOf('x'), id: undefined });
  const { templates, problems } = await readCatalogue(folder());
  assert.equal([templates.map(({ id }) => id), problems], [['nameless'], []]);
});

test('reports files that are too large, loops of links and folders', async () => {
  await mkdir(folder('large'));
  await writeFile(folder('large', 'template.json'), Buffer.alloc(10 * 1024 * 1024, '{'));
  await mkdir(folder('loop'));
  await symlink('template.json', folder('loop', 'template.json'));
  await mkdir(folder('nested', 'template.json'), { recursive: true });
  assert.equal((await readCatalogue(folder())).problems, [
    'large/template.json: has 10.0 MB; a definition may have 1 MB',
    'loop/template.json: cannot be read (ELOOP)',
    'nested/template.json: is not a file',
  ]);
});

test('reads no more than a definition may have, of pipes and devices nothing', async () => {
  const refused = (path: string) => readTemplateText(path).catch((thrown: Error) => thrown.message);
  assert.is(await refused('/dev/zero'), 'is not a file');
  // The size of such a file is 0, and it has some MB.
  if (existsSync('/proc/kallsyms')) assert.match(await refused('/proc/kallsyms'), /^has 1\.\d MB/);
});

test('ignores files, and folders without a definition', async () => {
  await writeFile(folder('README.md'), '');
  await mkdir(folder('notes'));
  assert.equal(await readCatalogue(folder()), { templates: [], problems: [] });
});

test('reports a folder that cannot be read', async () => {
  assert.equal(await readCatalogue(folder('missing')), {
    templates: [],
    problems: ['the folder of templates cannot be read (there is no such file)'],
  });
});

test.run();
