import * as assert from 'uvu/assert';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of instances');
const started = startApp();
test.before(async () => {
  await (await started).serve('demo', 'one');
  await (await started).serve('demo', 'two');
});
test.after(async () => (await started).close());

const ask = async (...parameters: Parameters<Awaited<typeof started>['ask']>) =>
  (await started).ask(...parameters);
const callee = async () =>
  (await ask('POST', '/mcp/demo/tools/call', { body: { name: 'name' } })).headers.get('x-instance-id');

test('change weight and metadata', async () => {
  const weight = await ask('PATCH', '/gateway/instances/demo/one', { body: { weight: 5 } });
  assert.equal([weight.status, weight.body.weight, weight.body.healthy], [200, 5, true]);
  const metadata = await ask('PATCH', '/gateway/instances/demo/one', { body: { metadata: { a: 1 } } });
  assert.equal([metadata.body.weight, metadata.body.metadata], [5, { a: 1 }]);
});

test('drain and resume', async () => {
  const drained = await ask('POST', '/gateway/instances/demo/one/drain');
  assert.equal([drained.status, drained.body.state, drained.body.id], [200, 'draining', 'one']);
  assert.equal(new Set([await callee(), await callee(), await callee()]), new Set(['two']));
  const resumed = await ask('POST', '/gateway/instances/demo/one/resume');
  assert.equal([resumed.status, resumed.body.state], [200, 'healthy']);
  assert.equal(new Set([await callee(), await callee()]), new Set(['one', 'two']));
});

test('restart', async () => {
  const restarted = await ask('POST', '/gateway/instances/demo/one/restart');
  assert.is(restarted.status, 200);
  const { gateway } = await started;
  while (!gateway.instance('demo', 'one').snapshot.healthy) await new Promise(setImmediate);
});

test('need no body for a command, and mind none', async () => {
  assert.is((await ask('POST', '/gateway/instances/demo/one/resume', { body: '{"broken' })).status, 200);
});

for (const command of ['drain', 'resume', 'restart']) {
  test(`are 404 for a ${command} of what is not there`, async () => {
    const server = await ask('POST', `/gateway/instances/demo/nope/${command}`);
    assert.equal([server.status, server.body.error_code], [404, 'SERVER_NOT_FOUND']);
    const template = await ask('POST', `/gateway/instances/nope/one/${command}`);
    assert.equal([template.status, template.body.error_code], [404, 'TEMPLATE_NOT_FOUND']);
  });
}

test('are 404 for a change of what is not there', async () => {
  const answer = await ask('PATCH', '/gateway/instances/demo/nope', { body: { weight: 1 } });
  assert.equal([answer.status, answer.body.error_code], [404, 'SERVER_NOT_FOUND']);
});

test.run();
