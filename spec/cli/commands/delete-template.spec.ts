import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway delete-template');
let gateway: GatewayUnderTest;
test.before.each(async () => {
  gateway = await startGateway();
  await gateway.server.gateway.register('bad', { id: 'one', handler: () => ({ tools: [] }) });
});
test.after.each(() => gateway.close());

test('deletes a template whose instances are gone', async () => {
  const early = await gateway.run('gateway', 'delete-template', 'bad');
  assert.is(early.code, 1);
  assert.match(early.err, /^stagedoor: .*1 instance is registered: deregister it first/);
  await gateway.run('gateway', 'deregister', 'bad', 'one');
  const { code, out } = await gateway.run('gateway', 'delete-template', 'bad');
  assert.equal({ code, out }, { code: 0, out: 'bad is deleted' });
  assert.not.ok(gateway.server.gateway.templates().includes('bad'));
  assert.not.match((await gateway.run('gateway', 'status')).out, 'bad');
});

test('says so as JSON', async () => {
  await gateway.run('gateway', 'deregister', 'bad', 'one');
  const { out } = await gateway.run('gateway', 'delete-template', 'bad', '--json');
  assert.equal(JSON.parse(out), { template_name: 'bad', deleted: true });
});

test('fails for a template that nobody knows', async () => {
  const { code, err } = await gateway.run('gateway', 'delete-template', 'a/b?c');
  assert.is(code, 1);
  assert.match(err, /^stagedoor: [^\n]+$/);
});

test.run();
