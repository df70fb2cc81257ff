import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('db export');
const instances = [
  { id: 'far', transport: 'http', endpoint: 'http://127.0.0.1:9/mcp', headers: { A: 'planted' }, weight: 2 },
  { id: 'near', transport: 'stdio', command: 'node', args: ['a b'], env_vars: { B: 'planted' }, weight: 1 },
];
const document = { templates: { demo: { load_balancer: { timeout: 9 }, instances } } };
let folder = '';
test.before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'stagedoor-db-export-'));
  writeFileSync(join(folder, 'in.json'), JSON.stringify(document));
  await runCommand(['db', 'migrate'], {}, folder);
  assert.is((await runCommand(['db', 'import', 'in.json'], {}, folder)).code, 0);
});
test.after(() => rmSync(folder, { recursive: true, force: true }));

test('prints the document without secrets, and says what it left out', async () => {
  const { code, out, err } = await run();
  assert.is(code, 0);
  const plain = instances.map(({ headers: _headers, env_vars: _variables, ...rest }) => rest);
  assert.equal(JSON.parse(out), { templates: { demo: { load_balancer: { timeout: 9 }, instances: plain } } });
  const what = 'left out the environment variables and headers of demo/far, demo/near';
  assert.is(err, `${what}; --with-secrets includes them`);
});

test('prints all of it when it is asked to', async () => {
  const { out, err } = await run('--with-secrets');
  assert.equal([JSON.parse(out), err], [document, '']);
});

test('writes a file that only its owner can read, in the format of its name', async () => {
  const readers: readonly (readonly [string, (text: string) => unknown])[] = [
    ['out.json', (text) => JSON.parse(text)],
    ['out.yaml', (text) => parse(text)],
    ['out.yml', (text) => parse(text)],
  ];
  for (const [name, read] of readers) {
    const path = join(folder, name);
    const { code, out, err } = await run('--with-secrets', '--file', name);
    assert.equal([code, out, err], [0, '', `wrote ${path}, 2 instances`]);
    assert.equal(read(readFileSync(path, 'utf8')), document);
    if (process.platform !== 'win32') assert.is(statSync(path).mode & 0o777, 0o600);
  }
  assert.not.match(readFileSync(join(folder, 'out.yaml'), 'utf8'), /^\{/);
});

test('fails with one line when the file cannot be written', async () => {
  mkdirSync(join(folder, 'taken', 'full'), { recursive: true });
  const { code, err } = await run('--file', 'taken', '--force');
  assert.is(code, 1);
  assert.match(err, /^stagedoor: .*taken cannot be written \(\w+\)$/);
});

test('makes no folder and replaces no file unless it is told to', async () => {
  const lost = join(folder, 'nope', 'x.json');
  const missing = await run('--file', join('nope', 'x.json'));
  const why = `there is no folder ${join(folder, 'nope')}`;
  assert.equal(
    [missing.code, missing.out, missing.err],
    [1, '', `stagedoor: ${lost} cannot be written: ${why}`],
  );
  assert.is(existsSync(join(folder, 'nope')), false);

  const path = join(folder, 'there.json');
  writeFileSync(path, 'precious');
  const refused = await run('--file', 'there.json');
  assert.equal([refused.code, refused.err], [1, `stagedoor: ${path} already exists; --force replaces it`]);
  assert.is(readFileSync(path, 'utf8'), 'precious');
  const forced = await run('--file', 'there.json', '--force', '--with-secrets');
  assert.equal([forced.code, forced.err], [0, `wrote ${path}, 2 instances`]);
  assert.equal(JSON.parse(readFileSync(path, 'utf8')), document);

  const pointless = await run('--force');
  assert.equal([pointless.code, pointless.err], [2, 'stagedoor: --force requires --file']);
});

test('fails when the key of the secrets is another', async () => {
  const words = ['db', 'export', '--with-secrets'];
  const { code, err } = await runCommand(words, { GATEWAY_SECRET_KEY: 'another-secret-'.repeat(3) }, folder);
  assert.is(code, 1);
  assert.match(err, /^stagedoor: demo\/far: [^\n]+; demo\/near: [^\n]+$/);
  const without = await runCommand(
    words.slice(0, 2),
    { GATEWAY_SECRET_KEY: 'another-secret-'.repeat(3) },
    folder,
  );
  assert.is(without.code, 0);
  assert.match(without.err, /^left out the environment variables and headers of demo\/far, demo\/near;/);
});

test.run();

function run(...words: string[]) {
  return runCommand(['db', 'export', ...words], {}, folder);
}
