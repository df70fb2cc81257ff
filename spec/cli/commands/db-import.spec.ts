import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { openStore } from '../../../src/persistence/open.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('db import');
let folder = '';
test.before.each(async () => {
  folder = mkdtempSync(join(tmpdir(), 'stagedoor-db-import-'));
  await runCommand(['db', 'migrate'], {}, folder);
});
test.after.each(() => rmSync(folder, { recursive: true, force: true }));

test('takes a document in, whatever its shape, and says who runs its programs', async () => {
  const text = JSON.stringify({ mcpServers: { memory: { command: 'npx', args: ['-y', 'x'] } } });
  writeFileSync(join(folder, 'mcp.json'), text);
  const { code, out, err } = await run('mcp.json', '--node-id', 'build-1:8080');
  assert.equal([code, err], [0, '']);
  const where = `1 instance is in ${join(folder, 'gateway.db')}; build-1:8080 runs the programs`;
  assert.equal(out.split('\n'), ['added memory/memory', where]);
  const store = await openStore('sqlite:///gateway.db', { cwd: folder, migrations: 'require' });
  const [{ source, nodeId } = {}] = await store.listInstances();
  await store.close();
  assert.equal([source, nodeId], ['api', 'build-1:8080']);
});

test('replaces what is there, and tells it as JSON', async () => {
  writeFileSync(join(folder, 'a.yaml'), 'servers:\n  far:\n    url: http://127.0.0.1:9\n');
  await run('a.yaml');
  const { out } = await run('a.yaml', '--json');
  assert.equal(JSON.parse(out), { added: [], replaced: ['far/far'], problems: [] });
});

test('takes what it can and fails for the rest', async () => {
  writeFileSync(join(folder, 'a.json'), JSON.stringify({ servers: { good: { url: 'http://a' }, bad: {} } }));
  const { code, out, err } = await run('a.json');
  assert.is(code, 1);
  assert.match(out, /^added good\/good$/m);
  assert.match(err, /^servers\.bad: /);
});

test('stores secrets encrypted', async () => {
  const far = { url: 'http://a', headers: { Authorization: 'planted-header' } };
  writeFileSync(join(folder, 'a.json'), JSON.stringify({ servers: { far } }));
  assert.is((await run('a.json')).code, 0);
  assert.not.match(readFileSync(join(folder, 'gateway.db'), 'latin1'), 'planted-header');
});

test('fails with one line for a file that cannot be used', async () => {
  writeFileSync(join(folder, 'broken.json'), '{"templates": ');
  for (const name of ['none.json', 'broken.json']) {
    const { code, out, err } = await run(name);
    assert.equal([code, out], [1, ''], name);
    assert.match(err, /^stagedoor: registry file [^\n]+$/);
  }
});

test.run();

function run(...words: string[]) {
  return runCommand(['db', 'import', ...words], {}, folder);
}
