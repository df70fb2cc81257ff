// Everything that clients get wrong at the MCP endpoint, against a real gateway with accounts: what they are told, and that
// the session they had, and everybody else's, goes on unharmed.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { newKey } from '../../helpers/caller.ts';
import { eventually } from '../../helpers/gateway-client.ts';
import { head, openRaw, readUntil } from '../../helpers/http-raw.ts';
import { LegacyClient, ModernClient, POST_HEADERS, requestText, textOf } from '../../helpers/mcp-client.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';
import { DOOR_ROWS, LEGACY_ROWS, MODERN_ROWS, type Row, type Victims } from './mcp-bad-input.ts';

const test = suite('journey: bad input at the MCP endpoint', { timeoutMs: 30_000 });

const slowSockets = 50;
const SIMPLE = 'This is a simple text response for testing.';

let harness: McpHarness;
let key: Readonly<Record<string, string>>;
const backends: EverythingHttp[] = [];
const victims = new Map<string, Victims>();
test.before(async () => {
  harness = await startGuarded();
  const { admin } = harness;
  key = (await newKey(admin, 'victim')).headers;
  const stranger = (await newKey(admin, 'stranger')).headers;
  for (const era of ['legacy', 'modern'] as const) {
    const backend = await startEverything({ era });
    backends.push(backend);
    await register(admin, era, [{ id: era, endpoint: backend.url }]);
    if (era === 'legacy') await register(admin, 'other', [{ id: 'other', endpoint: backend.url }]);
  }
  for (const era of ['legacy', 'modern']) {
    const path = `/mcp/${era}`;
    const legacy = await LegacyClient.open(harness.wire, path, { headers: key });
    victims.set(era, { legacy, modern: new ModernClient(harness.wire, path, { headers: key }), stranger });
  }
});
test.after(async () => {
  await harness.remove();
  for (const backend of backends) await backend.close();
});

for (const era of ['legacy', 'modern']) {
  for (const row of LEGACY_ROWS) testRow(row, `legacy client, ${era} backend`, era);
  for (const row of MODERN_ROWS) testRow(row, `modern client, ${era} backend`, era);

  test(`an id that is under way already: 400 -32600, ${era} backend`, async () => {
    const { legacy } = victimsOf(era);
    const first = legacy.call('test_tool_with_progress', {}, { id: 'twice' });
    const second = await legacy.send(requestText('twice', 'tools/list'));
    assert.equal([second.status, second.messages[0]?.error?.code], [400, -32600]);
    assert.is(second.messages[0]?.id, null, 'nobody may take it for the answer to the first');
    assert.is(textOf(await first), 'The work was done.');
  });

  test(`a second GET stream: 409, and the first goes on, ${era} backend`, async () => {
    const { legacy } = victimsOf(era);
    const first = await legacy.listen();
    const second = await legacy.wire.exchange(legacy.path, { method: 'GET', headers: legacy.headers });
    assert.equal([first.status, second.status, second.messages[0]?.error?.code], [200, 409, -32000]);
    // It may begin before the backend was asked for its news.
    const isTold = async () => {
      assert.is(textOf(await legacy.call('test_trigger_tool_change')), 'Announced.');
      await delay(100);
      return first.messages.some(({ method }) => method === 'notifications/tools/list_changed');
    };
    assert.ok(await eventually(isTold, Boolean));
    first.close();
  });
}

for (const row of DOOR_ROWS) testRow(row, 'at the door', 'legacy');

test('batches: those of 2025-03-26 are answered, within bounds', async () => {
  const params = {
    protocolVersion: '2025-03-26',
    capabilities: {},
    clientInfo: { name: 'old', version: '1' },
  };
  const path = '/mcp/legacy';
  const headers = { ...POST_HEADERS, ...key };
  const opened = await harness.wire.exchange(path, { headers, body: requestText(0, 'initialize', params) });
  assert.is(opened.messages[0]?.result?.protocolVersion, '2025-03-26');
  const session = { ...headers, 'Mcp-Session-Id': String(opened.headers['mcp-session-id']) };
  const batch = (size: number): string =>
    `[${Array.from({ length: size }, (_, id) => requestText(id, 'prompts/get', simplePrompt(id))).join()}]`;
  const answered = await harness.wire.exchange(path, { headers: session, body: batch(5) });
  assert.is(answered.status, 200);
  const byId = answered.messages.toSorted((one, other) => Number(one.id) - Number(other.id));
  for (const [id, message] of byId.entries()) {
    assert.is(message.id, id);
    assert.match(JSON.stringify(message.result), `arg1='text-${id}'`);
  }
  assert.is(byId.length, 5);
  const tooMany = await harness.wire.exchange(path, { headers: session, body: batch(101) });
  assert.equal([tooMany.status, tooMany.messages[0]?.error?.code], [400, -32600]);
  const twice = `[${requestText(1, 'tools/list')},${requestText(1, 'tools/list')}]`;
  assert.is((await harness.wire.exchange(path, { headers: session, body: twice })).status, 400);
  assert.is((await harness.wire.exchange(path, { headers: session, body: batch(1) })).status, 200);
});

test(`${slowSockets} bodies that never end hold nobody up`, async () => {
  const { legacy } = victimsOf('legacy');
  const port = Number(new URL(harness.url).port);
  const headers = { ...legacy.headers, 'Content-Length': '1000' };
  const sockets = await Promise.all(
    Array.from({ length: slowSockets }, async () => {
      const socket = await openRaw(port);
      socket.on('error', () => socket.destroy());
      socket.write(head(`POST ${legacy.path}`, headers));
      socket.write('{"jsonrpc"');
      return socket;
    }),
  );
  for (let round = 0; round < 5; round += 1) {
    for (const socket of sockets) socket.write(' ');
    await unharmed('legacy');
  }
  // One of them ends after all, and is served like any other.
  const [last] = sockets;
  const rest = `${requestText(1, 'ping').slice('{"jsonrpc"'.length)}`;
  last?.write(rest.padEnd(1_000 - '{"jsonrpc"'.length - 5));
  assert.match(await readUntil(last ?? (await openRaw(port)), '"result"'), ' 200 ');
  for (const socket of sockets) socket.destroy();
  await unharmed('legacy');
});

test.run();

function testRow({ name, status, code, send }: Row, where: string, era: string): void {
  test(`${where}: ${name}: ${status} ${code ?? ''}`, async () => {
    const received = await send(victimsOf(era));
    const [message] = received.messages;
    const found = [received.status, code === undefined && status !== 200 ? undefined : message?.error?.code];
    assert.equal(found, [status, code], received.text);
    if (status === 202) assert.is(received.text, '');
    if (status === 401) assert.match(String(received.headers['www-authenticate']), 'Bearer');
    if (where.startsWith('modern')) assert.is(received.headers['mcp-session-id'], undefined);
    await unharmed(era);
  });
}

/** The session that was there before still answers, and so does everybody else. */
async function unharmed(era: string): Promise<void> {
  const { legacy, modern } = victimsOf(era);
  for (const client of [legacy, modern]) {
    const outcome = await client.call('test_simple_text');
    assert.equal([outcome.status, textOf(outcome)], [200, SIMPLE]);
  }
}

function victimsOf(era: string): Victims {
  const found = victims.get(era);
  if (found === undefined) throw new Error(`nobody for ${era}`);
  return found;
}

function simplePrompt(id: number) {
  return { name: 'test_prompt_with_arguments', arguments: { arg1: `text-${id}`, arg2: 'x' } };
}
