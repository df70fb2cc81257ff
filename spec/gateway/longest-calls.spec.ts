// The longest call over HTTP: its timeout, and the hard maximum of the gateway. Time is real, and short.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { startHttpServer } from '../fixtures/http-server.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('longest calls', { timeoutMs: 30_000 });
const servers = [startHttpServer(), startHttpServer({ answers: 'sse' })];
let gateway: Gateway;
test.before(async () => {
  gateway = await createGateway({ maxCallMs: 1_000 });
  for (const [index, server] of servers.entries())
    await gateway.register('t', { id: `${index}`, endpoint: (await server).url }, { waitMs: 5_000 });
});
test.after(async () => {
  await gateway.close({ graceMs: 0 });
  for (const server of servers) await (await server).close();
});

for (const instanceId of ['0', '1']) {
  test(`a timeout over the hard maximum counts, at instance ${instanceId}`, async () => {
    const options = { instanceId, timeoutMs: 3_000 };
    const { result } = await gateway.call('t', 'sleep', { ms: 1_500 }, options);
    assert.ok(Object(result).content);
  });
}

test('the hard maximum ends a call that reports progress', async () => {
  const call = gateway.call('t', 'progress', { steps: 30, ms: 100 }, { instanceId: '1', timeoutMs: 500 });
  assert.is(await codeOf(call), 'BACKEND_TIMEOUT');
});

test.run();
