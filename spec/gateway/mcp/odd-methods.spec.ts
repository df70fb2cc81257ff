// Methods of a server's own with characters that no header can have, or of any length: a server of revision 2026-07-28 gets the
// method in a header, too, and its instance does not fail for it.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { suite } from '../../helpers/suite.ts';
import { openSession, postTo } from './post.ts';

const test = suite('odd methods');
let server: HttpFixture;
let gateway: Gateway;
test.before(async () => {
  server = await startHttpServer({ era: 'modern' });
  gateway = await createGateway();
  await gateway.register('t', { endpoint: server.url }, { waitMs: 10_000 });
});
test.after(async () => {
  await gateway.close({ graceMs: 0 });
  await server.close();
});

test('are answered by the server, and are no fault of the connection to it', async () => {
  const headers = await openSession(gateway, 't');
  for (const method of ['x/y', 'x/\ny', 'x/\u00e9', 'x/\u0100', 'x/\u{1f600}', ' x', 'x'.repeat(8_000)]) {
    const { answer } = await postTo(gateway, { template: 't', message: { method, params: {} }, headers });
    // A server that compares the header with the body refuses what no header can have (-32020).
    assert.ok([-32601, -32020].includes(Object(answer.error).code), JSON.stringify(answer).slice(0, 300));
    assert.is(server.requests.at(-1)?.message?.method, method);
  }
  const long = { method: 'x'.repeat(9_000), params: {} };
  const { answer } = await postTo(gateway, { template: 't', message: long, headers });
  assert.equal(answer.error, { code: -32602, message: 'Invalid params: the method is too long' });
});

test.run();
