import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway deregister');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
  for (const id of ['one', 'two']) {
    await gateway.server.gateway.register('demo', { id, handler: () => ({ tools: [] }) });
  }
});
test.after(() => gateway.close());

test('takes an instance out', async () => {
  const { code, out } = await gateway.run('gateway', 'deregister', 'demo', 'one');
  assert.equal({ code, out }, { code: 0, out: 'one is deregistered from demo' });
  const left = gateway.server.gateway.template('demo').instances.map(({ id }) => id);
  assert.equal(left, ['two']);
});

test('says so as JSON', async () => {
  const { out } = await gateway.run('gateway', 'deregister', 'demo', 'two', '--json');
  assert.equal(JSON.parse(out), { template_name: 'demo', instance_id: 'two', deregistered: true });
});

test('fails for an instance that nobody knows', async () => {
  const { code, err } = await gateway.run('gateway', 'deregister', 'demo', 'a/b?c');
  assert.is(code, 1);
  assert.match(err, /^stagedoor: [^\n]+$/);
});

test('needs both words', async () => {
  const { code, err } = await gateway.run('gateway', 'deregister', 'demo');
  assert.is(code, 2);
  assert.match(
    err,
    /^stagedoor: missing required argument <id>; see npx stagedoor gateway deregister --help$/,
  );
});

test.run();
