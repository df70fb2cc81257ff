// GET /metrics over real sockets: the format, the numbers, what each caller sees, and the separate listener.

import { connect, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { ClusterCounts } from '../../src/counts/cluster-counts.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { createMetricsApp } from '../../src/http/metrics-app.ts';
import { json } from '../../src/http/replies/reply.ts';
import { METRICS } from '../../src/metrics/metric-table.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { text as say, serving } from '../helpers/backends/function-backend.ts';
import { head, sendRaw } from '../helpers/clients/raw-http.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../helpers/http/accounts.ts';
import { appFor, startApp } from '../helpers/http/app.ts';
import { type Family, metricValue, parseMetrics } from '../helpers/http/metrics-text.ts';
import { suite } from '../helpers/suite.ts';
import { startRawServer } from '../transports/raw-server.ts';

const test = suite('GET /metrics', { timeoutMs: 30_000 });
const app = appFor(test, () =>
  startWithAccounts({ limits: { userHourlyLimit: 30, apiKeyHourlyLimit: 5_000 } }),
);
test.before(async () => {
  await app.serve('demo', 'one');
  await app.serve('other', 'two');
});

test('measures the lag of the event loop since the start, and from then on since the last scrape', async () => {
  // The lag is the time between two ticks of a timer: it must have ticked before.
  const startedAtMs = performance.now();
  await eventually(
    async () => performance.now(),
    (nowMs) => nowMs > startedAtMs + 60,
  );
  const beganAtMs = performance.now();
  while (performance.now() - beganAtMs < 120); // blocks the event loop before the first scrape
  const lags = async () => {
    const families = parseMetrics((await app.as(app.admin, 'GET', '/metrics')).text);
    const names = ['min', 'mean', 'p50', 'p99', 'max'].map((name) => `nodejs_eventloop_lag_${name}_seconds`);
    return names.map((name) => families.get(name)?.samples[0]?.value ?? Number.NaN);
  };
  const first = await lags();
  assert.ok(
    first.every((seconds) => seconds >= 0 && seconds < 60),
    `${first}`,
  );
  assert.equal(first.toSorted((a, b) => a - b)[0], first[0]);
  assert.ok((first.at(-1) ?? 0) > 0.1, `${first}`);
  assert.ok(((await lags()).at(-1) ?? 1) < (first.at(-1) ?? 0));
});

test('answers in the text format, with each metric of the table', async () => {
  const { status, headers, text } = await app.as(app.admin, 'GET', '/metrics');
  assert.equal([status, headers.get('content-type')], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  const families = parseMetrics(text);
  for (const { name, kind, help, labels } of METRICS) {
    const family = families.get(name);
    assert.equal([family?.type, family?.help], [kind, help], name);
    for (const { labels: found } of family?.samples ?? []) {
      const { le: _, ...own } = found;
      assert.equal(Object.keys(own), labels, name);
    }
  }
  assert.ok(
    families.has('process_cpu_user_seconds_total') && families.has('nodejs_eventloop_lag_p99_seconds'),
  );
  assert.match([...families.keys()].join(' '), /process_resident_memory_bytes/);
});

test('counts requests and their durations by method and outcome', async () => {
  const before = await scrape();
  const echo = { body: { name: 'echo', arguments: { text: 'a-secret' } } };
  await app.as(app.admin, 'POST', '/mcp/demo/tools/call', echo);
  await app.as(app.admin, 'POST', '/mcp/demo/tools/call', echo);
  await app.as(app.admin, 'POST', '/mcp/demo/tools/call', { body: { name: 'nothing' } });
  await app.as(app.admin, 'GET', '/mcp/demo/prompts/list');
  const after = await scrape();
  const risen = (name: string, labels: Record<string, string>): number =>
    (metricValue(after, name, labels) ?? 0) - (metricValue(before, name, labels) ?? 0);
  const called = { template: 'demo', method: 'tools/call' };
  assert.is(risen('stagedoor_requests_total', { ...called, outcome: 'result' }), 2);
  assert.is(risen('stagedoor_requests_total', { ...called, outcome: 'refused' }), 1);
  assert.is(risen('stagedoor_requests_total', { template: 'demo', method: 'prompts/list' }), 1);
  const durations = 'stagedoor_request_duration_seconds';
  assert.is(risen(`${durations}_count`, { ...called, outcome: 'result' }), 2);
  assert.is(risen(`${durations}_bucket`, { ...called, outcome: 'result', le: '60' }), 2);
  assert.ok(risen(`${durations}_sum`, { ...called, outcome: 'result' }) < 2);
  const failed = { template: 'demo', code: 'TOOL_NOT_FOUND' };
  assert.is(risen('stagedoor_request_failures_total', failed), 1);
  const one = { template: 'demo', instance_id: 'one' };
  assert.is(risen('stagedoor_instance_requests_total', { ...one, outcome: 'result' }), 3);
  assert.is(risen('stagedoor_http_responses_total', { status: '200' }), 4);
  assert.is(risen('stagedoor_http_errors_total', { code: 'TOOL_NOT_FOUND' }), 1);
  assert.is(risen('stagedoor_queue_wait_seconds_count', { template: 'demo' }), 4);
});

test('an error of a tool has its own outcome, and a list or a resource that is not offered is not an error', async () => {
  const small = await startApp();
  await small.serve('t', 'bare', serving({ fail: () => ({ ...say('no'), isError: true }) }));
  const statuses = [
    await small.ask('POST', '/mcp/t/tools/call', { body: { name: 'fail', arguments: {} } }),
    await small.ask('GET', '/mcp/t/prompts/list'),
    await small.ask('POST', '/mcp/t/resources/read', { body: { uri: 'x:1' } }),
    await small.ask('POST', '/mcp/t/prompts/get', { body: { name: 'greet' } }),
  ].map(({ outcome }) => outcome);
  assert.equal(statuses, ['200', '200', '404 RESOURCE_NOT_FOUND', '404 PROMPT_NOT_FOUND']);
  const metrics = parseMetrics((await small.ask('GET', '/metrics')).text);
  const requests = metrics.get('stagedoor_requests_total')?.samples ?? [];
  const outcomeOf = (method: string) =>
    requests.find(({ labels }) => labels.method === method)?.labels.outcome;
  assert.equal([outcomeOf('tools/call'), outcomeOf('prompts/list')], ['tool_error', 'result']);
  await small.close();
});

test('contains no principal, no argument and no unknown method name', async () => {
  const strange = { jsonrpc: '2.0', id: 1, method: 'a-secret/method', params: {} };
  const headers = { accept: 'application/json, text/event-stream' };
  await app.as(app.admin, 'POST', '/mcp/demo', { body: strange, headers });
  await app.gateway.call('no-template', 'echo').catch(() => undefined);
  const { text } = await app.as(app.admin, 'GET', '/metrics');
  assert.not.match(text, /a-secret|no-template|principal|admin/);
  const me = (await app.as(app.admin, 'GET', '/auth/me')).body;
  assert.not.match(text, String(me.id));
});

test('shows the state of instances, and drops those that are deregistered', async () => {
  const instance = { template: 'brief', instance_id: 'three' };
  await app.serve('brief', 'three');
  await app.gateway.call('brief', 'echo', { text: 'x' });
  const up = await scrape();
  assert.is(metricValue(up, 'stagedoor_instance_up', instance), 1);
  assert.is(metricValue(up, 'stagedoor_instances', { template: 'brief', state: 'healthy' }), 1);
  assert.is(metricValue(up, 'stagedoor_instance_probes_total', { ...instance, result: 'passed' }), 1);
  app.gateway.drain('brief', 'three');
  const drained = await scrape();
  assert.is(metricValue(drained, 'stagedoor_instance_up', instance), 0);
  assert.is(metricValue(drained, 'stagedoor_instances', { template: 'brief', state: 'draining' }), 1);
  await app.gateway.deregister('brief', 'three');
  const { text } = await app.as(app.admin, 'GET', '/metrics');
  assert.not.match(text, 'instance_id="three"');
  assert.is(metricValue(parseMetrics(text), 'stagedoor_requests_total', { template: 'brief' }), 1);
  await app.gateway.deleteTemplate('brief');
  assert.not.match((await app.as(app.admin, 'GET', '/metrics')).text, 'brief');
});

test('counts callers over their rate limit', async () => {
  for (let asked = 0; asked < 32; asked += 1) await app.as(app.user, 'GET', '/gateway/templates');
  const families = await scrape();
  assert.is(metricValue(families, 'stagedoor_rate_limited_requests_total'), 2);
  assert.is(metricValue(families, 'stagedoor_http_errors_total', { code: 'RATE_LIMIT_EXCEEDED' }), 2);
  assert.is(metricValue(families, 'stagedoor_http_responses_total', { status: '429' }), 2);
});

test('shows a key for some templates only the metrics of these', async () => {
  const { text } = await app.as(await app.key(['gateway:read'], ['other']), 'GET', '/metrics');
  const families = parseMetrics(text);
  assert.is(metricValue(families, 'stagedoor_instance_up', { template: 'other' }), 1);
  assert.not.match(text, /demo|process_|nodejs_|stagedoor_http|stagedoor_build/);
  const refused = await app.as(await app.key(['tools:call']), 'GET', '/metrics');
  assert.is(refused.status, 403);
});

test('omits instances of other nodes', async () => {
  const store = new MemoryStore();
  const other = await createGateway({ store, node: { id: 'other' } });
  await other.register('programs', { id: 'theirs', command: process.execPath, args: ['-e', ''] });
  await other.close({ graceMs: 0 });
  const here = await startApp({ gateway: { store, node: { id: 'here' } } });
  const found = here.gateway.servers().map(({ definition }) => definition.id);
  assert.equal(found, ['theirs']);
  const { text } = await here.ask('GET', '/metrics');
  assert.not.match(text, 'theirs');
  assert.is(metricValue(parseMetrics(text), 'stagedoor_instances', { state: 'stopped' }), 0);
  await here.close();
});

test('counts what happens between nodes, from 0 on, where there may be other nodes', async () => {
  const clusterCounts = new ClusterCounts();
  const [alone, node] = [
    await startApp(),
    await startApp({ others: { nodes: () => [], counts: clusterCounts } }),
  ];
  const scrapeOf = async (one: typeof node) => parseMetrics((await one.ask('GET', '/metrics')).text);
  const names = [
    ...['stagedoor_lives_ended_total', 'stagedoor_fences_total', 'stagedoor_program_leases_total'],
    ...['stagedoor_hops_total', 'stagedoor_hop_duration_seconds'],
  ];
  const samplesOf = async (one: typeof node) => {
    const families = await scrapeOf(one);
    return names.map((name) => families.get(name)?.samples.length ?? 0);
  };
  assert.equal(
    (await samplesOf(alone)).filter((count, index) => index !== 1 && count > 0),
    [],
  );
  assert.ok((await samplesOf(node)).every((count) => count > 0));
  clusterCounts.endedLife('expired');
  clusterCounts.livesLost += 1;
  clusterCounts.leases.taken += 1;
  clusterCounts.ended('session', 'answered', 20);
  clusterCounts.ended('instance', 'failed', 20);
  const families = await scrapeOf(node);
  const value = (name: string, labels: Record<string, string>) =>
    metricValue(families, `stagedoor_${name}`, labels);
  assert.is(value('lives_ended_total', { cause: 'expired' }), 1);
  assert.is(value('lives_ended_total', { cause: 'refused' }), 0);
  assert.is(value('fences_total', { what: 'life' }), 1);
  assert.is(value('program_leases_total', { change: 'taken' }), 1);
  assert.is(value('hops_total', { hop: 'session', outcome: 'answered' }), 1);
  assert.is(value('hops_total', { hop: 'instance', outcome: 'failed' }), 1);
  assert.is(value('hop_duration_seconds_count', { hop: 'session' }), 1);
  assert.is(value('hop_duration_seconds_count', { hop: 'instance' }), 0);
  assert.is(value('hop_duration_seconds_bucket', { hop: 'session', le: '0.025' }), 1);
  await alone.close();
  await node.close();
});

test('counts calls that are made before the first scrape', async () => {
  const late = await startApp();
  await late.gateway.register('t', { id: 'a', handler: serving({ echo: () => ({}) }) }, { waitMs: 5_000 });
  for (let call = 0; call < 5; call += 1) await late.gateway.call('t', 'echo');
  const [first, second] = await Promise.all([late.ask('GET', '/metrics'), late.ask('GET', '/metrics')]);
  assert.is(metricValue(parseMetrics(String(first?.text)), 'stagedoor_requests_total', { template: 't' }), 5);
  assert.is(second?.text, first?.text, 'scrapes at the same time are one');
  await late.close();
});

test('has a listener of its own with the probes, without credentials; on loopback a foreign Host gets 403', async () => {
  const faults: unknown[] = [];
  let text: (() => Promise<string>) | undefined;
  let socket: Socket | undefined;
  const log = { error: (fault: unknown) => faults.push(fault) };
  const readiness = () => json(200, { status: 'ready' });
  const listenOn = (host: string) => {
    const answer = createMetricsApp(
      { host, allowedHosts: ['proxy.example'] },
      () => text && { metrics: { text }, readiness },
      log,
    );
    return startRawServer((request, response) => {
      socket = request.socket;
      answer(request, response);
    });
  };
  const [local, open] = [await listenOn('127.0.0.1'), await listenOn('0.0.0.0')];
  for (const [{ port }, host, status] of [
    ...['localhost', '127.0.0.1:9464', '[::1]:1', 'proxy.example'].map((own) => [local, own, 503] as const),
    [local, 'evil.example', 403],
    [open, 'gateway.example:9464', 503],
  ] as const) {
    const foreign = port === open.port && { Origin: 'https://evil.example' };
    const answer = await sendRaw(port, head('GET /metrics', { Host: host, Connection: 'close', ...foreign }));
    assert.is(Number(answer.slice(9, 12)), status, host);
  }
  const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${local.port}${path}`, init);
  const probes = async () => [await ask('/livez'), await ask('/readyz')].map((answer) => answer.status);
  assert.is((await ask('/metrics')).status, 503);
  assert.equal(await probes(), [200, 503]);
  text = async () => 'up 1\n';
  const { status, headers } = await ask('/metrics?x=1');
  assert.equal([status, headers.get('content-type')], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  assert.equal(await probes(), [200, 200]);
  assert.is((await ask('/metrics', { method: 'HEAD' })).status, 200);
  assert.is((await ask('/metrics', { method: 'POST' })).status, 405);
  for (const path of ['/', '/gateway/registry', '/metrics/', '/mcp'])
    assert.is((await ask(path)).status, 404);
  assert.match(await (await ask('/')).text(), 'Only /metrics, /livez and /readyz are served here.');
  text = () => Promise.reject(new Error('broken'));
  assert.equal([(await ask('/metrics')).status, faults.length], [500, 1]);
  const { error: write } = console;
  console.error = (line) => faults.push(line);
  const asked = Promise.withResolvers<void>();
  text = () => {
    asked.resolve();
    return new Promise(() => {}); // it is never answered
  };
  const scraper = connect(local.port, '127.0.0.1', () =>
    scraper.write(head('GET /metrics', { Host: 'localhost' })),
  );
  await asked.promise;
  const closed = new Promise((resolve) => socket?.once('close', resolve));
  scraper.resetAndDestroy();
  await closed;
  console.error = write;
  assert.is(faults.length, 1, 'a scrape that is given up is not a fault');
  for (const server of [local, open]) await server.close();
});

test.run();

async function scrape(who: Credentials = app.admin): Promise<ReadonlyMap<string, Family>> {
  return parseMetrics((await app.as(who, 'GET', '/metrics')).text);
}
