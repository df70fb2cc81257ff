// Dedicated conversations with programs: what is declared in them, what their programs may ask, and that
// nothing is left of them.

import { readFileSync } from 'node:fs';
import { lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { ClientProfile, ServerMessage } from '../../../src/domain/mcp/client.ts';
import type { Conversation, Transport } from '../../../src/transports/transport.ts';
import { conversationConformance, noCapability, openFor } from '../../conformance/conversation.ts';
import { callTool, failure, see, textOf } from '../../conformance/transport.ts';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { until } from '../../helpers/eventually.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, openReleasable, scripted, withStdio } from './open-stdio.ts';

const test = suite('stdio conversation', { timeoutMs: 30_000 });
const linux = test.needs(process.platform === 'linux', 'children are found through /proc, which is Linux');

const PROFILE: ClientProfile = {
  protocolVersion: '2025-06-18',
  capabilities: { elicitation: {}, roots: { listChanged: true } },
  clientInfo: { name: 'a-client', version: '7' },
};

const subject = { name: 'stdio', open: () => openReleasable(fixture()) };
conversationConformance(test, subject, true);

test('each conversation is a separate process', () =>
  withStdio(fixture(), async (transport) => {
    const [one, two] = [await open(transport), await open(transport)];
    const pids = await Promise.all(
      [transport, one, two].map((conversation) => answerTo(conversation, 'pid')),
    );
    assert.is(new Set(pids).size, 3);
    const reported = [transport.diagnostics().pid, one.pid, two.pid];
    assert.equal(reported.map(String), pids);
    assert.is(transport.pid, undefined);
  }));

test('a program that several clients share is opened with their declarations, and may ask nothing', () =>
  withStdio(fixture(), async (transport) => {
    const capabilities = { extensions: { 'com.example/a': {} } };
    const profile = { ...PROFILE, capabilities };
    const conversation = await transport.openConversation({
      profile,
      signal: new AbortController().signal,
      ownerId: 'ann',
      isShared: true,
    });
    assert.ok(conversation);
    assert.equal(JSON.parse(await answerTo(conversation, 'client')).declared.capabilities, capabilities);
    const asked = await see(conversation.exchange(ask('roots/list', {})));
    const found = JSON.parse(textOf(asked.events.at(-1)));
    assert.equal([asked.events.map(({ kind }) => kind), found.error.code], [['result'], -32601]);
    await transport.close();
    assert.is(await answerTo(conversation, 'pid'), String(conversation.pid));
  }));

test('messages$ emits questions and log lines when several exchanges are under way', () =>
  withStdio(fixture(), async (transport) => {
    const conversation = await open(transport);
    const messages: ServerMessage[] = [];
    conversation.messages$.subscribe((message) => {
      messages.push(message);
      if (message.kind === 'request') message.answer({ result: { roots: [] } });
    });
    const other = conversation.exchange(callTool('sleep', { ms: 60_000 })).subscribe();
    const asked = await see(conversation.exchange(ask('roots/list', {})));
    const logged = await see(conversation.exchange(callTool('log', { text: 'note' })));
    const found = [asked, logged].map(({ events }) => events.map(({ kind }) => kind));
    assert.equal(found, [['result'], ['result']]);
    assert.equal(JSON.parse(textOf(asked.events[0])), { result: { roots: [] } });
    const kinds = messages.map(({ kind, method }) => `${kind} ${method}`);
    assert.equal(kinds, ['request roots/list', 'notification notifications/message']);
    other.unsubscribe();
  }));

test('passes on a question that the server asks right after the handshake', () =>
  withStdio(
    scripted(
      '',
      `process.stdin.on('data', (data) => {
        if (String(data).includes('notifications/initialized')) say({ jsonrpc: '2.0', id: 1, method: 'roots/list' });
      });`,
    ),
    async (transport) => {
      const conversation = await open(transport);
      const messages: ServerMessage[] = [];
      conversation.messages$.subscribe((message) => messages.push(message));
      await until(() => messages.length > 0, 'the server asked');
      const found = messages.map(({ method }) => method);
      assert.equal(found, ['roots/list']);
    },
  ));

linux('keeps one warm process for the next client, once there was a first', () =>
  withStdio(fixture(), async (transport) => {
    const first = Number(await answerTo(await open(transport), 'pid'));
    let waiting: readonly number[] = [];
    await until(() => {
      waiting = children().filter((pid) => pid !== first && pid !== transport.diagnostics().pid);
      return waiting.length > 0;
    }, 'another process is started');
    assert.equal([Number(await answerTo(await open(transport), 'pid'))], waiting);
  }),
);

test('a conversation continues when the shared process ends, after which no other can be opened', () =>
  withStdio(fixture(), async (transport) => {
    const [one, two] = [await open(transport), await open(transport)];
    assert.equal([transport.isIndependent, one.isIndependent], [false, true]);
    const shared = Number(await answerTo(transport, 'pid'));
    const left = see(one.exchange(callTool('sleep', { ms: 300 })));
    process.kill(shared, 'SIGKILL');
    await lastValueFrom(transport.closed$);
    await transport.close();
    assert.is((await left).end, 'completed', 'what was under way');
    assert.equal(await Promise.all([one, two].map((conversation) => answerTo(conversation, 'count'))), [
      '1',
      '1',
    ]);
    assert.is(await codeOf(open(transport)), 'BACKEND_UNAVAILABLE', 'no other is started');
    await Promise.all([one.close(), two.close()]);
    const found = [one, two].map(({ pid }) => isRunning(Number(pid)));
    assert.equal(found, [false, false]);
  }));

test('an opening continues when the shared process closes meanwhile', () =>
  withStdio(fixture('--slow-start=300'), async (transport) => {
    const opening = open(transport);
    await transport.close();
    assert.is(await answerTo(await opening, 'count'), '1');
  }));

test('is not opened at bare servers, nor when the opening was aborted', async () => {
  await withStdio(fixture('--era=bare'), async (transport) => {
    assert.is(
      await transport.openConversation({ profile: PROFILE, signal: new AbortController().signal }),
      undefined,
    );
  });
  await withStdio(fixture(), async (transport) => {
    const error = await transport
      .openConversation({ profile: PROFILE, signal: AbortSignal.abort() })
      .catch((thrown: unknown) => thrown);
    assert.is(error instanceof GatewayError && error.facts.reason, 'its start was cancelled');
  });
});

linux('stops the process when the opening is aborted', () =>
  withStdio(fixture(), async (transport) => {
    const before = children();
    const caller = new AbortController();
    const opening = transport
      .openConversation({ profile: PROFILE, signal: caller.signal })
      .catch((thrown: unknown) => thrown);
    await until(() => children().length > before.length, 'its process is started');
    const started = children().filter((pid) => !before.includes(pid));
    caller.abort();
    const error = await opening;
    assert.is(error instanceof GatewayError && error.facts.reason, 'its start was cancelled');
    assert.equal(started.filter(isRunning), []);
  }),
);

test('a program of the modern era only has a process for each client, too', () =>
  withStdio(fixture('--era=modern'), async (transport) => {
    const [one, two] = [await openFor(transport, noCapability), await openFor(transport, noCapability)];
    assert.equal(
      [one.handshake.era, one.handshake.protocolVersion, two.handshake.era],
      ['modern', '2026-07-28', 'modern'],
    );
    const answerTo = async (conversation: typeof one, tool: string) =>
      textOf((await see(conversation.exchange(callTool(tool, {})))).events.at(-1));
    const pids = [await answerTo(transport, 'pid'), await answerTo(one, 'pid'), await answerTo(two, 'pid')];
    assert.is(new Set(pids).size, 3);
    assert.equal([await answerTo(one, 'count'), await answerTo(one, 'count')], ['1', '2']);
    assert.is(await answerTo(two, 'count'), '1');
    await one.close();
    const found = pids.map((pid) => isRunning(Number(pid)));
    assert.equal(found, [true, false, true]);
    assert.is(failure((await see(one.exchange({ method: 'tools/list' }))).end)?.delivered, 'no');
  }));

for (const [name, program, own] of [
  ['the official SDK, both eras', everythingProgram(), 'legacy'],
  ['the official SDK, modern only', everythingProgram({ era: 'modern' }), 'modern'],
] as const) {
  test(`speaks to a client's process in the era of the client, or in its own (${name})`, () =>
    withStdio({ env: {}, ...program }, async (transport) => {
      const conversation = await openFor(transport, noCapability);
      assert.equal([transport.handshake.era, conversation.handshake.era], ['modern', own]);
      const list: ExchangeRequest = { method: 'tools/list' };
      const [shared, its] = [await see(transport.exchange(list)), await see(conversation.exchange(list))];
      assert.equal([shared.end, its.end], ['completed', 'completed']);
      assert.is(its.events.at(-1)?.kind, 'result');
    }));
}

test.run();

function open(transport: Transport): Promise<Conversation> {
  return openFor(transport, PROFILE);
}

async function answerTo(conversation: Conversation, tool: string): Promise<string> {
  return textOf((await see(conversation.exchange(callTool(tool, {})))).events.at(-1));
}

/** Process ids of the programs that this process runs. Linux only. */
function children(): readonly number[] {
  const pids = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  return pids.split(' ').filter(Boolean).map(Number);
}

function ask(method: string, params: JsonObject) {
  return callTool('ask', { method, params });
}
