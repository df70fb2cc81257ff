// `template init` writes a definition, `template add` takes it over.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { readCatalogue } from '../../../src/templates/catalogue.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('template init and add');

const folder = folderOfEach(test);

const run = async (...words: string[]) => {
  const { code, out, err } = await runCommand(['template', ...words], {}, folder());
  return { code, out: out.replaceAll(folder(), ''), err: err.replaceAll(folder(), '') };
};
const search = ['init', 'search', '--description', 'Searches.', '--command', 'node server.js'];

test('write a definition from options that validates, and is listed once added', async () => {
  const { code, out } = await run(...search, '--tag', 'files', '--author', 'me');
  assert.is(code, 0);
  assert.match(out, /^\/search\/template\.json is written/);
  assert.equal(JSON.parse(await readFile(folder('search', 'template.json'), 'utf8')), {
    ...{ id: 'search', name: 'Search', description: 'Searches.', version: '0.1.0', author: 'me' },
    ...{ capabilities: ['tools'], tags: ['files'], transport: 'stdio', command: 'node server.js' },
  });
  assert.is((await run('validate', folder('search', 'template.json'), '--strict')).code, 0);
  const added = await run('add', 'search', '--templates-dir', 'templates');
  assert.equal(added, {
    ...{ code: 0, err: '' },
    out: 'search is added as /templates/search/template.json; a gateway reads it when it starts',
  });
  const { templates, problems } = await readCatalogue(folder('templates'));
  assert.equal([templates.map(({ id }) => id), problems], [['search'], []]);
});

test('replace what is there only when forced, and leave nothing beside it', async () => {
  await run(...search);
  await run('add', 'search', '--templates-dir', 'templates');
  const again = await run(...search, '--author', 'me');
  assert.equal(
    [again.code, again.err],
    [1, 'stagedoor: /search/template.json already exists; --force replaces it'],
  );
  assert.is((await run(...search, '--author', 'me', '--force')).code, 0);
  const refused = await run('add', 'search', '--templates-dir', 'templates');
  assert.equal(
    [refused.code, refused.err],
    [1, 'stagedoor: /templates/search/template.json already exists; --force replaces it'],
  );
  assert.is((await run('add', 'search', '--templates-dir', 'templates', '--force')).code, 0);
  assert.match(await readFile(folder('templates', 'search', 'template.json'), 'utf8'), /"author": "me"/);
  assert.equal((await readdir(folder('templates'), { recursive: true })).sort(), [
    ...['search', join('search', 'template.json')],
  ]);
});

test('lets one of several that add at once succeed', async () => {
  await run(...search);
  const runs = await Promise.all(
    Array.from({ length: 8 }, () => run('add', 'search', '--templates-dir', 'templates')),
  );
  assert.equal(runs.map(({ code }) => code).sort(), [0, 1, 1, 1, 1, 1, 1, 1]);
  assert.equal(await readdir(folder('templates')), ['search']);
});

test('refuse what is not valid or not there, with nothing changed', async () => {
  await mkdir(folder('broken'));
  await writeFile(folder('broken', 'template.json'), '{"id": "broken", "version": 1}');
  const broken = await run('add', 'broken', '--templates-dir', 'templates');
  assert.is(broken.code, 1);
  assert.match(broken.err, /^stagedoor: broken\/template\.json is not valid and was not added\n/);
  assert.match(broken.err, /version: must be string/);
  const missing = await run('add', 'missing', '--templates-dir', 'templates');
  assert.equal([missing.code, missing.err], [2, 'stagedoor: missing/template.json does not exist']);
  const nowhere = await run('add', 'broken');
  assert.match([nowhere.code, nowhere.err].join(' '), /^2 stagedoor: missing --templates-dir/);
  assert.equal(await readdir(folder()), ['broken']);
});

test('ask nobody where nobody is', async () => {
  assert.equal(await run('init'), {
    ...{ code: 2, out: '' },
    err: 'stagedoor: missing <id>, --description, --command or --endpoint: there is no terminal to ask for them',
  });
  const bad = await run('init', 'Bad', '--description', 'x', '--command', 'y');
  assert.equal([bad.code, bad.err], [2, 'stagedoor: id: must match pattern "^[a-z][a-z0-9-]*$"']);
  const both = await run('init', 'a', '--command', 'x', '--endpoint', 'http://a');
  assert.equal([both.code, both.err], [2, 'stagedoor: --command and --endpoint cannot be combined']);
  assert.equal(await readdir(folder()), []);
});

test.run();
