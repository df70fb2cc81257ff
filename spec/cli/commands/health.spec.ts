import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway health');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
  const { gateway: facade } = gateway.server;
  const down = firstValueFrom(facade.on('instance.unhealthy'));
  await facade.register('far', { id: 'two', endpoint: 'http://127.0.0.1:9/mcp' });
  await down;
});
test.after(() => gateway.close());

test('ends with exit code 1 when nothing is healthy', async () => {
  const { code, out } = await gateway.run('gateway', 'health');
  assert.is(code, 1);
  assert.match(out, /^status +unhealthy$/m);
});

test('shows the health of a template', async () => {
  const far = await gateway.run('gateway', 'health', 'far');
  assert.is(far.code, 1);
  assert.match(
    far.out,
    /^far: 0 of 1 healthy\nINSTANCE +STATE +LATENCY +REASON\ntwo +unhealthy +connection refused$/,
  );
  assert.match((await gateway.run('gateway', 'health', 'none')).err, /\(TEMPLATE_NOT_FOUND\)$/);
});

test('shows the health of the gateway to everybody', async () => {
  await gateway.server.gateway.register('demo', { handler: () => ({ tools: [] }) }, { waitMs: 5_000 });
  const nobody = { env: { STAGEDOOR_API_KEY: '' } };
  const { code, out } = await gateway.runAt(nobody, 'gateway', 'health');
  assert.is(code, 0);
  assert.match(out, /^status +degraded\ndatabase +connected\ninstances +1 of 2 healthy\nuptime +\d+ s$/);
  const { status, instances } = JSON.parse((await gateway.runAt(nobody, 'gateway', 'health', '--json')).out);
  assert.equal([status, instances.total], ['degraded', 2]);
  assert.match((await gateway.runAt(nobody, 'gateway', 'health', 'demo')).err, 'not logged in');
});

test.run();
