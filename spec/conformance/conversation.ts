// The conformance tests for dedicated conversations, run by the spec of each transport that has them. The backend
// behind `open` is of the legacy era and offers the tools of spec/fixtures/tools.ts.

import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../src/domain/calls/exchange-event.ts';
import type { JsonObject } from '../../src/domain/json/json.ts';
import type { ClientProfile, ServerRequest } from '../../src/domain/mcp/client.ts';
import type { Conversation, Transport } from '../../src/transports/transport.ts';
import { until } from '../helpers/eventually.ts';
import type { Suite } from '../helpers/suite.ts';
import type { TransportSubject } from './transport.ts';
import { callTool, checking, collect, failure, see, textOf } from './transport.ts';

/** A client that may be asked everything. */
export const everyCapability: ClientProfile = {
  protocolVersion: '2025-06-18',
  capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } },
  clientInfo: { name: 'editor', version: '7.0.0', title: 'An editor' },
};

/** A client that declares nothing. */
export const noCapability: ClientProfile = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'script', version: '1.0.0' },
};

/** Opens a conversation for a client. */
export async function openFor(
  transport: Transport,
  profile: ClientProfile = everyCapability,
): Promise<Conversation> {
  const conversation = await transport.openConversation({ profile, signal: new AbortController().signal });
  if (conversation === undefined) throw new Error('it has no dedicated conversations');
  return conversation;
}

/**
 * Declares the tests of one subject in the given suite. `areProcesses`: its conversations outlive the transport, and undeclared
 * requests of their backend reach the client.
 */
