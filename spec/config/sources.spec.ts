// Where values come from, and what happens when two places disagree.

import { resolve } from 'node:path';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { describeConfig } from '../../src/config.ts';
import { cwd, load, refusal } from '../helpers/config.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('sources');

test('prefers flag to environment to file to default, for any combination', () => {
  const level = fc.option(fc.constantFrom('trace', 'debug', 'warn', 'error'), { nil: undefined });
  fc.assert(
    fc.property(level, level, fc.boolean(), level, (flag, variable, surfaceA, file) => {
      const name = surfaceA ? 'MCP_GATEWAY_LOG_LEVEL' : 'GATEWAY_LOG_LEVEL';
      const config = load({
        flags: { 'log-level': flag },
        env: { [name]: variable },
        ...(file ? { yaml: `log_level: ${file}` } : {}),
      });
      assert.is(config.logLevel, flag ?? variable ?? file ?? 'info');
      const row = describeConfig(config).find(({ name }) => name === 'log_level');
      const fromFile = file ? 'gateway.yaml, log_level' : 'default';
      assert.is(row?.source, flag ? '--log-level' : variable ? name : fromFile);
    }),
  );
});

test('reads the file that --config names instead of gateway.yaml, with paths relative to it', () => {
  const { logLevel, registryFile } = load({
    flags: { config: 'etc/a.yaml' },
    yaml: 'log_level: fatal',
    files: { 'etc/a.yaml': 'log_level: warning\nregistry_file: registry.json' },
  });
  assert.equal([logLevel, registryFile], ['warn', resolve(cwd, 'etc/registry.json')]);
});

test('takes a secret from the file that NAME_FILE names, and never shows it', () => {
  const files = { 'run/url': 'memory://\n', 'run/password': 'hunter22\n' };
  const config = load({ env: { GATEWAY_DATABASE_URL_FILE: 'run/url' }, files });
  assert.is(config.databaseUrl, 'memory://');
  assert.equal(
    describeConfig(config).find(({ name }) => name === 'database_url'),
    { name: 'database_url', value: 'memory://', source: 'GATEWAY_DATABASE_URL_FILE' },
  );
  const { adminPassword, rows } = load({ env: { GATEWAY_ADMIN_PASSWORD_FILE: 'run/password' }, files });
  assert.is(adminPassword, 'hunter22');
  assert.equal(
    rows.find(({ name }) => name === 'auth.admin_password'),
    { name: 'auth.admin_password', value: '********', source: 'GATEWAY_ADMIN_PASSWORD_FILE' },
  );
  assert.is(
    refusal({ env: { GATEWAY_DATABASE_URL: 'memory://', GATEWAY_DATABASE_URL_FILE: 'run/url' }, files }),
    'GATEWAY_DATABASE_URL and GATEWAY_DATABASE_URL_FILE are both set: keep one',
  );
  assert.not.match(refusal({ env: { GATEWAY_ADMIN_PASSWORD: 'hunter2' } }), 'hunter2');
});

test('refuses two variables that give one setting two values, and takes an empty one as not set', () => {
  const env = { MCP_GATEWAY_LOG_LEVEL: 'info', GATEWAY_LOG_LEVEL: 'warn' };
  assert.match(refusal({ env }), 'MCP_GATEWAY_LOG_LEVEL and GATEWAY_LOG_LEVEL differ');
  assert.is(load({ env: { MCP_GATEWAY_LOG_LEVEL: '', GATEWAY_LOG_LEVEL: 'warn' } }).logLevel, 'warn');
});

test.run();
