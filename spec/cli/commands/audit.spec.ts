import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway audit');
let gateway: GatewayUnderTest;
test.before.each(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after.each(() => gateway.close());

test('shows changes and calls, the newest first, and finds some of them', async () => {
  assert.is((await gateway.run('gateway', 'audit')).out, 'no entries');
  const handler = ({ method }: { method: string }) =>
    method === 'tools/list' ? { tools: [{ name: 'one', inputSchema: {} }] } : { content: [] };
  await gateway.server.gateway.register('demo', { id: 'a', handler }, { waitMs: 5_000 });
  await gateway.run('gateway', 'log-level', 'silent');
  await gateway.run('gateway', 'call', 'demo', 'one');
  await gateway.run('gateway', 'call', 'demo', 'one');
  const all = (await gateway.run('gateway', 'audit')).out;
  assert.match(all, /^TIME +ACTOR +ACTION +SUBJECT +INSTANCE +STATUS +OUTCOME +MS\n/);
  assert.match(
    all,
    /operator +tools\/call +demo\/one +a +200 +result +\d+\n.*\n.*PATCH \/gateway\/log-level/,
  );
  const found = async (...words: string[]) =>
    JSON.parse((await gateway.run('gateway', 'audit', '--json', ...words)).out).length;
  assert.is(await found('--tool', 'one', '--from', '1h'), 2);
  assert.is(await found('--tool', 'one', '--limit', '1'), 1);
  assert.is(await found('--tool', 'one', '--to', '1h'), 0);
  assert.is(await found('--actor', 'operator', '--action', 'PATCH /gateway/log-level'), 1);
  assert.is(await found('--outcome', 'failed'), 0);
  const refused = await gateway.run('gateway', 'audit', '--from', 'yesterday');
  assert.equal([refused.code, /--from must be a time/.test(refused.err)], [2, true]);
});

test.run();
