import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway log-level');
let gateway: GatewayUnderTest;
test.before.each(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after.each(() => gateway.close());

test('shows the level, changes it, and refuses a word that is none', async () => {
  assert.is((await gateway.run('gateway', 'log-level')).out, 'silent');
  assert.is((await gateway.run('gateway', 'log-level', 'debug')).out, 'debug');
  const { out } = await gateway.run('gateway', 'log-level', '--json');
  assert.equal(JSON.parse(out), { level: 'debug' });
  const refused = await gateway.run('gateway', 'log-level', 'loud');
  assert.is(refused.code, 1);
  assert.match(refused.err, /<level>: /);
});

test.run();
