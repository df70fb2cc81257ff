import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { InstanceRecord, instanceRecord } from '../../../src/http/views/instance-record.ts';
import { definitionSample, snapshotSample } from '../../helpers/http-samples.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the instance record');

test('shows what was registered and what is true now, with secrets masked', () => {
  const record = instanceRecord(definitionSample(), snapshotSample());
  assert.equal(record, {
    id: 'one',
    server_id: 'one',
    template_name: 'demo',
    transport: 'http',
    endpoint: 'http://127.0.0.1:9000/mcp',
    command: 'serve',
    args: ['--fast'],
    working_dir: '/srv',
    env_vars: { TOKEN: '***' },
    headers: { Authorization: '***' },
    weight: 2,
    metadata: { team: 'a' },
    source: 'api',
    node_id: null,
    status: 'healthy',
    healthy: true,
    state: 'healthy',
    in_flight: 1,
    reason: null,
    restarts: 0,
    stderr: [],
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-02T00:00:00.000Z',
    last_check: '2026-01-03T00:00:00.000Z',
  });
  assert.ok(Compile(InstanceRecord).Check(record));
});

test('shows null for what was not given, and why an instance is not healthy', () => {
  const { endpoint, command, workingDir, ...definition } = definitionSample();
  const snapshot = snapshotSample({ state: 'unhealthy', healthy: false, reason: 'exited', stderr: ['oops'] });
  const record = instanceRecord(definition, snapshot);
  assert.equal([record.endpoint, record.command, record.working_dir], [null, null, null]);
  assert.equal(
    [record.status, record.healthy, record.reason, record.stderr],
    ['unhealthy', false, 'exited', ['oops']],
  );
  assert.ok(Compile(InstanceRecord).Check(record));
});

test('masks a variable called __proto__ like any other', () => {
  const env = JSON.parse('{"__proto__":"secret"}');
  const { env_vars } = instanceRecord(definitionSample({ env }), snapshotSample());
  assert.is(JSON.stringify(env_vars), '{"__proto__":"***"}');
});

test.run();
