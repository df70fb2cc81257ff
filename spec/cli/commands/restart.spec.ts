import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway restart');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
  const handler = () => ({ tools: [] });
  await gateway.server.gateway.register('demo', { id: 'one', handler }, { waitMs: 5_000 });
});
test.after(() => gateway.close());

const now = () => gateway.server.gateway.instance('demo', 'one').snapshot;

test('begins an instance anew', async () => {
  const { restarts } = now();
  const { code, out } = await gateway.run('gateway', 'restart', 'demo', 'one');
  assert.equal([code, out], [0, 'one of demo restarts']);
  while (now().restarts === restarts) await new Promise(setImmediate);
  assert.is(now().restarts, restarts + 1);
});

test.run();
