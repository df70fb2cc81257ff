import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import type { Scope } from '../../../../src/domain/accounts/account.ts';
import { ANONYMOUS, type Principal } from '../../../../src/domain/accounts/principal.ts';
import { InstanceRecord, instanceRecord } from '../../../../src/http/records/instance-record.ts';
import { until } from '../../../helpers/eventually.ts';
import { appFor, startApp } from '../../../helpers/http/app.ts';
import { definitionSample, snapshotSample } from '../../../helpers/http/samples.ts';
import { suite } from '../../../helpers/suite.ts';
import { withRawServer } from '../../../transports/raw-server.ts';
import { discovered, initialized, result, serving } from '../../../transports/scripted-server.ts';

const test = suite('the instance routes');
const app = appFor(test, () => startApp());
test.before(async () => {
  await app.serve('demo', 'one');
  await app.serve('demo', 'two');
});

const callee = async () =>
  (await app.ask('POST', '/mcp/demo/tools/call', { body: { name: 'name' } })).headers.get('x-instance-id');

test('answer with one instance, whose record the list of servers has, too', async () => {
  const { status, body } = await app.ask('GET', '/gateway/instances/demo/two');
  assert.equal([status, body], [200, (await app.ask('GET', '/servers/two')).body]);
  assert.is((await app.ask('GET', '/gateway/instances/demo/none')).outcome, '404 SERVER_NOT_FOUND');
  assert.is((await app.ask('GET', '/gateway/instances/none/two')).outcome, '404 TEMPLATE_NOT_FOUND');
});

test('change the weight and the metadata of an instance', async () => {
  const weight = await app.ask('PATCH', '/gateway/instances/demo/one', { body: { weight: 5 } });
  assert.equal([weight.status, weight.body.weight, weight.body.healthy], [200, 5, true]);
  const metadata = await app.ask('PATCH', '/gateway/instances/demo/one', { body: { metadata: { a: 1 } } });
  assert.equal([metadata.body.weight, metadata.body.metadata], [5, { a: 1 }]);
});

test('take the weight from the metadata when it changes there', async () => {
  for (const [body, expected] of [
    [{ metadata: { weight: 3 } }, 3],
    [{ weight: 7 }, 7],
    [{ metadata: { weight: 3, note: 'x' } }, 7],
    [{ metadata: { weight: 'much' } }, undefined],
    [{ weight: 2, metadata: { weight: { kg: 1 } } }, 2],
    [{ metadata: { weight: { kg: 1 }, note: 'y' } }, 2],
  ] as const)
    assert.is((await app.ask('PATCH', '/gateway/instances/demo/one', { body })).body.weight, expected);
});

test('change the era of an instance, which is opened again in that era', async () => {
  const both = {
    initialize: initialized,
    'server/discover': discovered,
    'tools/list': result({ tools: [] }),
  };
  await withRawServer(serving(both), async ({ url: endpoint }) => {
    await app.gateway.register('eras', { id: 'dual', endpoint }, { waitMs: 5_000 });
    const eraOf = () => app.gateway.instance('eras', 'dual').snapshot;
    assert.is(eraOf().era, 'modern');
    const path = '/gateway/instances/eras/dual';
    for (const [era, found] of [
      ['legacy', 'legacy'],
      [undefined, 'legacy'],
      ['auto', 'modern'],
      ['modern', 'modern'],
    ] as const) {
      const { status, body } = await app.ask('PATCH', path, { body: { era, weight: 3 } });
      const pinned = era === 'auto' ? undefined : (era ?? 'legacy');
      assert.equal([status, body.era, body.weight], [200, pinned, 3]);
      await until(() => eraOf().healthy, 'it is open');
      assert.is(eraOf().era, found);
    }
    assert.is((await app.ask('PATCH', path, { body: { era: 'older' } })).outcome, '422 VALIDATION_ERROR');
    await app.gateway.register('eras', { id: 'sse', endpoint, transport: 'sse' });
    const refused = await app.ask('PATCH', '/gateway/instances/eras/sse', { body: { era: 'modern' } });
    assert.equal([refused.status, refused.issue], [422, 'body.era value_error']);
  });
});

test('drain an instance, so that calls go to others, and resume it', async () => {
  const drained = await app.ask('POST', '/gateway/instances/demo/one/drain');
  assert.equal([drained.status, drained.body.state, drained.body.id], [200, 'draining', 'one']);
  assert.equal(new Set([await callee(), await callee(), await callee()]), new Set(['two']));
  const resumed = await app.ask('POST', '/gateway/instances/demo/one/resume');
  assert.equal([resumed.status, resumed.body.state], [200, 'healthy']);
  assert.equal(new Set([await callee(), await callee()]), new Set(['one', 'two']));
});

test('restart an instance, which becomes healthy again', async () => {
  const restarted = await app.ask('POST', '/gateway/instances/demo/one/restart');
  assert.is(restarted.status, 200);
  const snapshot = () => app.gateway.instance('demo', 'one').snapshot;
  await until(() => snapshot().restarts > 0 && snapshot().healthy);
  assert.is(snapshot().restarts, 1);
});

