// `config`: the settings that a start would have, and the source of each.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { cellsOf, complaint, printed, runCommand } from './against-gateway.ts';

const test = suite('config');

test('shows each setting with its source', async () => {
  const running = runCommand(['config', '--port', '9000'], { GATEWAY_LOG_LEVEL: 'warn' });
  const rows = cellsOf(await printed(running));
  assert.equal(rows[0], ['SETTING', 'SOURCE', 'VALUE']);
  const rowOf = (setting: string) => rows.find(([name]) => name === setting);
  assert.equal(rowOf('log_level'), ['log_level', 'GATEWAY_LOG_LEVEL', 'warn']);
  assert.equal(rowOf('grace_seconds'), ['grace_seconds', 'default', '25']);
});

test('prints the settings as JSON with typed values', async () => {
  const words = 'config --json --port 9000 --health-interval 1.5 --allowed-hosts a,b:1 --log-level error';
  const rows: { name: string; value: unknown }[] = JSON.parse((await runCommand(words.split(' '))).out);
  const row = rows.find(({ name }) => name === 'log_level');
  assert.equal(row, { name: 'log_level', value: 'error', source: '--log-level' });
  const values = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  assert.equal(values.listen, { host: '0.0.0.0', port: 9000, label: 'gateway' });
  assert.is(values['load_balancer.health_check_interval'], 1.5);
  assert.is(values['auth.enabled'], true);
  assert.is(values.registry_file, null);
  assert.equal([values.allowed_hosts, values.trusted_proxies], [['a', 'b:1'], []]);
  assert.is(values.database_url, 'sqlite:///gateway.db');
  assert.equal([values['auth.secret_key'], values.redis_url, values.encryption_key], [null, null, null]);
});

test('shows the listeners with their source', async () => {
  const both = (await runCommand(['config'])).out;
  assert.match(both, /^listen +default +0\.0\.0\.0:8080 \(templates\)$/m);
  const one = (await runCommand(['config', '--port', '9000'])).out;
  assert.match(one, /^listen +port: --port; host: default +0\.0\.0\.0:9000 \(gateway\)$/m);
});

test('prefers an option to the environment', async () => {
  const words = ['config', '--json', '--auth', '--registry-file', 'a.json'];
  const { out } = await runCommand(words, { GATEWAY_AUTH_ENABLED: 'false' }, '/folder');
  const rows: { name: string; value: unknown }[] = JSON.parse(out);
  const values = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  assert.equal([values['auth.enabled'], values.registry_file], [true, '/folder/a.json']);
});

test('refuses a configuration file that is a folder, is missing or has no name', async () => {
  for (const [word, reason] of [
    ['.', ': the file "." cannot be read (it is a folder)'],
    ['none.yaml', ': there is no file "none.yaml"'],
    ['', ': the file "" cannot be read (it is a folder)'],
  ] as const)
    assert.is(await complaint(runCommand(['config', '--config', word]), 2), `stagedoor: --config${reason}`);
});

test.run();
