// The server that has everything, on the official SDK, in both eras: what it asks, interrupts, mirrors and announces.

import * as assert from 'uvu/assert';
import type { ClientReply } from '../../../src/domain/client.ts';
import { type ExchangeEvent, type ExchangeRequest, isFinal } from '../../../src/domain/exchange.ts';
import { http } from '../../../src/transports/http/http.ts';
import type { Transport, Upstream } from '../../../src/transports/transport.ts';
import { callTool, see, textOf, until } from '../../conformance/transport.ts';
import { openFor } from '../../conformance/upstream.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition, openOptions } from '../../transports/http/open-http.ts';

const test = suite('everything over http', { timeoutMs: 20_000 });

async function withEverything(
  era: 'legacy' | 'modern',
  body: (transport: Transport) => Promise<void>,
): Promise<void> {
  const server = await startEverything({ era });
  try {
    const transport = await http.open(httpDefinition(server.url), openOptions());
    try {
      assert.is(transport.peer.era, era);
      await body(transport);
    } finally {
      await transport.close();
    }
  } finally {
    await server.close();
  }
}

/** Everything an exchange says, while its client answers what it is asked. */
function converse(
  upstream: Upstream,
  request: ExchangeRequest,
  reply: ClientReply,
): Promise<ExchangeEvent[]> {
  return new Promise((resolve, reject) => {
    const seen: ExchangeEvent[] = [];
    upstream.exchange(request).subscribe({
      next: (event) => {
        seen.push(event);
        if (event.kind === 'request') event.answer(reply);
      },
      error: reject,
      complete: () => resolve(seen),
    });
  });
}

const kindsOf = (events: readonly ExchangeEvent[]) => events.map(({ kind }) => kind);

test('a legacy client is asked for samples and for contacts', async () => {
  await withEverything('legacy', async (transport) => {
    const upstream = await openFor(transport);
    assert.is(upstream.peer.protocolVersion, '2025-06-18');
    const sample = { role: 'assistant', model: 'm', content: { type: 'text', text: 'four' } };
    const sampling = await converse(upstream, callTool('test_sampling', { prompt: '2+2' }), {
      result: sample,
    });
    assert.equal(kindsOf(sampling), ['request', 'result']);
    assert.match(textOf(sampling[1]), 'LLM response: four');
    const declined = { result: { action: 'decline' } };
    const eliciting = await converse(upstream, callTool('test_elicitation', { message: 'Who?' }), declined);
    assert.match(textOf(eliciting.at(-1)), 'decline');
    const streaming = callTool('test_streaming_elicitation', {}, { progressToken: 'mine' });
    const steps = await converse(upstream, streaming, declined);
    assert.equal(kindsOf(steps).slice(0, 2), ['notification', 'request']);
    assert.is(kindsOf(steps).at(-1), 'result');
  });
});

test('a call whose stream the server closes is polled for', async () => {
  await withEverything('legacy', async (transport) => {
    const polled = await openFor(transport, {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'patient', version: '1' },
    });
    for (const conversation of [transport, polled]) {
      const { events, end } = await see(conversation.exchange(callTool('test_reconnection', {})));
      assert.is(end, 'completed');
      assert.equal(kindsOf(events), ['interrupted', 'result']);
      assert.is(textOf(events.at(-1)), 'You came back, or the stream was never closed.');
    }
  });
});

test('what changes is told to the clients who listen', async () => {
  await withEverything('legacy', async (transport) => {
    const [one, other] = await Promise.all([openFor(transport), openFor(transport)]);
    const heard: string[][] = [[], []];
    const subscriptions = [one, other].map(({ messages$ }, number) =>
      messages$.subscribe(({ method }) => heard[number]?.push(method)),
    );
    await until(async () => {
      await see(one.exchange(callTool('test_trigger_tool_change', {})));
      return heard.every((methods) => methods.includes('notifications/tools/list_changed'));
    }, 'both heard of it');
    for (const subscription of subscriptions) subscription.unsubscribe();
  });
});

test('a modern client mirrors parameters, and hears of changes on its subscription', async () => {
  await withEverything('modern', async (transport) => {
    const call = {
      ...callTool('test_x_mcp_header', { region: 'eu' }),
      headers: { 'mcp-param-region': 'eu' },
    };
    assert.is(textOf((await see(transport.exchange(call))).events[0]), 'Region: eu');
    const heard: string[] = [];
    const listen = { method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } };
    const subscription = transport.exchange(listen).subscribe((event) => {
      if (!isFinal(event) && event.kind === 'notification') heard.push(event.method);
    });
    await until(() => heard.length === 1, 'it is acknowledged');
    await see(transport.exchange(callTool('test_trigger_tool_change', {})));
    await until(() => heard.length === 2, 'it heard of the change');
    assert.equal(heard, ['notifications/subscriptions/acknowledged', 'notifications/tools/list_changed']);
    subscription.unsubscribe();
  });
});

test.run();
