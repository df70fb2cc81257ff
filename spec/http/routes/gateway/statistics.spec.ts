// The statistics of the gateway, as an admin and as a key for some templates sees them.

import * as assert from 'uvu/assert';
import { STRATEGY_NAMES } from '../../../../src/balancing/strategies.ts';
import { objectOr } from '../../../fixtures/wire.ts';
import { openSession } from '../../../helpers/clients/mcp-messages.ts';
import { type Credentials, startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';
import { TurnCounter } from '../../../helpers/time/turns.ts';

const test = suite('the statistics routes');
const app = appFor(test, () => startWithAccounts({ gateway: { sessions: { max: 5 } } }), 'each');
test.before.each(() => app.serve('demo', 'one'));

const stats = async (credentials: Credentials = app.admin) =>
  (await app.as(credentials, 'GET', '/gateway/stats')).body;
const call = (server_id: string, tool_name: string, more: object = {}) =>
  app.as(app.admin, 'POST', '/tools/call', { body: { server_id, tool_name, ...more } });
const fail = (id: string) => call(id, 'error', { arguments: { code: -32_000 } });

test('show zeros before the first request, except for the health check of the handshake', async () => {
  const view = await stats();
  const { last_check_time, ...checks } = objectOr(view.health_checker);
  assert.ok(Date.parse(String(last_check_time)) <= Date.now());
  assert.equal(
    { ...view, health_checker: checks },
    {
      ...{ uptime: view.uptime, total_requests: 0, active_connections: 0, error_rate: 0 },
      ...{ average_response_time_ms: 0, p50_ms: 0, p95_ms: 0, p99_ms: 0 },
      templates: {
        demo: {
          ...{ total_instances: 1, healthy_instances: 1, load_balancer_strategy: 'round_robin' },
          ...{ sessions: 0, own_processes: 0 },
        },
      },
      instances: {
        one: {
          ...{ healthy: true, state: 'healthy', requests: 0, error_rate: 0, average_response_time_ms: 0 },
          ...{ ejections: 0, is_ejected: false, sessions: 0, own_processes: 0 },
        },
      },
      sessions: { open: 0, max: 5, opened: 0, lost: 0, moved: 0 },
      own_processes: { running: 0, started: 0, lost: 0 },
      load_balancer: {
        ...{ default_strategy: 'round_robin', available_strategies: [...STRATEGY_NAMES], total_requests: 0 },
        ...{ requests_per_instance: { one: 0 }, active_connections: { one: 0 } },
      },
      health_checker: {
        ...{ running: true, check_interval: 30, timeout: 10, total_checks: 1, successful_checks: 1 },
        ...{ failed_checks: 0, success_rate_percent: 100 },
      },
    },
  );
});

test('count the same calls at both paths, failed calls included', async () => {
  await app.serve('demo', 'two');
  await app.gateway.register('other', { id: 'dead', endpoint: 'http://127.0.0.1:1' });
  for (const id of ['one', 'two', 'two']) await call(id, 'name');
  await fail('one');
  const view = await stats();
  assert.equal([view.total_requests, view.error_rate], [4, 0.25]);
  assert.equal(objectOr(view.load_balancer).requests_per_instance, { one: 2, two: 2, dead: 0 });
  const { uptime, ...short } = (await app.as(app.admin, 'GET', '/stats')).body;
  assert.ok(Number.isInteger(uptime));
  assert.equal(short, {
    ...{ total_requests: 4, active_servers: 3, healthy_servers: 2 },
    load_balancer: {
      ...{ strategy: 'round_robin', total_requests: 4 },
      requests_per_server: { one: 2, two: 2, dead: 0 },
    },
  });
});

test('count the sessions of MCP clients, in sum, by template and by instance', async () => {
  await app.serve('other', 'two');
  const [first = {}] = await Promise.all(
    ['demo', 'demo', 'other'].map((name) => openSession(app, `/mcp/${name}`, { credentials: app.admin })),
  );
  await app.ask('DELETE', '/mcp/demo', { headers: first });
  const view = await stats();
  const counts = { max: 5, lost: 0, moved: 0 };
  assert.equal(view.sessions, { ...counts, open: 2, opened: 3 });
  const sessionsOf = (part: unknown, name: string) => objectOr(objectOr(part)[name]).sessions;
  assert.equal([sessionsOf(view.templates, 'demo'), sessionsOf(view.templates, 'other')], [1, 1]);
  assert.equal([sessionsOf(view.instances, 'one'), sessionsOf(view.instances, 'two')], [1, 1]);
  const part = await stats(await app.key(['gateway:read'], ['demo']));
  assert.equal(part.sessions, { ...counts, open: 1, opened: 2 });
});

test('show a key for some templates the sums and weighted means of these, without percentiles', async () => {
  await app.serve('demo', 'two');
  await app.serve('other', 'three');
  for (const id of ['one', 'one', 'one', 'three']) await call(id, 'name');
  for (const id of ['two', 'three', 'three']) await fail(id);
  const view = await stats(await app.key(['gateway:read'], ['demo']));
  assert.equal(
    [view.total_requests, view.error_rate, view.active_connections, view.p50_ms, view.p95_ms, view.p99_ms],
    [4, 0.25, 0, null, null, null],
  );
  const found = [Object.keys(Object(view.templates)), Object.keys(Object(view.instances))];
  assert.equal(found, [['demo'], ['one', 'two']]);
  const { one, two } = Object(view.instances);
  const mean = (one.average_response_time_ms * 3 + two.average_response_time_ms) / 4;
  assert.ok(Math.abs(Number(view.average_response_time_ms) - mean) < 0.01);
  assert.equal(objectOr(view.load_balancer).active_connections, { one: 0, two: 0 });
  const none = await stats(await app.key(['gateway:read'], ['nothing']));
  assert.equal([none.total_requests, none.error_rate, none.average_response_time_ms], [0, 0, 0]);
  await app.serve('idle', 'constructor');
  const idle = await stats(await app.key(['gateway:read'], ['idle']));
  assert.equal([idle.total_requests, idle.error_rate, idle.average_response_time_ms], [0, 0, 0]);
});

test('and the other lists of all instances read thousands of them in several turns', async () => {
  const eachServer = app.gateway.eachServer.bind(app.gateway);
  const read = new TurnCounter();
  app.gateway.eachServer = function* (templates) {
    for (const server of eachServer(templates))
      for (let count = 0; count < 5_000; count += 1) {
        read.note();
        yield server;
      }
  };
  for (const path of ['/gateway/stats', '/stats', '/gateway/registry', '/servers?limit=1']) {
    Object.assign(read, { all: 0, fullest: 0 });
    const { outcome } = await app.as(app.admin, 'GET', path);
    assert.equal([outcome, read.all], ['200', 5_000], path);
    assert.ok(read.fullest <= 2_500, `${path}: ${read.fullest} in one turn`);
  }
});

test('are written in several turns, and so are the details of all templates', async () => {
  const written = new TurnCounter();
  const noting = {
    get name() {
      written.note();
      return 'x'.repeat(1_000);
    },
  };
  const template = app.gateway.template.bind(app.gateway);
  app.gateway.templates = () => Array.from({ length: 5_000 }, () => 'demo');
  app.gateway.template = (name) => ({ ...template(name), auth: noting as never });
  const { outcome, text } = await app.as(app.admin, 'GET', '/gateway/templates?include_details=true');
  assert.is(outcome, '200');
  assert.ok(written.fullest <= written.all / 2, `${written.fullest} of ${written.all} in one turn`);
  assert.is(JSON.parse(text).details.length, 5_000);
});

test.run();
