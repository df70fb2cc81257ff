import * as assert from 'uvu/assert';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of statistics');

test('count the same calls on both surfaces', async () => {
  const app = await startApp();
  await app.serve('demo', 'one');
  await app.serve('demo', 'two');
  await app.gateway.register('other', { id: 'dead', endpoint: 'http://127.0.0.1:1' });
  for (let count = 0; count < 4; count += 1) {
    await app.ask('POST', '/mcp/demo/tools/call', { body: { name: 'name' } });
  }
  const a = (await app.ask('GET', '/gateway/stats')).body;
  assert.ok('health_checker' in a);
  assert.is(a.total_requests, 4);
  const b = (await app.ask('GET', '/stats')).body;
  assert.equal(
    { ...b, uptime: 0 },
    {
      uptime: 0,
      total_requests: 4,
      active_servers: 3,
      healthy_servers: 2,
      load_balancer: {
        strategy: 'round_robin',
        total_requests: 4,
        requests_per_server: { one: 2, two: 2, dead: 0 },
      },
    },
  );
  assert.ok(Number.isInteger(b.uptime));
  await app.close();
});

test.run();
