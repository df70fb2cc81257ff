// A backend that was healthy and no longer answers, while clients need a conversation with it that is not open yet. The
// gateway and the time are real; timeouts are short.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, type Post, postTo, send } from './post.ts';

/** Each test must end long before the handshake timeout. */
const test = suite('mcp endpoint with a frozen backend', { timeoutMs: LIMITS.handshakeMs / 5 });
const TOO_LATE = { error_code: 'BACKEND_TIMEOUT', retry_after_seconds: 1 };
let gateway: Gateway;
let servers: Map<string, HttpFixture>;
test.before.each(async () => {
  gateway = await createGateway({ policy: { callTimeoutMs: 300, healthIntervalMs: 60_000 } });
  servers = new Map();
});
test.after.each(async () => {
  for (const server of servers.values()) await server.close();
  await gateway.close({ graceMs: 0 });
});

async function register(id: string): Promise<void> {
  const server = await startHttpServer();
  servers.set(id, server);
  await gateway.register('t', { id, endpoint: server.url }, { waitMs: 5_000 });
}

/** From now on instance `one` opens no session. */
const freeze = () => servers.get('one')?.freeze();
const echo = (name: string) => modernRequest('tools/call', { name, arguments: { text: 'x' } });

/** The data of the error; undefined for a result. Which instance failed does not matter here. */
async function errorData(post: Post): Promise<unknown> {
  const { error } = Object((await postTo(gateway, post)).answer);
  if (error === undefined) return undefined;
  const { instance_id: _, ...data } = error.data;
  return data;
}

test('answers a call without a session within its timeout, at a template and at /mcp', async () => {
  await register('one');
  freeze();
  assert.equal(await errorData({ template: 't', ...echo('echo') }), TOO_LATE);
  assert.equal(await errorData({ template: undefined, ...echo('t__echo') }), TOO_LATE);
});

test('answers the first call of a session with all templates within its timeout', async () => {
  await register('one');
  const headers = await openSession(gateway, undefined);
  freeze();
  const message = { method: 'tools/call', params: { name: 't__echo', arguments: { text: 'x' } } };
  assert.equal(await errorData({ template: undefined, message, headers }), TOO_LATE);
});

test('a call without a session continues with a healthy instance', async () => {
  await register('one');
  await register('two');
  freeze();
  const calls = [1, 2].map(() => errorData({ template: 't', ...echo('echo') }));
  assert.equal(await Promise.all(calls), [undefined, undefined]);
});

test('opens sessions at other instances within seconds, and deletes those that a stopped one opens late', async () => {
  for (const id of ['one', 'two', 'three', 'four']) await register(id);
  const proceed = servers.get('one')?.stop();
  const startedMs = performance.now();
  const opened = await Promise.all(Array.from({ length: 8 }, () => openSession(gateway, 't')));
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs < 3_000, `it took ${tookMs} ms`);
  for (const headers of opened) {
    const message = { method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } };
    assert.is(await errorData({ template: 't', message, headers }), undefined);
    await send(gateway, 'DELETE', { template: 't', headers });
  }
  proceed?.();
  const sessions = () => [...servers.values()].map((server) => server.sessions.size);
  await becomes(sessions, [1, 1, 1, 1]); // of the instances themselves
  assert.is(servers.get('one')?.count('initialize'), 1 + 2);
});

test.run();
