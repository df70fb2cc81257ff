// Sessions that are opened, called and deleted while the gateway stops, and what of them continues in the next life.

import * as assert from 'uvu/assert';
import { becomes, until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { begin, initialize, openSession, send } from './post.ts';
import { ADA, call, post, READ, StoredSessions, UNSAFE } from './stored-sessions.ts';

const test = suite('sessions at a stop');
const stored = new StoredSessions(test);

test('a client that initializes while the gateway stops and its database hangs is refused within seconds', async () => {
  const gateway = await stored.start();
  await stored.registered(gateway);
  const { promise, resolve } = Promise.withResolvers<void>();
  stored.blocked = promise;
  const opening = post(gateway, {}, initialize());
  await becomes(() => stored.operations.includes('insert'), true);
  const closing = gateway.close({ graceMs: 10_000 });
  const { status, answer } = await opening;
  assert.equal([status, Object(Object(answer.error).data).error_code], [503, 'SHUTTING_DOWN']);
  await closing;
  resolve();
});

test('a call that waits for the mark of its session when the gateway stops is refused as not delivered', async () => {
  const gateway = await stored.start();
  await stored.registered(gateway);
  const session = await openSession(gateway, 't', ADA);
  const { promise, resolve } = Promise.withResolvers<void>();
  stored.blocked = promise;
  const calling = post(gateway, session, UNSAFE);
  await becomes(() => stored.operations.includes('update'), true);
  const closing = gateway.close({ graceMs: 10_000 });
  const { data } = Object((await calling).answer.error);
  resolve();
  assert.equal(
    [data.error_code, data.delivered, data.retry_after_seconds],
    ['BACKEND_UNAVAILABLE', undefined, 1],
  );
  await closing;
});

test('a stop keeps the rows of all sessions, and those that cannot be continued go with their first request', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const [kept, unsafe] = [await openSession(first, 't', ADA), await openSession(first, 't', ADA)];
  await post(first, unsafe, UNSAFE);
  await first.close({ graceMs: 0 });
  const next = await stored.start();
  stored.operations = [];
  assert.is((await post(next, unsafe, READ)).status, 404);
  assert.equal(stored.operations, ['read', 'delete']);
  assert.is((await post(next, kept, READ)).status, 200);
});

test('a session that its client deletes while the gateway stops is over in the next life', async () => {
  const first = await stored.start();
  await stored.registered(first, { session_failover: 'always' });
  const session = await openSession(first, 't', ADA);
  stored.server.failNext('never', { method: 'tools/call' });
  const underWay = begin(first, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: call('echo'),
  });
  await becomes(() => stored.server.count('tools/call'), 1);
  const closed = first.close({ graceMs: 20_000 });
  const unknown = { 'mcp-session-id': `${'x'.repeat(51)}` };
  await until(async () => (await post(first, unknown, READ)).status === 503);
  const { status } = await send(first, 'DELETE', { template: 't', headers: session, principal: ADA });
  assert.is(status, 200);
  await Promise.all([closed, underWay.handled]);
  assert.is((await post(await stored.start(), session, READ)).status, 404);
});

test.run();
