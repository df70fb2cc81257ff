// Settings as an operator meets them: the table of names and defaults, errors in one line, and a document that is not stale.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as assert from 'uvu/assert';
import { STRATEGY_NAMES } from '../../src/balancing/strategies.ts';
import { readAll } from '../../src/config/setting-types.ts';
import { SETTINGS, ALL_SETTINGS as settings } from '../../src/config/settings.ts';
import { addresses, cwd, load, refusal, type Written } from '../helpers/config.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('configuration');

const documentation = new URL('../../docs/reference/configuration.md', import.meta.url);

test('has the defaults of the table, which the documentation shows, when nothing is set', () => {
  const { rows: _, listeners, portsDefaulted, nodeId, nodeHost, ...more } = load();
  const { folder, files, warnings, ...config } = more;
  const { host: __, port: ___, nodeId: ____, ...defaults } = readAll(SETTINGS, (row) => row.default);
  assert.equal(config, defaults);
  assert.equal(listeners, [
    { host: '0.0.0.0', port: 8080, label: 'templates' },
    { host: '0.0.0.0', port: 8000, label: 'servers' },
  ]);
  assert.equal([portsDefaulted, nodeId, nodeHost], [true, 'local', undefined]);
  assert.equal([folder, files, warnings], [cwd, [], []]);
});

test('reads the environment variables MCP_GATEWAY_* and GATEWAY_*', () => {
  const config = load({
    env: {
      MCP_GATEWAY_HOST: '0.0.0.0',
      MCP_GATEWAY_PORT: '8081',
      MCP_GATEWAY_REGISTRY_FILE: 'registry.json',
      MCP_GATEWAY_HEALTH_INTERVAL: '45',
      MCP_GATEWAY_HEALTH_TIMEOUT: '2.5',
      MCP_GATEWAY_DEFAULT_STRATEGY: 'weighted',
      MCP_GATEWAY_MAX_RETRIES: '0',
      GATEWAY_HOST: '::1',
      GATEWAY_PORT: '8001',
      GATEWAY_CORS_ORIGINS: 'https://a.example, http://B.example:8080/',
      GATEWAY_AUTH_ENABLED: 'false',
      GATEWAY_DATABASE_URL: 'memory://',
      GATEWAY_SECRET_KEY: 's'.repeat(32),
      GATEWAY_ADMIN_PASSWORD: 'hunter22',
    },
  });
  assert.equal(config.listeners, [
    { host: '0.0.0.0', port: 8081, label: 'templates', portSource: 'MCP_GATEWAY_PORT' },
    { host: '::1', port: 8001, label: 'servers', portSource: 'GATEWAY_PORT' },
  ]);
  assert.is(config.portsDefaulted, false);
  assert.equal([config.authEnabled, config.databaseUrl], [false, 'memory://']);
  assert.equal([config.secretKeys, config.adminPassword], [['s'.repeat(32)], 'hunter22']);
  assert.is(config.nodeId, 'spec-host:8081');
  assert.is(config.registryFile, resolve(cwd, 'registry.json'));
  const { strategy, healthIntervalMs, probeTimeoutMs, maxRetries, callTimeoutMs } = config.defaultPolicy;
  assert.equal(
    [strategy, healthIntervalMs, probeTimeoutMs, maxRetries, callTimeoutMs],
    ['weighted_round_robin', 45_000, 2_500, 0, 60_000],
  );
  assert.equal(config.corsOrigins, ['https://a.example', 'http://b.example:8080']);
});

test('lets access tokens of clients live from 5 minutes to a day', () => {
  const yaml = (minutes: number) => `auth: { access_token_minutes: ${minutes} }`;
  for (const minutes of [5, 1_440])
    assert.is(load({ yaml: yaml(minutes) }).oauth.accessTokenMs, minutes * 60_000);
  for (const minutes of [4, 1_441])
    assert.match(refusal({ yaml: yaml(minutes) }), /auth\.access_token_minutes/);
});

