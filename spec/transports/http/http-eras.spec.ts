// Eras of HTTP backends: subscriptions of the modern era, whose answer lasts; conversations of legacy clients, which a backend of
// both eras has beside the modern one of the transport; and what counts as a refusal of such a conversation.

import type { RequestListener, ServerResponse } from 'node:http';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../../src/domain/calls/exchange-event.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { gatewayExchange } from '../../../src/transports/gateway-requests.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import {
  answering,
  clientSide,
  everyCapability,
  noCapability,
  openFor,
} from '../../conformance/conversation.ts';
import { callTool, failure, see, textOf } from '../../conformance/transport.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import {
  type Answer,
  type Asked,
  cut,
  discovered,
  initialized,
  refused,
  result,
  SESSION,
  serving,
  status,
} from '../scripted-server.ts';
import { withBackend, withRawTransport } from './open-http.ts';

const test = suite('http eras', { timeoutMs: 20_000 });

const opening = (transport: Transport) =>
  transport.openConversation({ profile: noCapability, signal: new AbortController().signal });

test('a backend of both eras keeps a session for each legacy client, in the legacy era', async () => {
  await withBackend({ era: 'dual', answers: 'sse' }, async ({ transport, server }) => {
    assert.is(transport.handshake.era, 'modern');
    const [one, other] = [await openFor(transport), await openFor(transport, noCapability)];
    const found = [one.handshake.era, one.handshake.protocolVersion, other.handshake.protocolVersion];
    assert.equal(found, ['legacy', '2025-06-18', '2025-11-25']);
    assert.is(server.sessions.size, 2);
    assert.equal((await clientSide(one)).declared, { ...everyCapability });
    assert.equal((await clientSide(other)).declared.capabilities, {});
    const { asked } = await answering(one, { method: 'sampling/createMessage', params: {} }, ({ answer }) =>
      answer({ result: {} }),
    );
    assert.is(asked.length, 1);
    assert.is(textOf((await see(transport.exchange(callTool('echo', { text: 'x' })))).events[0]), 'x');
    assert.is(server.requests.at(-1)?.headers['mcp-protocol-version'], '2026-07-28');
    await other.close();
    assert.is(server.sessions.size, 1);
  });
});

test('a refusal of initialize in plain text that names a revision, or is about it, gets another offer', async () => {
  for (const words of ['I speak 2025-06-18 only', '{"error":"Unsupported protocol version"}']) {
    const asked: string[] = [];
    const initialize: Answer = (response, { params, ...rest }) => {
      const { protocolVersion } = params ?? {};
      if (protocolVersion === '2025-06-18') result({ protocolVersion, capabilities: {} })(response, rest);
      else response.writeHead(400, { 'content-type': 'text/plain' }).end(words);
    };
    await withRawTransport(serving({ initialize }, asked), async ({ handshake }) => {
      assert.equal([handshake.era, handshake.protocolVersion], ['legacy', '2025-06-18']);
    });
    assert.is(asked.filter((method) => method === 'initialize').length, 2, words);
  }
});

test('a bare backend is not asked for dedicated conversations', () =>
  withBackend({ era: 'bare' }, async ({ transport, server }) => {
    const before = server.count('initialize');
    assert.equal([await opening(transport), server.count('initialize')], [undefined, before]);
  }));

test('a backend that leaves the legacy era loses its sessions of that era, and is suspected', async () => {
  const answers: Record<string, Answer> = { initialize: initialized, 'tools/call': refused(500, -32022) };
  await withRawTransport(serving(answers), async (transport) => {
    const conversation = await openFor(transport);
    const closed = firstValueFrom(conversation.closed$);
    const call = () => see(conversation.exchange(callTool('echo', { text: 'x' })));
    assert.is((await call()).events[0]?.kind, 'error', 'of a tool: the status is not that of the protocol');
    answers['tools/call'] = refused(400, -32022);
    const { end } = await call();
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    assert.equal(await closed, { reason: 'it forgot the session', isExpected: false });
    answers.initialize = refused(400, -32022);
    const refusal = await opening(transport).catch((thrown: unknown) => thrown);
    assert.is(refusal instanceof GatewayError && refusal.facts.health, 'suspicious');
  });
});