export function conversationConformance(test: Suite, subject: TransportSubject, areProcesses = false): void {
  const check = checking(test, subject);

  check('declares capabilities, name and revision of the client it is opened for', async (transport) => {
    const conversation = await openFor(transport);
    assert.is(conversation.handshake.era, 'legacy');
    assert.is(conversation.handshake.protocolVersion, '2025-06-18');
    assert.equal((await clientSide(conversation)).declared, { ...everyCapability });
    const own = (await clientSide(transport)).declared;
    assert.equal([own.capabilities, own.protocolVersion], [{}, '2025-11-25']);
  });

  check('asks for the newest legacy revision for a client of another era', async (transport) => {
    const conversation = await openFor(transport, {
      ...noCapability,
      protocolVersion: '2026-07-28',
      clientInfo: {},
    });
    const { declared } = await clientSide(conversation);
    assert.is(declared.protocolVersion, '2025-11-25');
    assert.equal(declared.clientInfo, (await clientSide(transport)).declared.clientInfo);
  });

  check(
    'brings a request of the server to the exchange, and the answer of the client back',
    async (transport) => {
      const conversation = await openFor(transport);
      const params = { message: 'Which one?', requestedSchema: { type: 'object', properties: {} } };
      const result = { action: 'accept', content: { which: 'this' } };
      const { asked, seen } = await answering(
        conversation,
        { method: 'elicitation/create', params },
        ({ answer }) => {
          answer({ result });
          answer({ result: 'said twice' });
        },
      );
      assert.equal(
        asked.map(({ method, params }) => ({ method, params })),
        [{ method: 'elicitation/create', params }],
      );
      assert.equal(JSON.parse(textOf(seen.at(-1))), { result });
    },
  );

  check('brings an error of the client back as well, also after many notifications', async (transport) => {
    const conversation = await openFor(transport);
    const error = { code: -1, message: 'User rejected sampling request' };
    const { seen } = await answering(conversation, { method: 'sampling/createMessage' }, ({ answer }) => {
      for (let count = 0; count < 100; count += 1) conversation.notify('notifications/progress', {});
      answer({ error });
    });
    assert.equal(JSON.parse(textOf(seen.at(-1))), { error });
  });

  check('answers ping itself, and refuses what the client did not declare', async (transport) => {
    for (const conversation of areProcesses
      ? [transport]
      : [transport, await openFor(transport, noCapability)]) {
      const { asked, seen } = await answering(conversation, { method: 'ping' }, () => undefined);
      assert.equal([asked, JSON.parse(textOf(seen.at(-1)))], [[], { result: {} }]);
      const refused = await answering(conversation, { method: 'roots/list' }, () => undefined);
      assert.is(refused.asked.length, 0);
      assert.is(JSON.parse(textOf(refused.seen.at(-1))).error.code, -32601);
    }
  });

  check('drops an answer that arrives after the end of the exchange', async (transport) => {
    const conversation = await openFor(transport);
    const kept: ServerRequest[] = [];
    await new Promise<void>((resolve) => {
      const subscription = conversation
        .exchange(callTool('ask', { method: 'roots/list' }))
        .subscribe((event) => {
          if (event.kind !== 'request') return;
          kept.push(event);
          queueMicrotask(() => subscription.unsubscribe());
          resolve();
        });
    });
    await until(async () => kept.length === 1, 'it was asked');
    kept[0]?.answer({ result: { roots: [] } });
    const { events } = await see(conversation.exchange(callTool('echo', { text: 'unharmed' })));
    assert.is(textOf(events[0]), 'unharmed');
  });

  check('never mixes up clients with the same ids and tokens', async (transport) => {
    const conversations = await Promise.all(Array.from({ length: 5 }, () => openFor(transport)));
    const all = await Promise.all(
      conversations.map(async (conversation, number) => {
        const { seen } = await answering(conversation, { method: 'roots/list' }, ({ answer }) =>
          answer({ result: number }),
        );
        const stepping = callTool('progress', { steps: number, ms: 1 }, { progressToken: 1 });
        const { events } = await see(conversation.exchange(stepping));
        return [JSON.parse(textOf(seen.at(-1))).result, events.length - 1];
      }),
    );
    assert.equal(
      all,
      conversations.map((_, number) => [number, number]),
    );
  });

  check('keeps the state of one client away from another', async (transport) => {
    const [one, other] = await Promise.all([openFor(transport), openFor(transport, noCapability)]);
    one.notify('notifications/roots/list_changed', {});
    await until(
      async () => (await clientSide(one)).received.includes('notifications/roots/list_changed'),
      'it received the notification',
    );
    assert.not.ok((await clientSide(other)).received.includes('notifications/roots/list_changed'));
    assert.equal((await clientSide(other)).declared, { ...noCapability });
  });

  check('emits a notification once, in the exchange or in messages$', async (transport) => {
    const conversation = await openFor(transport);
    const method = 'notifications/resources/updated';
    const params = { uri: 'test://one' };
    const saw: (ExchangeEvent | { kind: string })[] = [];
    const subscription = conversation.messages$.subscribe((message) => saw.push(message));
    const { events } = await see(conversation.exchange(callTool('notify', { method, params })));
    saw.push(...events.slice(0, -1));
    await until(() => saw.length === 1, 'it arrived');
    assert.equal(saw, [{ kind: 'notification', method, params }]);
    subscription.unsubscribe();
  });

  check('closing one conversation does not affect others', async (transport) => {
    const [one, other] = await Promise.all([openFor(transport), openFor(transport)]);
    const left = see(one.exchange(callTool('sleep', { ms: 60_000 })));
    await see(one.exchange(callTool('echo', { text: 'the other one has been sent by now' })));
    const [closed] = await Promise.all([collect(one.closed$), one.close(), one.close()]);
    assert.equal(closed, [{ reason: 'closed by the gateway', isExpected: true }]);
    assert.equal(await collect(one.closed$), closed);
    assert.equal(failure((await left).end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
    const late = await see(one.exchange(callTool('echo', { text: 'late' })));
    assert.equal(failure(late.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    for (const conversation of [other, transport]) {
      const { events } = await see(conversation.exchange(callTool('echo', { text: 'still here' })));
      assert.is(textOf(events[0]), 'still here');
    }
  });

  check('ends with the transport, or is independent', async (transport) => {
    const [one, other] = await Promise.all([openFor(transport), openFor(transport)]);
    assert.is(one.isIndependent === true, areProcesses);
    if (areProcesses) return;
    let completed = 0;
    for (const { messages$ } of [one, other]) messages$.subscribe({ complete: () => (completed += 1) });
    const left = see(one.exchange(callTool('sleep', { ms: 60_000 })));
    await see(one.exchange(callTool('echo', { text: 'the other one has been sent by now' })));
    const all = Promise.all([collect(one.closed$), collect(other.closed$)]);
    await transport.close();
    assert.equal((await all).flat().length, 2);
    assert.is(completed, 2);
    assert.is(failure((await left).end)?.code, 'BACKEND_UNAVAILABLE');
    const opening = await openFor(transport).then(
      () => 'opened',
      ({ code, delivered }) => ({ code, delivered }),
    );
    assert.equal(opening, { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  });

  check('opens nothing when the opening was already aborted', async (transport) => {
    const opening = transport.openConversation({ profile: everyCapability, signal: AbortSignal.abort() });
    const outcome = await opening.then(
      () => 'opened',
      ({ code, delivered }) => ({ code, delivered }),
    );
    assert.equal(outcome, { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  });
}

/** What the backend knows about the client of a conversation. */
export async function clientSide(
  conversation: Conversation,
): Promise<{ declared: JsonObject; received: readonly string[] }> {
  const { events } = await see(conversation.exchange(callTool('client', {})));
  return JSON.parse(textOf(events[0]));
}

/** Lets the backend ask its client, and answers each request with `answer`. */
export async function answering(
  conversation: Conversation,
  question: { readonly method: string; readonly params?: JsonObject },
  answer: (request: ServerRequest) => void,
): Promise<{ readonly asked: readonly ServerRequest[]; readonly seen: readonly ExchangeEvent[] }> {
  const asked: ServerRequest[] = [];
  const seen: ExchangeEvent[] = [];
  await new Promise<void>((resolve, reject) => {
    conversation.exchange(callTool('ask', { ...question })).subscribe({
      next: (event) => {
        seen.push(event);
        if (event.kind !== 'request') return;
        asked.push(event);
        answer(event);
      },
      error: reject,
      complete: resolve,
    });
  });
  return { asked, seen };
}
