import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import { STRATEGY_NAMES } from '../../../src/domain/policy.ts';
import { requestsByServer, StatisticsView, statisticsView } from '../../../src/http/routes/statistics.ts';
import { type AppFixture, startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the statistics view');

test('shows zeros before the first request, but for the handshake, which is a check', async () => {
  const app = await startApp();
  await app.serve('demo', 'one');
  const view = statisticsView(app.gateway, ANONYMOUS);
  assert.ok(Compile(StatisticsView).Check(view));
  assert.equal(view, {
    uptime: view.uptime,
    total_requests: 0,
    active_connections: 0,
    error_rate: 0,
    average_response_time_ms: 0,
    p50_ms: 0,
    p95_ms: 0,
    p99_ms: 0,
    templates: {
      demo: {
        total_instances: 1,
        healthy_instances: 1,
        load_balancer_strategy: 'round_robin',
        sessions: 0,
        own_processes: 0,
      },
    },
    instances: {
      one: {
        ...{ healthy: true, requests: 0, error_rate: 0, average_response_time_ms: 0 },
        ...{ ejections: 0, is_ejected: false },
        ...{ sessions: 0, own_processes: 0 },
      },
    },
    sessions: { open: 0, parked: 0, max: 10_000, opened: 0, ended: 0, lost: 0, moved: 0 },
    own_processes: { running: 0, started: 0, lost: 0 },
    load_balancer: {
      default_strategy: 'round_robin',
      available_strategies: [...STRATEGY_NAMES],
      total_requests: 0,
      requests_per_instance: { one: 0 },
      active_connections: { one: 0 },
    },
    health_checker: {
      running: true,
      check_interval: 30,
      timeout: 10,
      total_checks: 1,
      successful_checks: 1,
      failed_checks: 0,
      success_rate_percent: 100,
      last_check_time: view.health_checker.last_check_time,
    },
  });
  assert.ok(Date.parse(view.health_checker.last_check_time ?? '') <= Date.now());
  await app.close();
});

test('counts calls, failed ones too', async () => {
  const app = await startApp();
  await app.serve('demo', 'one');
  await app.gateway.call('demo', 'name');
  await app.gateway.call('demo', 'error', { code: -32000 }).catch(() => undefined);
  const view = statisticsView(app.gateway, ANONYMOUS);
  assert.is(view.total_requests, 2);
  assert.is(view.load_balancer.total_requests, 2);
  assert.is(view.instances.one?.requests, view.load_balancer.requests_per_instance.one);
  assert.ok(view.error_rate > 0 && view.error_rate < 1);
  assert.ok(Compile(StatisticsView).Check(view));
  assert.equal(
    requestsByServer(app.gateway.servers(), app.gateway.stats()),
    view.load_balancer.requests_per_instance,
  );
  await app.close();
});

test('counts the sessions of MCP clients, where they are and what became of them', async () => {
  const app = await startApp({ gateway: { sessions: { max: 5 } } });
  await app.serve('demo', 'one');
  await app.serve('other', 'two');
  const ids = await Promise.all(['demo', 'demo', 'other'].map((template) => openSession(app, template)));
  await app.ask('DELETE', '/mcp/demo', { headers: { 'mcp-session-id': String(ids[0]) } });
  const view = statisticsView(app.gateway, ANONYMOUS);
  const since = { opened: 3, ended: 1, lost: 0, moved: 0 };
  assert.equal(view.sessions, { open: 2, parked: 0, max: 5, ...since });
  assert.equal([view.templates.demo?.sessions, view.templates.other?.sessions], [1, 1]);
  assert.equal([view.instances.one?.sessions, view.instances.two?.sessions], [1, 1]);
  const part = statisticsView(app.gateway, { ...ANONYMOUS, templates: new Set(['demo']) });
  assert.ok(Compile(StatisticsView).Check(part));
  const seen = { opened: 2, ended: 1, lost: 0, moved: 0 };
  assert.equal(part.sessions, { open: 1, parked: null, max: 5, ...seen });
  await app.close();
});

test('leaves out what belongs to templates of others', async () => {
  const app = await startApp();
  await app.serve('demo', 'one');
  await app.serve('other', 'two');
  await app.gateway.call('demo', 'name');
  await app.gateway.call('other', 'name');
  await app.gateway.call('other', 'error', { code: -32000 }).catch(() => undefined);
  const view = statisticsView(app.gateway, { ...ANONYMOUS, templates: new Set(['demo']) });
  assert.ok(Compile(StatisticsView).Check(view));
  assert.equal([view.total_requests, view.error_rate, view.active_connections], [1, 0, 0]);
  assert.equal([view.p50_ms, view.p95_ms, view.p99_ms], [null, null, null]);
  assert.equal(Object.keys(view.templates), ['demo']);
  assert.equal(Object.keys(view.instances), ['one']);
  assert.equal(view.load_balancer.requests_per_instance, { one: 1 });
  assert.equal(view.load_balancer.active_connections, { one: 0 });
  await app.close();
});

test.run();

async function openSession(app: AppFixture, template: string): Promise<string | null> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } };
  const { headers } = await app.ask('POST', `/mcp/${template}`, {
    body: { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    headers: { accept: 'application/json, text/event-stream' },
  });
  return headers.get('mcp-session-id');
}