test('reads the keys and sections of gateway.yaml', () => {
  const yaml = [
    ...['host: 0.0.0.0', 'port: 9000', 'database_url: memory://', 'cors_origins: [https://a.example]'],
    ...['auth:', `  secret_key: ${'k'.repeat(32)}`, '  access_token_expire_minutes: 5', '  enabled: false'],
    'load_balancer: { strategy: Health_Based, health_check_interval: 1.5 }',
    'sessions: { max: 500, idle_seconds: 90, max_processes: 7, share: 100 }',
  ].join('\n');
  const { listeners, secretKeys, tokenLifetimeMs, authEnabled, defaultPolicy, ...config } = load({ yaml });
  const portSource = 'gateway.yaml:2, port';
  assert.equal(listeners, [{ host: '0.0.0.0', port: 9000, label: 'gateway', portSource }]);
  assert.equal([secretKeys, tokenLifetimeMs, authEnabled], [['k'.repeat(32)], 300_000, false]);
  const { strategy, healthIntervalMs } = defaultPolicy;
  assert.equal([strategy, healthIntervalMs], ['health_based', 1_500]);
  assert.equal(config.sessions, { max: 500, idleMs: 90_000, processes: 7, share: 1 });
  assert.equal([config.corsOrigins, config.databaseUrl], [['https://a.example'], 'memory://']);
});

test('names the source and what it expected when a value cannot be used', () => {
  const cases: [Written, string][] = [
    [{ flags: { port: '65536' } }, '--port: expected a port from 0 to 65535; found "65536"'],
    [
      { env: { MCP_GATEWAY_HEALTH_INTERVAL: '0.5' } },
      'MCP_GATEWAY_HEALTH_INTERVAL: expected seconds from 1 to 3600; found "0.5"',
    ],
    [
      { yaml: 'load_balancer: { timeout: 30s }' },
      'gateway.yaml:1, load_balancer.timeout: expected seconds from 0.1 to 3600; found "30s"',
    ],
    [{ yaml: 'port:' }, 'gateway.yaml:1, port: expected a port from 0 to 65535; found nothing'],
    [
      { flags: { strategy: 'fastest' } },
      `--strategy: expected one of ${STRATEGY_NAMES.join(', ')}; found "fastest"`,
    ],
    [
      { yaml: 'allowed_origins: [a.example, "*"]' },
      'gateway.yaml:1, allowed_origins: expected origins such as https://app.example.com, separated by commas; found "a.example, *"',
    ],
    [{ yaml: 'port: [1]' }, 'gateway.yaml:1, port: expected a port from 0 to 65535; found a list'],
    [{ yaml: 'port: { a: 1 }' }, 'gateway.yaml:1, port: expected a port from 0 to 65535; found a section'],
    [
      { flags: { 'log-level': 'x'.repeat(100) } },
      `--log-level: expected one of trace, debug, info, warn, error, fatal, silent; found "${'x'.repeat(60)}..."`,
    ],
    [{ flags: { config: 'other.yaml' } }, '--config: there is no file "other.yaml"'],
  ];
  for (const [written, expected] of cases) assert.is(refusal(written), expected);
});

test('takes one public address, whose host and origin are allowed', () => {
  const config = load({ yaml: 'public_url: HTTPS://Gateway.Example:443/\nallowed_hosts: [other.example]' });
  assert.is(config.publicUrl, 'https://gateway.example');
  assert.equal(config.allowedHosts, ['other.example', 'gateway.example']);
  assert.equal(config.allowedOrigins, ['https://gateway.example']);
  assert.is(load({ flags: { 'public-url': 'http://localhost:8080' } }).publicUrl, 'http://localhost:8080');
  const refused = [
    ...['http://gateway.example', 'https://gateway.example/path', 'https://me@gateway.example', 'gateway'],
    ...['https://gateway.example?x', 'https://gateway.example#x', 'ftp://localhost', 'https://'],
  ];
  for (const publicUrl of refused)
    assert.match(refusal({ flags: { 'public-url': publicUrl } }), /^--public-url: expected an https URL/);
});