const legacyOnly = {
  initialize: result({ protocolVersion: '2025-11-25', capabilities: {} }, SESSION),
  otherwise: refused(400, -32000, null),
};
const modernOnly = { 'server/discover': discovered, otherwise: refused(400, -32022) };
for (const [then, before, now, after] of [
  ['legacy', legacyOnly, 'modern', modernOnly],
  ['modern', modernOnly, 'legacy', legacyOnly],
] as const) {
  test(`a backend of the ${then} era that speaks the ${now} one has to be opened again`, async () => {
    let serve = serving(before);
    const listener: RequestListener = (...exchange) => serve(...exchange);
    await withRawTransport(listener, async (transport) => {
      const closed = firstValueFrom(transport.closed$);
      const asked: string[] = [];
      serve = serving(after, asked);
      const { end } = await see(transport.exchange({ method: 'ping' }));
      assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
      const reason = `it now speaks the ${now} era, and spoke the ${then} era before`;
      assert.equal(await closed, { reason, isExpected: false });
      assert.is(asked.at(-1), 'DELETE', 'no session is left');
    });
  });
}

test('a backend that refuses the handshakes of clients is opened again if it has left the legacy era, else kept', async () => {
  const asked: string[] = [];
  const answers: Record<string, Answer> = { ...legacyOnly, otherwise: result({}) };
  await withRawTransport(serving(answers, asked), async (transport) => {
    let initializes = 0;
    answers.initialize = (...answer) => {
      initializes += 1;
      (initializes === 1 ? refused(400, -32000) : legacyOnly.initialize)(...answer);
    };
    await opening(transport).catch(() => undefined);
    await until(() => asked.at(-1) === 'DELETE');
    const closed = firstValueFrom(transport.closed$);
    answers.initialize = refused(400, -32601);
    answers['server/discover'] = discovered;
    await opening(transport).catch(() => undefined);
    const reason = 'it now speaks the modern era, and spoke the legacy era before';
    assert.equal(await closed, { reason, isExpected: false });
  });
});

test('a modern backend is asked for its era once if it refuses a call before any work', async () => {
  for (const [answer, times] of [
    [refused(400, -32000, null), 2],
    [refused(400, -32000), 1],
    [refused(400, -32603, null), 1],
  ] as const) {
    const asked: string[] = [];
    await withRawTransport(serving({ ...modernOnly, otherwise: answer }, asked), async (transport) => {
      await see(gatewayExchange(transport, callTool('echo', {})));
      const once = ['server/discover', 'tools/call'];
      assert.equal(asked, times === 1 ? once : [...once, ...once]);
    });
  }
});

test('a 404 with an error about this call is its answer: no other session, and no repeat', async () => {
  for (const [code, calls] of [
    [-32603, 1],
    [-32001, 2],
  ] as const) {
    const asked: string[] = [];
    const answers = { ...legacyOnly, 'tools/call': refused(404, code) };
    await withRawTransport(serving(answers, asked), async (transport) => {
      const { end, events } = await see(gatewayExchange(transport, callTool('echo', {})));
      assert.equal([end, events[0]?.kind], ['completed', 'error']);
      assert.is(asked.filter((method) => method === 'tools/call').length, calls);
    });
  }
});

test('an error about a call does not end a conversation that has no session', async () => {
  const answers: Record<string, Answer> = { initialize: initialized, 'tools/call': refused(400, -32000) };
  await withRawTransport(serving(answers), async (transport) => {
    const conversation = await openFor(transport);
    for (let index = 0; index < 2; index += 1)
      assert.is((await see(conversation.exchange(callTool('echo', {})))).events[0]?.kind, 'error');
  });
});

// --- what counts as a refusal ----------------------------------------------------------------------------------------

