// What the session does with the lists of tools of its backend.
// What is known of the tools at which moment is in tool-cache.spec.ts.

import * as assert from 'uvu/assert';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from './instance-harness.ts';
import { SessionHarness, WITH_TOOLS } from './session-harness.ts';

const test = suite('session, tools');

test('lists the tools behind the handshake, and again when they changed', async () => {
  const harness = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) =>
    exchange.result({ tools: [{ name: `tool ${transport.asked.length}` }, { name: 7 }, 'x'] });
  await harness.open(transport);
  assert.is(harness.link.tools.knows('tool 1'), 'yes');
  harness.clock.nowMs = LIMITS.toolListAgeMs;
  transport.tell('notifications/tools/list_changed');
  await settled();
  assert.equal([harness.link.tools.knows('tool 1'), harness.link.tools.knows('tool 2')], ['no', 'yes']);
  assert.equal(harness.facts.at(-1), { type: 'list.changed', list: 'tools' });
});

test('does not ask a server for tools that offers none, but a bare one', async () => {
  for (const [peer, asked] of [
    [{ era: 'legacy' }, []],
    [{ era: 'modern' }, []],
    [{ era: 'bare' }, ['tools/list']],
  ] as const) {
    const harness = new SessionHarness();
    const transport = await harness.open(new ScriptedTransport(peer));
    assert.equal(transport.asked, asked);
    transport.lose();
  }
});

test('knows no tools of a server that refuses to list them', async () => {
  const harness = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) => exchange.refuse(RPC.internalError);
  await harness.open(transport);
  assert.is(harness.link.tools.knows('a'), 'unknown');
});

test('is not kept busy by a server that says after every list that it changed', async () => {
  const harness = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) => exchange.result({ tools: [] });
  await harness.open(transport);
  for (let turn = 0; turn < 100; turn += 1) {
    transport.tell('notifications/tools/list_changed');
    await settled();
  }
  assert.equal(transport.asked, ['tools/list']);
  harness.clock.nowMs = LIMITS.toolListAgeMs;
  transport.tell('notifications/tools/list_changed');
  await settled();
  assert.is(transport.asked.length, 2);
});

test('tells which list changed; only that of the tools is listed again', async () => {
  const harness = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) => exchange.result({ tools: [] });
  await harness.open(transport);
  harness.clock.nowMs = LIMITS.toolListAgeMs;
  for (const list of ['prompts', 'resources', 'roots']) transport.tell(`notifications/${list}/list_changed`);
  await settled();
  assert.equal(harness.facts.slice(1), [
    { type: 'list.changed', list: 'prompts' },
    { type: 'list.changed', list: 'resources' },
  ]);
  assert.equal(transport.asked, ['tools/list']);
});

test('tells which tools lists come without, as long as it lasts', async () => {
  const harness = new SessionHarness();
  const transport = await harness.open();
  const omitted = { tool: 'x', reason: 'it is bad' };
  transport.omitted$.next(omitted);
  assert.equal(harness.facts.at(-1), { type: 'tool.omitted', ...omitted });
  harness.close();
  await settled();
  transport.omitted$.next(omitted);
  assert.is(harness.told.at(-1), 'closed');
});

test('tells that the tools changed when it finds out by itself', async () => {
  const harness = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  let header = 'Old';
  transport.onExchange = (exchange) => {
    const inputSchema = { properties: { x: { type: 'string', 'x-mcp-header': header } } };
    exchange.result({ tools: [{ name: 'a', inputSchema }] });
  };
  await harness.open(transport);
  await harness.link.tools.refresh();
  assert.is(harness.told.at(-1), 'opened');
  header = 'New';
  await harness.link.tools.refresh();
  assert.equal(harness.facts.at(-1), { type: 'list.changed', list: 'tools' });
  assert.is(harness.link.tools.knows('a'), 'yes');
});

test('subscribes to changes at a modern backend, and is not hurt when that fails', async () => {
  const harness = new SessionHarness();
  const transport = new ScriptedTransport({
    era: 'modern',
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true } },
  });
  transport.onExchange = ({ request: { method } }) => {
    if (method === 'tools/list') transport.last.result({ tools: [{ name: 'a' }] });
  };
  await harness.open(transport);
  assert.equal(transport.asked, ['tools/list', 'subscriptions/listen']);
  const listening = transport.last;
  harness.clock.nowMs = LIMITS.toolListAgeMs;
  listening.notify('notifications/prompts/list_changed');
  listening.notify('notifications/tools/list_changed');
  await settled();
  assert.equal(harness.facts.slice(1), [
    { type: 'list.changed', list: 'prompts' },
    { type: 'list.changed', list: 'tools' },
  ]);
  assert.equal(transport.asked.slice(2), ['tools/list']);
  listening.fail(new Error('the stream broke'));
  await settled();
  assert.equal(harness.told.slice(3), []);
  assert.equal(harness.ask().heard, []);
  harness.close();
  await settled();
  assert.is(harness.told.at(-1), 'closed');
});

test.run();