test('takes any, known or hosts as the clients that may ask for sign-in', () => {
  const rule = (clients: string) => load({ yaml: `auth: { clients: ${clients} }` }).oauth.clients;
  assert.equal([rule('any'), rule('Known')], ['any', 'known']);
  assert.equal(rule('[claude.ai, localhost]'), ['claude.ai', 'localhost']);
  assert.match(refusal({ yaml: 'auth: { clients: none }' }), /expected any, known, or host names/);
});

test('never shows a secret, whether it can be used or not', () => {
  const secret = 'hunter22-'.repeat(8);
  const written: Written = {
    env: {
      GATEWAY_SECRET_KEY: secret,
      GATEWAY_ADMIN_PASSWORD: 'hunter22',
      GATEWAY_ENCRYPTION_KEY: `${secret},other-${secret}`,
      GATEWAY_REDIS_URL: 'redis://me:hunter22@cache:6379',
      GATEWAY_DATABASE_URL: 'postgresql://me:hunter22@db/registry?sslpassword=hunter22',
    },
  };
  const shown = load(written).rows;
  assert.not.match(JSON.stringify(shown), 'hunter22');
  const url = shown.find(({ name }) => name === 'database_url')?.value;
  assert.equal(url, 'postgresql://me:********@db/registry?********');
  const password =
    'all users of this machine can read a password on a command line; put it into GATEWAY_DATABASE_URL';
  assert.is(refusal({ flags: { database: 'mysql://me:hunter22@db/registry' } }), `--database: ${password}`);
  const refused: Written[] = [
    { env: { GATEWAY_SECRET_KEY: 'hunter22' } },
    { env: { GATEWAY_ADMIN_PASSWORD: 'hunter2' } },
    { env: { GATEWAY_ADMIN_PASSWORD: 'hunter22'.repeat(10) } },
    { env: { GATEWAY_ENCRYPTION_KEY: `${secret},hunter22` } },
    { env: { GATEWAY_REDIS_URL: 'http://me:hunter22@cache' } },
    { env: { GATEWAY_DATABASE_URL: 'hunter22' } },
  ];
  for (const each of refused) assert.match(refusal(each), /^GATEWAY_\w+: expected (?!.*hunter)/);
});

test('reads the gateway.yaml that docs/reference/configuration.md shows', () => {
  const [, yaml = ''] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(documentation, 'utf8')) ?? [];
  assert.equal(addresses({ yaml }), ['0.0.0.0:9000 gateway']);
});

test('has each key, flag and variable once', () => {
  for (const field of ['key', 'flag', 'variable'] as const) {
    const names = settings.flatMap((setting) => setting[field] ?? []);
    assert.equal(names, [...new Set(names)]);
  }
});

test('has no key that is also a section', () => {
  const keys = settings.map(({ key }) => key);
  const sections = keys.filter((key) => keys.some((other) => other.startsWith(`${key}.`)));
  assert.equal(sections, []);
});

test('keeps secrets off the command line, and gives every other setting a flag', () => {
  for (const { key, flag, secret, kind } of settings) {
    if (secret === undefined) assert.type(flag, 'string', key);
    // A database without a password in its URL is not a secret; one with is refused.
    else if (flag !== undefined) assert.type(kind.holdsSecret, 'function', key);
  }
  const exposed = settings.filter(({ secret, flag }) => secret && flag !== undefined).map(({ key }) => key);
  assert.equal(exposed, ['database_url']);
});

test('has defaults that can be read back from their text', () => {
  for (const { key, kind, default: value } of settings) {
    if (value !== undefined) assert.equal(kind.read(kind.show(value), '/'), value, key);
  }
});

test.run();
