// The session of an instance with its backend: handshake, requests, lists of tools, its end.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { notConnected } from '../../../src/domain/error-catalogue.ts';
import { asGatewayError } from '../../../src/domain/errors.ts';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from './instance-harness.ts';
import { SessionHarness, WITH_TOOLS } from './session-harness.ts';

const test = suite('session');

test('opens once, with the definition, and reports the peer', async () => {
  const harness = new SessionHarness();
  assert.equal(harness.told, []);
  await harness.open();
  assert.equal(harness.told, ['opened']);
  assert.is(harness.link.peer.serverName, 'scripted');
  assert.equal(harness.link.facts(), { pid: 4711, stderr: ['a line'], unmatchedMessages: 3 });
  assert.is(harness.opener.openings.length, 1);
});

test('carries a request, and its answer inside the emission of the transport', async () => {
  const harness = new SessionHarness();
  const transport = await harness.open();
  const { heard } = harness.ask();
  assert.equal(transport.asked, ['tools/call']);
  transport.last.notify('notifications/progress');
  assert.equal(heard, ['notification']);
  transport.last.result();
  assert.equal(heard, ['notification', 'result', 'completed']);
});

test('answers its callers, then reports the loss, then the end', async () => {
  const harness = new SessionHarness();
  const transport = await harness.open();
  transport.closesSlowly = true;
  const { heard } = harness.ask();
  transport.lose('exited with code 7');
  assert.equal(
    heard.map((end) => typeof end === 'object' && end.delivered),
    ['unknown'],
  );
  await settled();
  assert.equal(harness.told, ['opened', 'lost']);
  assert.is(transport.closings, 1);
  transport.finishClosing();
  await settled();
  assert.equal(harness.facts.slice(1), [
    { type: 'session.lost', reason: 'exited with code 7', stderr: ['a line'] },
    { type: 'session.closed', reason: 'exited with code 7', stderr: ['a line'] },
  ]);
});

test('ends dedicated conversations on command, and is closed when nothing is left', async () => {
  const harness = new SessionHarness();
  const transport = await harness.open();
  harness.end();
  await settled();
  assert.equal([harness.leases.ends, transport.isClosed, harness.told], [1, true, ['opened']]);
  harness.leases.gone();
  await settled();
  assert.equal(harness.told, ['opened', 'closed']);
});

test('does so while it is being opened, too', async () => {
  const harness = new SessionHarness();
  harness.end();
  await settled();
  assert.equal([harness.leases.ends, harness.told], [1, []]);
  harness.leases.gone();
  await settled();
  assert.equal(harness.told, ['closed']);
});

test('continues when a dedicated conversation ends, or cannot be opened', async () => {
  const harness = new SessionHarness();
  const transport = await harness.open();
  const open = () =>
    harness.link.openUpstream(
      { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} },
      new AbortController().signal,
    );
  const { heard } = harness.ask(await open());
  transport.upstreams[0]?.lose();
  transport.thrownByOpenUpstream = notConnected();
  assert.is(asGatewayError(await open().catch((thrown: unknown) => thrown)).code, 'BACKEND_UNAVAILABLE');
  await settled();
  assert.equal([heard.length, harness.told], [1, ['opened']]);
});

test('passes on the doubts of its transport until that has closed', async () => {
  const harness = new SessionHarness();
  const transport = await harness.open();
  transport.doubts$.next();
  transport.doubts$.next();
  assert.equal(harness.facts.slice(1), [{ type: 'suspected' }, { type: 'suspected' }]);
  harness.clock.nowMs = 10;
  transport.doubts$.next();
  assert.is(harness.link.lastMessageAtMs(), 0, 'a doubt is no sign of life');
  transport.lose();
  transport.doubts$.next();
  assert.is(harness.facts.filter(({ type }) => type === 'suspected').length, 3);
});

test('asks for the gateway itself, past notifications, and gives up after the time it was given', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const harness = new SessionHarness();
    const transport = await harness.open();
    const answered = harness.link.ask({ method: 'ping' }, 10_000);
    transport.last.notify('notifications/progress');
    transport.last.refuse(RPC.methodNotFound);
    assert.is((await answered).kind, 'error');
    const silent = harness.link.ask({ method: 'ping' }, 10_000).catch((thrown: unknown) => thrown);
    mock.timers.tick(9_999);
    assert.is(transport.last.isOpen, true);
    mock.timers.tick(1);
    assert.is(asGatewayError(await silent).code, 'BACKEND_TIMEOUT');
    assert.is(transport.last.isCancelled, true);
  } finally {
    mock.timers.reset();
  }
});

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

test('reports which list changed; only the tools are listed again', async () => {
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

test('reports the tools that are omitted from lists', async () => {
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