/** Opens three times at a modern server that answers `initialize` so; the outcomes, and how often it was asked. */
async function openThrice(answer: Answer) {
  const outcomes: string[] = [];
  const asked: string[] = [];
  const answers = { initialize: answer, DELETE: status(200), otherwise: discovered };
  await withRawTransport(serving(answers, asked), async (transport) => {
    for (let index = 0; index < 3; index += 1) {
      const outcome = await opening(transport).catch((thrown: unknown) => thrown);
      const isError = outcome instanceof GatewayError;
      outcomes.push(isError ? `${outcome.code} ${outcome.delivered}` : typeof outcome);
    }
  });
  return { outcomes, times: asked.filter((method) => method === 'initialize').length };
}

for (const [name, answer] of Object.entries<Answer>({
  'an unsupported version': refused(400, -32022),
  'an error in a success': refused(200, -32603),
  'a status': status(405),
  'a page in a success': status(200, '<h1>Welcome</h1>'),
  'a modern revision': result({ protocolVersion: '2026-07-28', capabilities: {} }, SESSION),
})) {
  test(`${name} instead of a handshake is a refusal, and remembered`, async () => {
    const outcomes = ['undefined', 'undefined', 'undefined'];
    assert.equal(await openThrice(answer), { outcomes, times: 1 });
  });
}

for (const [name, answer] of Object.entries<Answer>({
  'a fault': status(500),
  'a proxy in trouble': status(503),
  'a broken connection': cut,
})) {
  test(`${name} instead of a handshake is a failure, and it is asked again`, async () => {
    const failure = 'BACKEND_UNAVAILABLE no';
    assert.equal(await openThrice(answer), { outcomes: [failure, failure, failure], times: 3 });
  });
}

/** A modern server that leaves subscriptions open. */
async function listening(
  body: (backend: {
    transport: Transport;
    streams: ServerResponse[];
    sent: Omit<Asked, 'request'>[];
  }) => Promise<void>,
): Promise<void> {
  const streams: ServerResponse[] = [];
  const sent: Omit<Asked, 'request'>[] = [];
  const listen: Answer = (response, { request: _, ...message }) => {
    sent.push(message);
    streams.push(response.writeHead(200, { 'content-type': 'text/event-stream' }));
    response.flushHeaders();
  };
  await withRawTransport(serving({ 'subscriptions/listen': listen, otherwise: discovered }), (transport) =>
    body({ transport, streams, sent }),
  );
}

const listen = { method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } };

test('all messages on the stream of a subscription go to the subscription, unchanged', async () => {
  await listening(async ({ transport, streams, sent }) => {
    const events: ExchangeEvent[] = [];
    const elsewhere: unknown[] = [];
    transport.messages$.subscribe((message) => elsewhere.push(message));
    let ended = false;
    transport
      .exchange(listen)
      .subscribe({ next: (event) => events.push(event), complete: () => (ended = true) });
    await until(() => streams.length === 1, 'it listens');
    const id = sent[0]?.id;
    const params = { _meta: { 'io.modelcontextprotocol/subscriptionId': String(id) }, uri: 'test://one' };
    const methods = [
      'notifications/subscriptions/acknowledged',
      'notifications/tools/list_changed',
      'notifications/resources/updated',
    ];
    for (const method of methods) {
      streams[0]?.write(`: alive\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`);
    }
    await until(() => events.length === 3, 'they arrived');
    assert.equal(
      events,
      methods.map((method) => ({ kind: 'notification', method, params })),
    );
    assert.equal([elsewhere, ended], [[], false]);
    streams[0]?.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n\n`);
    await until(() => ended, 'it is over');
  });
});

test('a subscription is cancelled by closing its stream', async () => {
  await listening(async ({ transport, streams }) => {
    const subscriptions = Array.from({ length: 20 }, () => transport.exchange(listen).subscribe());
    await until(() => streams.length === 20, 'all listen');
    for (const subscription of subscriptions) subscription.unsubscribe();
    await until(() => streams.every(({ destroyed }) => destroyed), 'the streams are closed');
  });
});

test.run();
