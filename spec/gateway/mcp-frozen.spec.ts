// A backend that was well and says nothing any more, while clients need a conversation with it that is not open yet. The
// gateway is a real one, and so is the time, of which there is little.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import { type HttpFixture, startHttpServer } from '../fixtures/http-server.ts';
import { suite } from '../helpers/suite.ts';
import { postTo } from './mcp-post.ts';

const callTimeoutMs = 300;

/** A test may take far less than an opening. */
const test = suite('mcp endpoint with a frozen backend', { timeoutMs: LIMITS.handshakeMs / 5 });
let gateway: Gateway;
let servers: HttpFixture[];
test.before.each(async () => {
  gateway = await createGateway({ policy: { callTimeoutMs, healthIntervalMs: 60_000 } });
  servers = [await startHttpServer(), await startHttpServer()];
});
test.after.each(async () => {
  await Promise.all(servers.map((server) => server.close()));
  await gateway.close({ graceMs: 0 });
});

test('answers a call without a session in its time, at a template and at all of them', async () => {
  await register('one');
  freeze('one');
  for (const [template, name] of [
    ['t', 'echo'],
    [undefined, 't__echo'],
  ] as const)
    assert.equal(await faultOf(post(template, ...modern(name))), TOO_LATE);
});

test('answers the first call of a session with all templates in its time', async () => {
  await register('one');
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 's', version: '1' } };
  const { headers } = await post(undefined, { method: 'initialize', params });
  freeze('one');
  const session = { 'mcp-session-id': headers[headers.indexOf('Mcp-Session-Id') + 1] ?? '' };
  const call = { method: 'tools/call', params: { name: 't__echo', arguments: { text: 'x' } } };
  assert.equal(await faultOf(post(undefined, call, session)), TOO_LATE);
});

test('goes on to another instance that is well', async () => {
  await register('one');
  await register('two');
  freeze('one');
  const calls = [1, 2].map(() => faultOf(post('t', ...modern('echo'))));
  assert.equal(await Promise.all(calls), [undefined, undefined]);
});

test.run();

const TOO_LATE = { error_code: 'BACKEND_TIMEOUT', retry_after_seconds: 1 };
const INDEX = { one: 0, two: 1 } as const;

async function register(id: keyof typeof INDEX): Promise<void> {
  await gateway.register('t', { id, endpoint: servers[INDEX[id]]?.url ?? '' }, { waitMs: 5_000 });
}

/** From now on it opens no session. */
function freeze(id: keyof typeof INDEX): void {
  servers[INDEX[id]]?.setHealthy(false, 'hang');
}

/** What went wrong, undefined when nothing did. Which instance that was is of no matter here. */
async function faultOf(answered: Promise<{ readonly answer: JsonObject }>): Promise<unknown> {
  const { error } = Object((await answered).answer);
  if (error === undefined) return undefined;
  const { instance_id: _, ...data } = error.data;
  return data;
}

function modern(name: string): [JsonObject, Record<string, string>] {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return [
    { method: 'tools/call', params: { name, arguments: { text: 'x' }, _meta } },
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name },
  ];
}

function post(template: string | undefined, message: JsonObject, headers: Record<string, string> = {}) {
  return postTo(gateway, { template, message, headers });
}
