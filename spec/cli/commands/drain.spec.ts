import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway drain');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
  const handler = () => ({ tools: [] });
  await gateway.server.gateway.register('demo', { id: 'one', handler }, { waitMs: 5_000 });
});
test.after(() => gateway.close());

const now = () => gateway.server.gateway.instance('demo', 'one').snapshot;

test('takes an instance out of balancing, which stays', async () => {
  const { code, out } = await gateway.run('gateway', 'drain', 'demo', 'one');
  assert.equal([code, out], [0, 'one of demo gets no new calls until it is resumed']);
  assert.is(now().state, 'draining');
});

test('prints its record as JSON', async () => {
  const { out } = await gateway.run('gateway', 'drain', 'demo', 'one', '--json');
  const { id, template_name, state } = JSON.parse(out);
  assert.equal([id, template_name, state], ['one', 'demo', 'draining']);
});

test.run();
