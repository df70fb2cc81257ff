import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../../src/config.ts';
import { startServer } from '../../../src/server.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand, startGateway } from './against-gateway.ts';

const test = suite('gateway register, as the definition says', { timeoutMs: 90_000 });

const folder = folderOfAll(test);

test('starts a server of the catalogue, with its settings', async () => {
  const gateway = await startGateway();
  try {
    const { code, out, err } = await gateway.run(
      ...['gateway', 'register', 'filesystem', '--config', `folders=${folder()}`, '--wait', '60', '--json'],
    );
    assert.is(code, 0, err);
    const { id, state, args } = JSON.parse(out);
    assert.equal([state, args.at(-1)], ['healthy', folder()]);
    const called = await fetch(`${gateway.url}/mcp/filesystem/tools/call`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'list_allowed_directories', arguments: {} }),
    });
    assert.match(await called.text(), folder());
    assert.is((await gateway.run('gateway', 'deregister', 'filesystem', id)).code, 0);
    const missing = await gateway.run('gateway', 'register', 'filesystem', '--defined');
    assert.is(missing.code, 1);
    assert.match(missing.err, /needs a folder of its own for each server: give "config\.folders"/);
    const unknown = await gateway.run('gateway', 'register', 'filesystem', '--config', 'fodlers=/srv');
    assert.match([unknown.code, unknown.err].join(' '), /^1 .*fodlers/);
  } finally {
    await gateway.close();
  }
});

test('refuses what the definition decides', async () => {
  const { code, err } = await runCommand(['gateway', 'register', 'a', '--defined', '--command', 'x']);
  assert.equal([code, err], [2, 'stagedoor: --command cannot be combined with --defined or --config']);
});

test('encrypts secret settings in the database, and shows them to nobody', async () => {
  const templates = folder('templates');
  await mkdir(join(templates, 'remote'), { recursive: true });
  const secret = {
    type: 'string',
    sensitive: true,
    header_mapping: 'Authorization',
    default: 'planted-default',
  };
  const definition = {
    ...{ id: 'remote', name: 'Remote', description: 'Far away.', version: '1.0.0' },
    ...{ endpoint: 'http://127.0.0.1:1/mcp', transport: 'http' },
    config_schema: { properties: { token: secret } },
  };
  await writeFile(join(templates, 'remote', 'template.json'), JSON.stringify(definition));
  const state = folder('state');
  await mkdir(state);
  const flags = {
    ...{ port: '0', host: '127.0.0.1', 'grace-seconds': '1', auth: false },
    ...{ database: `sqlite:///${join(state, 'gateway.db')}`, 'templates-dir': templates },
  };
  const server = await startServer(loadConfig({ flags, env: {}, cwd: state, readFile: () => undefined }));
  const env = { STAGEDOOR_URL: String(server.urls[0]) };
  try {
    const words = ['gateway', 'register', 'remote', '--config', 'token=planted-secret', '--json'];
    const registered = await runCommand(words, env);
    assert.is(registered.code, 0, registered.err);
    assert.equal(JSON.parse(registered.out).headers, { Authorization: '***' });
    const shown = await runCommand(['template', 'show', 'remote', '--json'], env);
    assert.is(JSON.parse(shown.out).config_schema.properties.token.default, '***');
    const all = await fetch(`${server.urls[0]}/gateway/registry`);
    assert.not.match(registered.out + shown.out + (await all.text()), /planted/);
  } finally {
    await server.close();
  }
  const files = await Promise.all(
    (await readdir(state)).map((name) => readFile(join(state, name), 'latin1')),
  );
  assert.ok(files.some((text) => text.includes('127.0.0.1:1/mcp')));
  assert.is(
    files.some((text) => text.includes('planted')),
    false,
  );
});

test.run();
