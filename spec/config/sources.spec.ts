// The sources of values, their precedence, and messages about unknown names.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlink, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/config/config.ts';
import { ALL_SETTINGS } from '../../src/config/settings.ts';
import { unknownVariables } from '../../src/config/sources.ts';
import { cwd, faultsOf, load, refusal } from '../helpers/config.ts';
import { inFolder } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('sources of settings');

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
      const row = config.rows.find(({ name }) => name === 'log_level');
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

test('reads a secret from the file of NAME_FILE, and never shows it', () => {
  const files = { 'run/url': 'memory://\n', 'run/password': 'hunter22\n' };
  assert.is(load({ env: { GATEWAY_DATABASE_URL_FILE: 'run/url' }, files }).databaseUrl, 'memory://');
  const { adminPassword, rows } = load({ env: { GATEWAY_ADMIN_PASSWORD_FILE: 'run/password' }, files });
  assert.is(adminPassword, 'hunter22');
  const { value, typed, source } = rows.find(({ name }) => name === 'auth.admin_password') ?? {};
  assert.equal([value, typed, source], ['********', '********', 'GATEWAY_ADMIN_PASSWORD_FILE']);
  const same = { GATEWAY_DATABASE_URL: 'memory://', MCP_GATEWAY_DATABASE_URL_FILE: 'run/url' };
  assert.is(load({ env: same, files }).databaseUrl, 'memory://', 'both prefixes mean one setting');
  assert.is(
    refusal({ env: { GATEWAY_DATABASE_URL: 'memory://', GATEWAY_DATABASE_URL_FILE: 'run/url' }, files }),
    'GATEWAY_DATABASE_URL and GATEWAY_DATABASE_URL_FILE are both set: unset one of them',
  );
});

test('reads files as UTF-8 with or without a byte order mark, and refuses every other encoding', () =>
  inFolder(async (folder) => {
    const read = () => {
      const flags = { config: 'a.yaml' };
      return loadConfig({ cwd: folder, flags, env: { GATEWAY_ADMIN_PASSWORD_FILE: 'password' } });
    };
    await writeFile(`${folder}/a.yaml`, '\ufeffnode_id: a\n');
    await writeFile(`${folder}/password`, '\ufeffhünter22\r\n');
    const { adminPassword, nodeId, files } = read();
    assert.equal([adminPassword, nodeId], ['hünter22', 'a']);
    assert.equal(files, [`${folder}/a.yaml`, `${folder}/password`], 'no program may read them');
    await writeFile(`${folder}/password`, Buffer.from('hünter22', 'latin1'));
    await writeFile(`${folder}/a.yaml`, Buffer.from('\ufeffnode_id: a\n', 'utf16le'));
    const cannot = 'cannot be read (not UTF-8)';
    assert.equal(faultsOf(read), [
      `--config: the file "a.yaml" ${cannot}`,
      `GATEWAY_ADMIN_PASSWORD_FILE: the file "password" ${cannot}`,
    ]);
  }));

