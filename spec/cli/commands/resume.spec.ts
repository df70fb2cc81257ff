import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway resume');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
  const handler = () => ({ tools: [] });
  await gateway.server.gateway.register('demo', { id: 'one', handler }, { waitMs: 5_000 });
});
test.after(() => gateway.close());

const now = () => gateway.server.gateway.instance('demo', 'one').snapshot;

test('takes a drained instance back', async () => {
  gateway.server.gateway.drain('demo', 'one');
  assert.is(now().state, 'draining');
  const { code, out } = await gateway.run('gateway', 'resume', 'demo', 'one');
  assert.equal([code, out], [0, 'one of demo gets calls again: healthy']);
  assert.is(now().state, 'healthy');
});

test.run();
