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
  const stage = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) =>
    exchange.result({ tools: [{ name: `tool ${transport.asked.length}` }, { name: 7 }, 'x'] });
  await stage.open(transport);
  assert.is(stage.link.tools.knows('tool 1'), 'yes');
  stage.clock.nowMs = LIMITS.toolListAgeMs;
  transport.tell('notifications/tools/list_changed');
  await settled();
  assert.equal([stage.link.tools.knows('tool 1'), stage.link.tools.knows('tool 2')], ['no', 'yes']);
  assert.equal(stage.facts.at(-1), { type: 'list.changed', list: 'tools' });
});

test('does not ask a server for tools that offers none, but a bare one', async () => {
  for (const [peer, asked] of [
    [{ era: 'legacy' }, []],
    [{ era: 'modern' }, []],
    [{ era: 'bare' }, ['tools/list']],
  ] as const) {
    const stage = new SessionHarness();
    const transport = await stage.open(new ScriptedTransport(peer));
    assert.equal(transport.asked, asked);
    transport.lose();
  }
});

test('knows no tools of a server that refuses to list them', async () => {
  const stage = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) => exchange.refuse(RPC.internalError);
  await stage.open(transport);
  assert.is(stage.link.tools.knows('a'), 'unknown');
});

test('is not kept busy by a server that says after every list that it changed', async () => {
  const stage = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) => exchange.result({ tools: [] });
  await stage.open(transport);
  for (let turn = 0; turn < 100; turn += 1) {
    transport.tell('notifications/tools/list_changed');
    await settled();
  }
  assert.equal(transport.asked, ['tools/list']);
  stage.clock.nowMs = LIMITS.toolListAgeMs;
  transport.tell('notifications/tools/list_changed');
  await settled();
  assert.is(transport.asked.length, 2);
});

test('tells which list changed; only that of the tools is listed again', async () => {
  const stage = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  transport.onExchange = (exchange) => exchange.result({ tools: [] });
  await stage.open(transport);
  stage.clock.nowMs = LIMITS.toolListAgeMs;
  for (const list of ['prompts', 'resources', 'roots']) transport.tell(`notifications/${list}/list_changed`);
  await settled();
  assert.equal(stage.facts.slice(1), [
    { type: 'list.changed', list: 'prompts' },
    { type: 'list.changed', list: 'resources' },
  ]);
  assert.equal(transport.asked, ['tools/list']);
});

test('tells which tools lists come without, as long as it lasts', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const omitted = { tool: 'x', reason: 'it is bad' };
  transport.omitted$.next(omitted);
  assert.equal(stage.facts.at(-1), { type: 'tool.omitted', ...omitted });
  stage.close();
  await settled();
  transport.omitted$.next(omitted);
  assert.is(stage.told.at(-1), 'closed');
});

test('tells that the tools changed when it finds out by itself', async () => {
  const stage = new SessionHarness();
  const transport = new ScriptedTransport(WITH_TOOLS);
  let header = 'Old';
  transport.onExchange = (exchange) => {
    const inputSchema = { properties: { x: { type: 'string', 'x-mcp-header': header } } };
    exchange.result({ tools: [{ name: 'a', inputSchema }] });
  };
  await stage.open(transport);
  await stage.link.tools.refresh();
  assert.is(stage.told.at(-1), 'opened');
  header = 'New';
  await stage.link.tools.refresh();
  assert.equal(stage.facts.at(-1), { type: 'list.changed', list: 'tools' });
  assert.is(stage.link.tools.knows('a'), 'yes');
});

test('subscribes to changes at a modern backend, and is not hurt when that fails', async () => {
  const stage = new SessionHarness();
  const transport = new ScriptedTransport({
    era: 'modern',
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true } },
  });
  transport.onExchange = ({ request: { method } }) => {
    if (method === 'tools/list') transport.last.result({ tools: [{ name: 'a' }] });
  };
  await stage.open(transport);
  assert.equal(transport.asked, ['tools/list', 'subscriptions/listen']);
  const listening = transport.last;
  stage.clock.nowMs = LIMITS.toolListAgeMs;
  listening.notify('notifications/prompts/list_changed');
  listening.notify('notifications/tools/list_changed');
  await settled();
  assert.equal(stage.facts.slice(1), [
    { type: 'list.changed', list: 'prompts' },
    { type: 'list.changed', list: 'tools' },
  ]);
  assert.equal(transport.asked.slice(2), ['tools/list']);
  listening.fail(new Error('the stream broke'));
  await settled();
  assert.equal(stage.told.slice(3), []);
  assert.equal(stage.ask().heard, []);
  stage.close();
  await settled();
  assert.is(stage.told.at(-1), 'closed');
});

test.run();