if (process.platform !== 'win32')
  test('reads pipes to their end, and waits for no program that is not there', () =>
    inFolder(async (folder) => {
      const read = () =>
        loadConfig({
          cwd: folder,
          flags: { config: 'a.yaml' },
          env: { GATEWAY_ADMIN_PASSWORD_FILE: 'password' },
        });
      execFileSync('mkfifo', [`${folder}/a.yaml`, `${folder}/password`]);
      const cannot = 'cannot be read (no writer)';
      assert.equal(faultsOf(read), [
        `--config: the file "a.yaml" ${cannot}`,
        `GATEWAY_ADMIN_PASSWORD_FILE: the file "password" ${cannot}`,
      ]);
      const script =
        'exec 3<>a.yaml; echo ready; sleep 0.2; echo node_id: a >&3; exec 3>&-; printf hunter22 > password';
      const writer = spawn('/bin/sh', ['-c', script], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
      await once(writer.stdout, 'data');
      writer.stdout.resume();
      const { adminPassword, nodeId } = read();
      assert.equal([adminPassword, nodeId], ['hunter22', 'a']);
      await symlink('/dev/zero', `${folder}/zero`);
      assert.equal(
        faultsOf(() => loadConfig({ cwd: folder, flags: { config: 'zero' } })),
        ['--config: the file "zero" cannot be read (not a file or a pipe)'],
      );
    }));

test('names the nearest key for an unknown one in gateway.yaml', () => {
  assert.is(refusal({ yaml: 'prot: 80' }), 'gateway.yaml:1: unknown key prot; the nearest is port');
  const found = refusal({ yaml: 'loda_balancer:\n  strategy: random' });
  assert.is(found, 'gateway.yaml:1: unknown key loda_balancer; the nearest is load_balancer');
  assert.is(
    refusal({ yaml: 'load_balancer:\n  strtegy: random' }),
    'gateway.yaml:2: unknown key load_balancer.strtegy; the nearest is load_balancer.strategy',
  );
  assert.is(refusal({ yaml: 'load_balancer: random' }), 'gateway.yaml:1: load_balancer is a section');
});

test('names the line of invalid YAML, and ignores an empty file or section', () => {
  assert.match(refusal({ yaml: 'port: [1' }), /^gateway\.yaml: .*line 1/);
  assert.match(refusal({ yaml: '- port' }), 'gateway.yaml: expected settings');
  assert.match(refusal({ yaml: 'port: 1\nport: 2' }), 'gateway.yaml: ');
  assert.is(load({ yaml: '# nothing\n' }).portsDefaulted, true);
  assert.is(load({ yaml: 'auth:\n  # enabled: false\n' }).authEnabled, true);
});

test('refuses a key that is set both nested and dotted', () => {
  const twice = 'auth: { enabled: no }\nauth.enabled: yes\n';
  assert.is(refusal({ yaml: twice }), 'gateway.yaml:2: auth.enabled is set twice');
});

test('does not repeat a password without quotes that is a fault of YAML', () => {
  for (const password of ['*s3cret', '!s3cret!', '|s3cret'])
    assert.not.match(refusal({ yaml: `admin_password: ${password}\n` }), 's3cret');
});

test('refuses a YAML file with excessive or circular aliases', () => {
  const bomb =
    'a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nport: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]';
  assert.match(refusal({ yaml: bomb }), /Excessive alias count/);
  assert.match(refusal({ yaml: 'port: &p [*p]' }), 'gateway.yaml:1, port: expected a port');
});

test('refuses a long file, and one with many faults, aliases or unknown keys, without searching all of them', () => {
  const units = 262_144;
  const fault = (yaml: string) => faultsOf(() => load({ yaml: yaml.slice(0, units) }));
  assert.equal(fault(`a: [${','.repeat(units)}`), [
    'gateway.yaml: Unexpected , in flow sequence at line 1, column 6',
  ]);
  const lines = (line: (index: number) => string) =>
    Array.from({ length: 20_000 }, (_, at) => line(at)).join('');
  assert.equal(fault(lines((index) => `a${index}: &a${index} 1\n`)), [
    'gateway.yaml: More than 10000 anchors and aliases',
  ]);
  const unknown = fault(lines((index) => `a${index}: 1\n`));
  assert.equal(
    [unknown.length, unknown[0], unknown.at(-1)],
    [101, 'gateway.yaml:1: unknown key a0; the nearest is tls', 'gateway.yaml: 19900 more unknown keys'],
  );
  assert.is(
    refusal({ yaml: `#${' '.repeat(units)}` }),
    'gateway.yaml: it has more than 256 KiB; servers belong in the file that registry_file names',
  );
});

test('reports all faults, each with its line', () => {
  const faults = [
    'gateway.yaml:1: unknown key prot; the nearest is port',
    '--port: expected a port from 0 to 65535; found "x"',
    'gateway.yaml:3, load_balancer.timeout: expected seconds from 0.1 to 3600; found "30s"',
  ];
  const yaml = 'prot: 80\nload_balancer:\n  timeout: 30s\n';
  assert.equal(
    faultsOf(() => load({ yaml, flags: { port: 'x' } })),
    faults,
  );
});

test('warns of unknown variables, and suggests the nearest setting', () => {
  const { warnings } = load({ env: { MCP_GATEWAY_LOGLEVEL: 'debug', MCP_GATEWAY_LOG_LEVEL: 'info' } });
  assert.equal(warnings, [
    'MCP_GATEWAY_LOGLEVEL has no effect: unknown setting; the nearest is MCP_GATEWAY_LOG_LEVEL',
  ]);
});

test('does not warn of settings, files of secrets, empty variables, service links and the other prefix', () => {
  const known = {
    MCP_GATEWAY_PORT: '1',
    MCP_GATEWAY_SECRET_KEY_FILE: '/run/secret',
    MCP_GATEWAY_NOTHING: '',
    MCP_GATEWAY_SERVICE_HOST: '10.0.0.1',
    MCP_GATEWAY_SERVICE_PORT: '80',
    MCP_GATEWAY_SERVICE_PORT_HTTP: '80',
    MCP_GATEWAY_PORT_80_TCP_ADDR: '10.0.0.1',
    GATEWAY_SOMETHING: 'x',
    PATH: '/bin',
  };
  assert.equal(unknownVariables(known, ALL_SETTINGS), []);
  assert.is(unknownVariables({ MCP_GATEWAY_PORT_FILE: 'x' }, ALL_SETTINGS).length, 1, 'it is not a secret');
});

test('warns of variables with the prefix GATEWAY_ only if they nearly match a setting', () => {
  const environment = {
    GATEWAY_API_KEY_LIMT: '3',
    GATEWAY_PROT: '1',
    GATEWAY_SECRET_KEY_FLIE: '/run/secret',
    GATEWAY_DATABASE_URL: 'memory://',
    GATEWAY_ADMIN_PASSWORD_FILE: '/run/secret',
    GATEWAY_ALLOWED_HOST: '',
    GATEWAY_INTERFACE: 'CGI/1.1',
    GATEWAY_TIMEOUT: '5',
    GATEWAY_URL: 'http://a',
    GATEWAY_SERVICE_HOST: '10.0.0.1',
    GATEWAY_SERVICE_PORT: '80',
    GATEWAY_PORT_80_TCP_PORT: '80',
    GATEWAY_PORT_80_TCP: 'tcp://10.0.0.1:80',
  };
  const line = (name: string, meant: string) =>
    `GATEWAY_${name} has no effect: unknown setting; did you mean GATEWAY_${meant}?`;
  assert.equal(unknownVariables(environment, ALL_SETTINGS), [
    line('API_KEY_LIMT', 'API_KEY_LIMIT'),
    line('PROT', 'PORT'),
    line('SECRET_KEY_FLIE', 'SECRET_KEY_FILE'),
  ]);
});

for (const [written, value] of [
  ['true', 'full'],
  ['false', 'digest'],
] as const) {
  test(`audit.arguments: ${written} is read as ${value}, with one warning`, () => {
    const { audit, warnings } = load({ env: { GATEWAY_AUDIT_ARGUMENTS: written } });
    assert.is(audit.callArguments, value);
    assert.equal(warnings, [
      `GATEWAY_AUDIT_ARGUMENTS: "${written}" is read as "${value}"; write "${value}" instead`,
    ]);
    const file = load({ files: { 'gateway.yaml': `audit:\n  arguments: ${written}\n` } });
    assert.is(file.audit.callArguments, value);
    assert.is(file.warnings.length, 1);
  });
}

test('audit.arguments is none, unless set', () => {
  assert.is(load({}).audit.callArguments, 'none');
  for (const value of ['none', 'digest', 'full']) {
    const { audit, warnings } = load({ flags: { 'audit-arguments': value } });
    assert.equal([audit.callArguments, warnings], [value, []]);
  }
});

test.run();
