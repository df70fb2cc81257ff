// The whole story on the demo's real servers: list and call over both transports, kill an instance under load, watch health
// and stats, deregister, register again, stop.

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { callTool, eventually, get, type Reply, textOf } from '../../helpers/gateway-client.ts';
import { canFindDescendants, Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: whole story', { timeoutMs: 120_000 });
const needsProcesses = test.needs(canFindDescendants, 'processes are found through /proc, which is Linux');
let demo: Program;
test.before(async () => {
  demo = new Program(['gateway', 'start', '--demo', '--port', '0']);
  await demo.sees(/5 of 5 servers are healthy/, 60_000);
});
test.after(() => demo.remove());

test('lists and calls real tools over stdio and over HTTP', async () => {
  const url = await demo.url();
  for (const template of ['everything', 'filesystem', 'memory']) {
    const { status, body } = await get(url, `/mcp/${template}/tools/list`);
    assert.is(status, 200);
    assert.is(body.count, toolsOf(body).length);
    assert.ok(toolsOf(body).length > 5, template);
  }
  const sums = await Promise.all([1, 2, 3].map((a) => callTool(url, 'everything', 'get-sum', { a, b: 10 })));
  assert.equal(
    sums.map((reply) => /\d+ and \d+ is (\d+)/.exec(textOf(reply))?.[1]),
    ['11', '12', '13'],
  );
  const { load_balancer } = (await get(url, '/gateway/stats')).body;
  const requests: Record<string, number> = Object(load_balancer).requests_per_instance;
  for (const id of ['everything-1', 'everything-2', 'everything-3']) assert.ok((requests[id] ?? 0) > 0, id);

  assert.match(textOf(await callTool(url, 'filesystem', 'list_allowed_directories')), 'stagedoor-demo');
  const entities = [{ name: 'stagedoor', entityType: 'gateway', observations: ['has actors'] }];
  assert.is((await callTool(url, 'memory', 'create_entities', { entities })).status, 200);
  assert.match(textOf(await callTool(url, 'memory', 'read_graph')), 'has actors');
});

needsProcesses('serves on while one instance is killed under load, and gets it back', async () => {
  const url = await demo.url();
  for (const mode of ['stdio', 'streamableHttp']) {
    const victim = serverPid(mode);
    const load = callsUnderWay(url, 20, 2_000);
    process.kill(victim, 'SIGKILL');
    const sick = await eventually(
      () => get(url, '/mcp/everything/health'),
      ({ body }) => body.healthy_instances === 2,
      3_000,
    );
    assert.equal([sick.body.healthy_instances, sick.body.status], [2, 'healthy']);

    const answers = await load;
    assert.ok(answers.length > 100, `${answers.length} calls were made`);
    const bad = answers.filter((answer) => answer !== '200' && answer !== '503 BACKEND_UNAVAILABLE');
    assert.equal(bad, []);
    assert.ok(answers.filter((answer) => answer === '200').length > answers.length / 2);

    const well = await eventually(
      () => get(url, '/mcp/everything/health'),
      ({ body }) => body.healthy_instances === 3,
    );
    assert.is(well.body.health_percentage, 100);
    assert.is.not(serverPid(mode), victim);
  }
});

test('deregisters an instance and registers it again', async () => {
  const url = await demo.url();
  const { status } = await send(url, 'DELETE', '/gateway/deregister/everything/everything-2');
  assert.is(status, 204);
  assert.is((await get(url, '/mcp/everything/health')).body.total_instances, 2);
  assert.is((await send(url, 'DELETE', '/gateway/deregister/everything/everything-2')).status, 404);

  const command = 'npx -y @modelcontextprotocol/server-everything@2026.8.31 stdio';
  const body = { template_name: 'everything', instance: { id: 'everything-2', command } };
  assert.is((await send(url, 'POST', '/gateway/register?wait=30', body)).status, 201);
  const { body: health } = await get(url, '/mcp/everything/health');
  assert.equal([health.total_instances, health.healthy_instances], [3, 3]);
});

test('stops without a trace', async () => {
  demo.signal('SIGTERM');
  assert.equal(await demo.end(20_000), { code: 0, signal: null });
  if (canFindDescendants) assert.equal(await demo.survivors(), []);
});

test.run();

/** `connections` callers, each with one call at a time, for so long; how each call ended. */
async function callsUnderWay(url: string, connections: number, forMs: number): Promise<string[]> {
  const answers: string[] = [];
  const endsAtMs = performance.now() + forMs;
  const caller = async () => {
    while (performance.now() < endsAtMs)
      answers.push(outcomeOf(await callTool(url, 'everything', 'echo', { message: 'x' })));
  };
  await Promise.all(Array.from({ length: connections }, caller));
  return answers;
}

function outcomeOf({ status, body }: Reply): string {
  return status === 200 ? '200' : `${status} ${body.error_code}`;
}

/** The oldest living server-everything of the demo in this mode. */
function serverPid(mode: string): number {
  const pid = demo.descendants().find((one) => {
    const words = readFileSync(`/proc/${one}/cmdline`, 'utf8').split('\0');
    return words.includes(mode) && words.some((word) => word.includes('server-everything'));
  });
  if (pid === undefined) throw new Error(`no server-everything runs with ${mode}`);
  return pid;
}

function toolsOf(body: Reply['body']): unknown[] {
  return Array.isArray(body.tools) ? body.tools : [];
}

function send(url: string, method: string, path: string, body?: object): Promise<Response> {
  return fetch(url + path, {
    method,
    headers: { 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(40_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
