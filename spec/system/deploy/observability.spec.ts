// deploy/grafana-dashboard.json and deploy/prometheus-rules.yaml against the metrics of a gateway with real programs: a killed one
// shows, a deregistered one has no line. promtool checks the text, the rules and every query; without it, these are skipped.

import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { METRICS } from '../../../src/metrics/metric-table.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { caller, callTool, field } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type Family, metricValue, parseMetrics } from '../../helpers/http/metrics-text.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const run = promisify(execFile);
const fileOf = (name: string): string => fileURLToPath(new URL(`../../../deploy/${name}`, import.meta.url));
const rules = fileOf('prometheus-rules.yaml');
const hasPromtool = await run('promtool', ['--version']).then(
  () => true,
  () => false,
);

const test = suite('observability', { timeoutMs: 60_000 });
const needsPromtool = test.needs(hasPromtool, 'promtool is not installed (package prometheus)');
let gateway: Program;
const folder = folderOfAll(test)();
let metricsPort = 0;
test.before(async () => {
  metricsPort = await freePort();
  gateway = new Program(['gateway', 'start', '--port', '0', '--metrics-port', String(metricsPort)]);
  for (const id of ['one', 'two'])
    await gateway.run('instance', 'register', 'pair', '--id', id, '--command', command(), '--wait', '15');
  await callTool(caller(await gateway.url()), 'pair', 'count');
});
test.after(async () => {
  await gateway.remove();
});

test('the metrics show that a program was killed and restarted, and drop a deregistered one', async () => {
  const one = { template: 'pair', instance_id: 'one' };
  const up = await scrape();
  assert.is(metricValue(up, 'stagedoor_instance_up', one), 1);
  assert.is(metricValue(up, 'stagedoor_requests_total', { template: 'pair', outcome: 'result' }), 1);
  const pid = field(await caller(await gateway.url())('GET /servers/one'), 'pid');
  process.kill(Number(pid), 'SIGKILL');
  const upNow = async () => {
    const families = await scrape();
    return ['one', 'two'].map((instance_id) =>
      metricValue(families, 'stagedoor_instance_up', { template: 'pair', instance_id }),
    );
  };
  await becomes(upNow, [0, 1]);
  await becomes(upNow, [1, 1]);
  const restarts = { ...one, reason: 'failure' };
  assert.is(metricValue(await scrape(), 'stagedoor_instance_restarts_total', restarts), 1);
  await gateway.run('instance', 'deregister', 'pair', 'one');
  const text = await textOf();
  assert.not.match(text, 'instance_id="one"');
  assert.match(text, 'instance_id="two"');
});

test('the dashboard and the rules use metrics and labels that exist', async () => {
  const families = await scrape();
  const queries = [...(await dashboardQueries()), ...(await ruleQueries())];
  assert.ok(queries.length > 40);
  for (const query of queries) {
    const names = query.match(/\b(?:stagedoor|nodejs|process)_[a-z0-9_]+/g) ?? [];
    assert.ok(names.length > 0, query);
    for (const name of names) {
      const family = families.get(name) ?? families.get(name.replace(/_bucket$/, ''));
      assert.ok(family, `${name} is not a metric: ${query}`);
      if (name.endsWith('_bucket')) assert.is(family?.type, 'histogram');
    }
    const labels = [...query.matchAll(/([a-z_]+)=~?"|by \(([^)]*)\)/g)].flatMap(
      ([, one = '', several = '']) => `${one},${several}`.split(/[\s,]+/).filter(Boolean),
    );
    const known = METRICS.filter(({ name }) => names.some((used) => used.startsWith(name))).flatMap(
      (metric) => metric.labels,
    );
    const unknown = labels.filter((label) => !['job', 'instance', 'le', ...known].includes(label));
    assert.equal(unknown, [], query);
  }
});

test('the dashboard shows each metric of what happens between nodes', async () => {
  const text = (await dashboardQueries()).join();
  const between =
    /^stagedoor_(?:hop|lives|fences|program_leases|session_claims|session_writes|sessions_recovered)/;
  const names = METRICS.map(({ name }) => name).filter((name) => between.test(name));
  assert.is(names.length, 8);
  assert.equal(
    names.filter((name) => !text.includes(name)),
    [],
  );
});

needsPromtool('promtool accepts the rules, and every query of the dashboard', async () => {
  await run('promtool', ['check', 'rules', rules]);
  const asRules = (await dashboardQueries()).map((query, index) => ({
    record: `panel:${index}`,
    expr: query,
  }));
  const file = join(folder, 'dashboard.json');
  await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: asRules }] }));
  const { stdout } = await run('promtool', ['check', 'rules', file]);
  assert.match(stdout, `SUCCESS: ${asRules.length} rules found`);
});

needsPromtool('promtool accepts names, types and format of the metrics', async () => {
  const checking = run('promtool', ['check', 'metrics']);
  checking.child.stdin?.end(await textOf());
  const { stdout, stderr } = await checking;
  assert.equal([stdout, stderr], ['', '']);
});

test.run();

function command(): string {
  return `${process.execPath} ${stdioServerPath}`;
}

async function textOf(): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
  assert.is(response.status, 200);
  return response.text();
}

async function scrape(): Promise<ReadonlyMap<string, Family>> {
  return parseMetrics(await textOf());
}

interface Dashboard {
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
}

/** The queries of the dashboard, with values for the variables of Grafana. */
async function dashboardQueries(): Promise<string[]> {
  const { panels }: Dashboard = JSON.parse(await readFile(fileOf('grafana-dashboard.json'), 'utf8'));
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  return queries.map((query) => query.replaceAll('$__rate_interval', '5m').replaceAll(/\$[a-z]+/g, '.*'));
}

async function ruleQueries(): Promise<string[]> {
  const { groups } = parse(await readFile(rules, 'utf8'));
  return groups.flatMap((group: { rules: { expr: string }[] }) => group.rules.map(({ expr }) => expr));
}
