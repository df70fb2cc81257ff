// GET /gateway/settings, with settings from flags, environment and a file; and the log level.

import * as assert from 'uvu/assert';
import { loadConfig } from '../../../../src/config/config.ts';
import { ALL_SETTINGS } from '../../../../src/config/settings.ts';
import { objectOr } from '../../../fixtures/wire.ts';
import { until } from '../../../helpers/eventually.ts';
import { startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the settings route');

const SECRET = 'a secret of more than thirty-two bytes';
const config = loadConfig({
  cwd: '/nowhere',
  flags: { port: '9000' },
  env: {
    GATEWAY_SECRET_KEY: SECRET,
    GATEWAY_DATABASE_URL: 'postgresql://stagedoor:hunter2hunter2@db/stagedoor',
    GATEWAY_HOST: '127.0.0.1',
  },
  readFile: (path) => (path.endsWith('gateway.yaml') ? 'log_level: debug\n' : undefined),
});
const app = appFor(test, () => startWithAccounts({ settings: config.rows, logLevel: 'debug' }));

async function settings() {
  const { body } = await app.as(app.admin, 'GET', '/gateway/settings');
  return (body.settings as unknown[]).map(objectOr);
}

test('names every setting once, with its value, its source and its description', async () => {
  const all = await settings();
  const names = all.map(({ name }) => name);
  const inTable = ALL_SETTINGS.map(({ key }) => key).filter((key) => key !== 'host' && key !== 'port');
  assert.equal(names.toSorted(), ['listen', ...inTable].sort());
  assert.ok(all.every(({ value, description }) => typeof value === 'string' && String(description) !== ''));
  const shown = Object.fromEntries(all.map(({ name, value, source, from }) => [name, [value, source, from]]));
  assert.equal(shown.listen, ['127.0.0.1:9000', 'flag', 'port: --port; host: GATEWAY_HOST']);
  assert.equal(shown.log_level, ['debug', 'file', 'gateway.yaml, log_level']);
  assert.equal(shown['auth.secret_key'], ['********', 'environment', 'GATEWAY_SECRET_KEY']);
  assert.equal(shown['sessions.max']?.slice(1), ['default', undefined]);
});

test('names the unit of a setting that has one', async () => {
  const all = await settings();
  const units = Object.fromEntries(all.map(({ name, value, unit }) => [name, [value, unit]]));
  assert.equal(units['load_balancer.timeout'], ['60', 'seconds']);
  assert.equal(units['auth.access_token_expire_minutes'], ['60', 'minutes']);
  assert.equal(units['sessions.share'], ['25', 'percent']);
  assert.equal(units['audit.retention_days'], ['90', 'days']);
  assert.is(units['http.max_body_bytes']?.[1], 'bytes');
  for (const name of ['listen', 'metrics.port', 'memory.limit_bytes', 'auth.enabled'])
    assert.is(units[name]?.[1], undefined, name);
});

test('shows the current log level, and that it was changed since the start', async () => {
  const levelNow = async () => (await settings()).find(({ name }) => name === 'log_level');
  const set = (level: string) => app.as(app.admin, 'PATCH', '/gateway/log-level', { body: { level } });
  await set('error');
  const { description: _, ...changed } = (await levelNow()) ?? {};
  assert.equal(changed, { name: 'log_level', value: 'error', source: 'runtime' });
  await set('debug');
  assert.equal((await levelNow())?.source, 'file');
});

test('shows no secret, not even in a URL', async () => {
  const text = JSON.stringify(await settings());
  assert.not.match(text, SECRET);
  assert.not.match(text, 'hunter2hunter2');
  assert.match(text, 'postgresql://stagedoor:********@db/stagedoor');
});

const LEVEL_PATH = '/gateway/log-level';

test('changes the log level for later requests, and records the change in the audit log', async () => {
  const changed = await app.as(app.admin, 'PATCH', LEVEL_PATH, { body: { level: 'silent' } });
  assert.equal([changed.status, changed.body], [200, { level: 'silent' }]);
  assert.equal((await app.as(app.admin, 'GET', LEVEL_PATH)).body, { level: 'silent' });
  await app.as(app.admin, 'PATCH', LEVEL_PATH, { body: { level: 'info' } });
  const before = app.log.length;
  await app.as(app.admin, 'GET', '/servers');
  await until(() => app.log.at(-1)?.path === '/servers');
  assert.ok(app.log.length > before);
  assert.is((await app.as(app.admin, 'PATCH', LEVEL_PATH, { body: { level: 'loud' } })).status, 422);
  const { entries } = (await app.as(app.admin, 'GET', '/gateway/audit')).body;
  const [refused, done] = (entries as unknown[]).map(objectOr);
  assert.is(refused?.status, 422);
  assert.equal([done?.action, done?.subject], [`PATCH ${LEVEL_PATH}`, `${LEVEL_PATH} info`]);
  assert.is(done?.actor_name, 'admin');
});

test.run();
