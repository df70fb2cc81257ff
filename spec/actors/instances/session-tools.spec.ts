// What the session does with the lists of tools of its backend.
// What is known of the tools at which moment is in tool-cache.spec.ts.

import * as assert from 'uvu/assert';
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
