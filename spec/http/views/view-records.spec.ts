// What the gateway records of a call through a view: template, tool by its own name, and view, in events, the audit log, metrics and the
// log.

import * as assert from 'uvu/assert';
import { modern } from '../../helpers/clients/mcp-messages.ts';
import { eventually } from '../../helpers/eventually.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { metricValue, parseMetrics } from '../../helpers/http/metrics-text.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('records of calls through a view');
const auditSettings = { recordsCalls: true, callArguments: 'none', keptCalls: 1_000, keptDays: 0 } as const;
const app = appFor(test, () => startWithAccounts({ auditSettings, logLevel: 'info' }));

const VIEW = {
  from: [{ template: 'demo', rename: { echo: 'say' } }],
  limits: { say: { timeout: 60 } },
};

test.before(async () => {
  await app.serve('demo', 'one');
  await app.as(app.admin, 'PUT', '/gateway/views/desk', { body: VIEW });
  await app.as(app.admin, 'PUT', '/gateway/views/finding', { body: { ...VIEW, mode: 'search' } });
});

const say = (name = 'say') => ({ body: { name, arguments: { text: 'hello' } } });

/** The events of calls that the requests cause. */
async function eventsOf(requests: () => Promise<unknown>): Promise<readonly string[]> {
  const seen: string[] = [];
  const subscription = app.gateway.events$.subscribe((event) => {
    if ('call' in event) seen.push(`${event.type} ${event.template} ${event.tool} ${event.view}`);
  });
  await requests();
  subscription.unsubscribe();
  return seen;
}

async function callsOf(query: string): Promise<readonly string[]> {
  const { body } = await app.as(app.admin, 'GET', `/gateway/audit?action=tools/call&${query}`);
  const entries = Array.isArray(body.entries) ? body.entries : [];
  return entries.map(({ call }) => `${call.template} ${call.tool} ${call.view} ${call.outcome}`);
}

test('events name the view, its template, and the tool by its own name', async () => {
  const { body, headers } = modern('tools/call', say().body);
  const found = await eventsOf(async () => {
    await app.as(app.admin, 'POST', '/mcp/desk/tools/call', say());
    await app.as(app.admin, 'POST', '/mcp/desk', { body, headers });
    await app.as(app.admin, 'GET', '/mcp/desk/resources/read?uri=demo://nothing');
    await app.as(app.admin, 'POST', '/mcp/demo/tools/call', say('echo'));
  });
  const calls = found.filter((each) => each.includes('echo'));
  const ofView = ['call.started demo echo desk', 'call.finished demo echo desk'];
  const direct = ofView.map((each) => each.replace('desk', 'undefined'));
  assert.equal(calls, [...ofView, ...ofView, ...direct]);
});

test('the audit log names them, too, and finds the calls of a view', async () => {
  await app.as(app.admin, 'POST', '/mcp/desk/tools/call', say());
  assert.is((await callsOf('view=desk'))[0], 'demo echo desk result');
  await app.as(app.admin, 'POST', '/mcp/desk/tools/call', say('nothing'));
  assert.is((await callsOf('view=desk'))[0], ' nothing desk failed');
  await app.as(app.admin, 'POST', '/mcp/demo/tools/call', say('echo'));
  assert.is((await callsOf('template=demo'))[0], 'demo echo null result');
  assert.equal(await callsOf('view=other'), []);
  const call = { name: 'call_tool', arguments: { name: 'say', arguments: { text: 'hello' } } };
  await app.as(app.admin, 'POST', '/mcp/finding/tools/call', { body: call });
  assert.equal(await callsOf('view=finding'), ['demo echo finding result']);
});

test('a metric counts the calls of a view until it is deleted', async () => {
  const read = async () => parseMetrics((await app.as(app.admin, 'GET', '/metrics')).text);
  const labels = { view: 'gone', template: 'demo', outcome: 'result' };
  const views = async () =>
    new Set((await read()).get('stagedoor_view_requests_total')?.samples.map(({ labels: { view } }) => view));
  await app.as(app.admin, 'PUT', '/gateway/views/gone', { body: VIEW });
  await app.as(app.admin, 'POST', '/mcp/gone/tools/call', say());
  assert.is(metricValue(await read(), 'stagedoor_view_requests_total', labels), 1);
  const before = await views();
  await app.as(app.admin, 'DELETE', '/gateway/views/gone');
  assert.equal([before.delete('gone'), await views()], [true, before]);
});

test('the line of a request has the template that got the call, and the view', async () => {
  const from = app.log.length;
  await app.as(app.admin, 'POST', '/mcp/desk/tools/call', say());
  const line = await eventually(
    async () => app.log.slice(from).find(({ path }) => path === '/mcp/desk/tools/call'),
    (found) => found !== undefined,
  );
  assert.equal([line?.template, line?.tool, line?.view], ['demo', 'echo', 'desk']);
});

test.run();