test('ignore the body of a resume request', async () => {
  assert.is((await app.ask('POST', '/gateway/instances/demo/one/resume', { body: '{"broken' })).status, 200);
});

test.run();

const record = suite('the instance record');

const isRecord = Compile(InstanceRecord);
const clients = { sessions: 0, ownProcesses: 0 };

record('shows the definition and the current state, with secrets masked', () => {
  const shown = instanceRecord(
    {
      definition: definitionSample(),
      snapshot: snapshotSample({ pid: 7 }),
      clients: { sessions: 3, ownProcesses: 2 },
    },
    ANONYMOUS,
  );
  assert.equal(shown, {
    ...{ id: 'one', server_id: 'one', template_name: 'demo', transport: 'http' },
    ...{ endpoint: 'http://127.0.0.1:9000/mcp', command: 'serve', args: ['--fast'], working_dir: '/srv' },
    ...{ env_vars: { TOKEN: '***' }, headers: { Authorization: '***' }, weight: 2, metadata: { team: 'a' } },
    ...{ source: 'api', node_id: null, status: 'healthy', healthy: true, state: 'healthy', in_flight: 1 },
    ...{ sessions: 3, own_processes: 2, pid: 7, reason: null },
    ...{ warnings: [], restarts: 0, stderr: [], ejection: null },
    ...{ created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-02T00:00:00.000Z' },
    last_check: '2026-01-03T00:00:00.000Z',
    next_attempt_at: null,
  });
  assert.ok(isRecord.Check(shown));
});

record('shows null for absent fields, and why an instance is unhealthy', () => {
  const { endpoint, command, workingDir, ...definition } = definitionSample();
  const snapshot = snapshotSample({ state: 'unhealthy', healthy: false, reason: 'exited', stderr: ['oops'] });
  const shown = instanceRecord({ definition, snapshot, clients }, ANONYMOUS);
  assert.equal([shown.endpoint, shown.command, shown.working_dir], [null, null, null]);
  const found = [shown.status, shown.healthy, shown.reason, shown.stderr];
  assert.equal(found, ['unhealthy', false, 'exited', ['oops']]);
  assert.ok(isRecord.Check(shown));
});

record('adds shortened last lines of standard error to the reason of a program without a session', () => {
  const stderr = ['Error: one', '    at two (three.js:4:5)', 'x'.repeat(500), 'last'];
  const facts = { state: 'unhealthy', healthy: false, reason: 'exited with code 1', stderr } as const;
  const reasonOf = (era: string | null) =>
    instanceRecord(
      { definition: definitionSample(), snapshot: snapshotSample({ ...facts, era }), clients },
      ANONYMOUS,
    ).reason;
  assert.is(reasonOf('legacy'), 'exited with code 1');
  const said = `Error: one | ${'x'.repeat(200)} | last`;
  assert.is(reasonOf(null), `exited with code 1; last output: ${said}`);
});

record('masks a variable called __proto__', () => {
  const env = JSON.parse('{"__proto__":"secret"}');
  const server = { definition: definitionSample({ env }), snapshot: snapshotSample(), clients };
  const { env_vars } = instanceRecord(server, ANONYMOUS);
  assert.is(JSON.stringify(env_vars), '{"__proto__":"***"}');
});

record('hides command, process ids, reason and standard error from callers without gateway:write', () => {
  const endpoint = 'http://127.0.0.1:9000/mcp?key=secret?more#x';
  const definition = definitionSample({ endpoint, nodeId: 'n1', force: true });
  const facts = { healthy: false, reason: 'spawn /srv/serve ENOENT', stderr: ['/srv'], pid: 7 };
  const snapshot = snapshotSample(facts);
  const clients = { sessions: 0, ownProcesses: 1 };
  const viewer = (...scopes: Scope[]): Principal => ({ ...ANONYMOUS, scopes: new Set(scopes) });
  const whole = instanceRecord({ definition, snapshot, clients }, viewer('gateway:write'));
  assert.equal([whole.endpoint, whole.command, whole.reason], [endpoint, 'serve', 'spawn /srv/serve ENOENT']);
  const { force, ...others } = whole;
  assert.is(force, true);
  assert.ok(isRecord.Check(whole));
  for (const scopes of [['gateway:read'], ['gateway:read', 'tools:call'], []] as const) {
    const shown = instanceRecord({ definition, snapshot, clients }, viewer(...scopes));
    assert.equal(shown, {
      ...{ ...others, endpoint: 'http://127.0.0.1:9000/mcp', command: null, args: [], working_dir: null },
      ...{ pid: null, reason: null, stderr: [] },
    });
    assert.ok(isRecord.Check(shown));
  }
  assert.equal(instanceRecord({ definition, snapshot, clients }, viewer('admin')), whole);
});

record.run();
