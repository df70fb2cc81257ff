// What `gateway start` makes of its options. A start that succeeds is spec/cli/run-gateway.spec.ts and the journeys.

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('gateway start');
const blocker = createServer();
let port = '';
test.before(async () => {
  await once(blocker.listen(0), 'listening');
  port = String((blocker.address() as AddressInfo).port);
});
test.after(() => void blocker.close());

test('passes its options on', async () => {
  const { code, err } = await runCommand(['gateway', 'start', '--port', port, '--host', '127.0.0.1']);
  assert.is(code, 2);
  assert.match(err, new RegExp(`^stagedoor: port ${port} on 127\\.0\\.0\\.1 is taken`));
});

test('keeps the demo on this machine, whatever the environment says', async () => {
  const env = { GATEWAY_HOST: '0.0.0.0', MCP_GATEWAY_HOST: '0.0.0.0' };
  const { err } = await runCommand(['gateway', 'start', '--demo', '--port', port], env);
  assert.match(err, new RegExp(`^stagedoor: port ${port} on 127\\.0\\.0\\.1 is taken`));
});

test('refuses what is not built yet', async () => {
  for (const option of ['--sync', '--background', '--auth']) {
    const { code, err } = await runCommand(['gateway', 'start', option]);
    assert.equal([code, err], [2, `stagedoor: ${option} is not built yet`]);
  }
});

test.run();
