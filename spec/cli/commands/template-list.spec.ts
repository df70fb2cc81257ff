import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, runCommand, startGateway } from './against-gateway.ts';

const test = suite('template list and show');
let gateway: GatewayUnderTest;
let folder = '';
test.before(async () => {
  gateway = await startGateway();
  folder = await mkdtemp(join(tmpdir(), 'stagedoor-list-'));
});
test.after(async () => {
  await gateway.close();
  await rm(folder, { recursive: true });
});

const namesIn = (table: string): string[] =>
  table
    .split('\n')
    .slice(1)
    .map((line) => line.replace(/ .*$/, ''));

test('lists the templates of a gateway, and those with a tag', async () => {
  const { code, out } = await gateway.run('template', 'list');
  assert.is(code, 0);
  assert.match(out, /^TEMPLATE +VERSION +INSTANCES +TAGS +DESCRIPTION\n/);
  assert.match(out, /\ntime +1\.0\.0 +0 +utilities +Tells and converts times/);
  assert.equal(namesIn((await gateway.run('template', 'list', '--tag', 'utilities')).out), [
    'calculator',
    'time',
  ]);
  assert.is((await gateway.run('template', 'list', '--tag', 'none')).out, 'There is no such template.');
  const { templates } = JSON.parse((await gateway.run('template', 'list', '--json', '--tag', 'apps')).out);
  assert.equal(
    templates.map(({ id, is_defined }: { id: string; is_defined: boolean }) => [id, is_defined]),
    ['map', 'pdf', 'threejs'].map((id) => [id, true]),
  );
});

test('shows what a template is', async () => {
  const { code, out } = await gateway.run('template', 'show', 'filesystem');
  assert.is(code, 0);
  const facts = ['name +Filesystem', 'version +1\\.0\\.0', 'author +stagedoor', 'requires +node>=20'];
  for (const fact of [...facts, 'capabilities +read, write, tools', 'tags +demo, files', 'instances +0']) {
    assert.match(out, new RegExp(`^${fact}$`, 'm'));
  }
  assert.match(out, /^folders +array .* arguments +Folders that may be read and written\.$/m);
});

test('shows a template that was only registered', async () => {
  await gateway.server.gateway.register('bare', { endpoint: 'http://127.0.0.1:1' });
  const record = JSON.parse((await gateway.run('template', 'show', 'bare', '--json')).out);
  assert.equal([record.name, record.version, record.is_defined, record.instances], ['bare', null, false, 1]);
  const { code, err } = await gateway.run('template', 'show', 'nothing');
  assert.match([code, err].join(' '), /^1 .*TEMPLATE_NOT_FOUND/);
});

test('reads the definitions of this machine without a gateway', async () => {
  await mkdir(join(folder, 'mine'));
  const definition = { id: 'mine', name: 'Mine', description: 'Is mine.', version: '0.1.0', tags: ['x'] };
  await writeFile(join(folder, 'mine', 'template.json'), JSON.stringify(definition));
  const local = ['--local', '--templates-dir', folder];
  assert.equal(namesIn((await runCommand(['template', 'list', ...local])).out), ['mine']);
  assert.is(
    (await runCommand(['template', 'list', '--tag', 'y', ...local])).out,
    'There is no such template.',
  );
  const shown = await runCommand(['template', 'show', 'mine', '--json', ...local]);
  assert.equal(JSON.parse(shown.out), definition);
  const { code, err } = await runCommand(['template', 'show', 'mien', ...local]);
  assert.equal([code, err], [1, 'stagedoor: there is no template "mien"; did you mean "mine"?']);
});

test.run();
