import * as assert from 'uvu/assert';
import { fixtureHandler } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway tools');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
  const { gateway: facade } = gateway.server;
  await facade.register('demo', { handler: fixtureHandler('one') }, { waitMs: 5_000 });
  await facade.register('bare', { handler: () => ({ tools: [] }) }, { waitMs: 5_000 });
});
test.after(() => gateway.close());

test('shows each tool with what it takes and what it does', async () => {
  const { code, out } = await gateway.run('gateway', 'tools', 'demo');
  assert.is(code, 0);
  assert.match(out, /^TOOL +ARGUMENTS +DESCRIPTION$/m);
  assert.match(out, /^add +a:number b:number +Adds two numbers\.$/m);
  assert.match(out, /^progress +steps:number \[ms:number\] +Reports /m);
});

test('prints what the gateway answers as JSON', async () => {
  const { out } = await gateway.run('gateway', 'tools', 'demo', '--json');
  const { tools, count } = JSON.parse(out);
  assert.is(tools.length, count);
  assert.equal(tools[0].inputSchema.required, ['text']);
});

test('says so when there are none, and when there is no such template', async () => {
  assert.equal(await gateway.run('gateway', 'tools', 'bare'), { code: 0, out: 'bare has no tools', err: '' });
  const { code, err } = await gateway.run('gateway', 'tools', 'nothing');
  assert.is(code, 1);
  assert.match(err, /^stagedoor: [^\n]+\(TEMPLATE_NOT_FOUND\)$/);
  const slip = await gateway.run('gateway', 'tools', 'dmeo');
  assert.match(slip.err, /^stagedoor: [^\n]+\(TEMPLATE_NOT_FOUND\); did you mean "demo"\?$/);
});

test.run();
