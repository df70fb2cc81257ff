// Every pair of client era and backend era, with backends that support both, over HTTP and over stdio, for everything beyond a
// plain call: requests to the client, log messages, progress, list changes, resource subscriptions.
// Source: MCP 2026-07-28 basic/versioning#compatibility-matrix.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { META } from '../../../src/domain/mcp/mcp.ts';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { WATCHED_URI } from '../../fixtures/everything/resources.ts';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import {
  LegacyClient,
  ModernClient,
  type Outcome,
  type Replies,
  textOf,
} from '../../helpers/clients/mcp-client.ts';
import type { Message, OpenStream } from '../../helpers/clients/mcp-wire.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type McpHarness, register, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: crossing eras', { timeoutMs: 30_000 });

const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const replies: Replies = {
  'elicitation/create': () => ({ action: 'accept', content: { username: 'ada', email: 'ada@example.com' } }),
  'sampling/createMessage': () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Paris' },
  }),
  'roots/list': () => ({ roots: [{ uri: 'file:///a' }] }),
};
const listChanged = 'notifications/tools/list_changed';
const updated = 'notifications/resources/updated';
/** How long to wait for messages that must not come. */
const quietMs = 150;

let harness: McpHarness;
const backends: EverythingHttp[] = [];
test.before(async () => {
  harness = await startHarness();
  for (const era of ['legacy', 'modern', 'dual'] as const) {
    const backend = await startEverything({ era });
    backends.push(backend);
    await register(harness.admin, `http-${era}`, [{ id: `far-${era}`, endpoint: backend.url }]);
    await register(harness.admin, `stdio-${era}`, [{ id: `near-${era}`, ...everythingProgram({ era }) }]);
  }
});
test.after(async () => {
  await harness.remove();
  for (const backend of backends) await backend.close();
});

/** A client of either era. */
interface AnyClient {
  call(name: string, args?: Json, options?: { meta?: Json }): Promise<Outcome>;
}

const BACKENDS = ['http-legacy', 'http-modern', 'http-dual', 'stdio-legacy', 'stdio-modern', 'stdio-dual'];

for (const backend of BACKENDS) {
  for (const era of ['legacy', 'modern'] as const) {
    const cell = `${era} client, ${backend} backend`;
    // One client for all tests of a cell: over stdio it has a dedicated process, which starts slowly.
    let client: AnyClient | undefined;
    const inCell = (name: string, body: (client: AnyClient) => Promise<void>): void =>
      test(`${cell}: ${name}`, async () => {
        client ??= await connect(era, backend, true);
        await body(client);
      });

    inCell('elicitation reaches the client', async (client) => {
      const outcome = await client.call('test_elicitation', { message: 'Who are you?' });
      assert.equal(outcome.asked, ['elicitation/create']);
      const content = '{"username":"ada","email":"ada@example.com"}';
      assert.is(textOf(outcome), `User response: action=accept, content=${content}`);
    });

    // Only the legacy era has requests of servers; a backend of both eras is used in the era of its client.
    if (backend.endsWith('legacy') || (backend.endsWith('dual') && era === 'legacy'))
      inCell('elicitation by a request of the server reaches the client', async (client) => {
        const outcome = await client.call('test_elicitation_request');
        const said = 'User response: action=accept, content={"username":"ada","email":"ada@example.com"}';
        assert.equal([outcome.asked, textOf(outcome)], [['elicitation/create'], said]);
      });

    inCell('sampling reaches the client', async (client) => {
      const outcome = await client.call('test_sampling', { prompt: 'Where?' });
      assert.equal([outcome.asked, textOf(outcome)], [['sampling/createMessage'], 'LLM response: Paris']);
    });

    inCell('roots/list reaches the client', async (client) => {
      const outcome = await client.call('test_input_required_result_list_roots');
      assert.equal([outcome.asked, textOf(outcome)], [['roots/list'], '[{"uri":"file:///a"}]']);
    });

    inCell('one call can ask its client several times', async (client) => {
      const outcome = await client.call('test_input_required_result_multi_round');
      assert.equal(outcome.asked, ['elicitation/create', 'elicitation/create']);
      assert.is(outcome.result?.isError, undefined, textOf(outcome));
    });

    inCell('concurrent calls get their own answers', async (client) => {
      const calls = Array.from({ length: 8 }, (_, index) =>
        client.call('test_sampling', { prompt: `${index}` }),
      );
      for (const outcome of await Promise.all(calls)) assert.is(textOf(outcome), 'LLM response: Paris');
    });

    inCell('progress comes under the token of the client', async (client) => {
      const outcome = await client.call('test_tool_with_progress', {}, { meta: { progressToken: 1 } });
      const seen = outcome.notifications.map(({ method, params }) => [
        method,
        params?.progressToken,
        params?.progress,
      ]);
      const progress = [0, 50, 100].map((step) => ['notifications/progress', 1, step]);
      assert.equal([seen, textOf(outcome)], [progress, 'The work was done.']);
    });

    inCell('without a token there is no progress', async (client) => {
      const outcome = await client.call('test_tool_with_progress');
      assert.equal([outcome.notifications, textOf(outcome)], [[], 'The work was done.']);
    });

    test(`${cell}: log messages reach only clients that requested their level`, async () => {
      const lines = await logLines(era, backend, 'info');
      assert.equal(
        lines.map(({ params }) => [params?.level, params?.data]),
        ['Tool execution started', 'Tool processing data', 'Tool execution completed'].map((line) => [
          'info',
          line,
        ]),
      );
      assert.equal(await logLines(era, backend, 'error'), []);
    });

    test(`${cell}: each listening client gets a list change once`, async () => {
      const clients = [await connect(era, backend), await connect(era, backend)] as const;
      const streams = await Promise.all(clients.map((client) => listen(client)));
      const announce = () => clients[0].call('test_trigger_tool_change');
      assert.equal(await news(listChanged, streams, streams, announce), [1, 1]);
      await leave(clients, streams);
    });

    test(`${cell}: only subscribers get an update of a resource`, async () => {
      const clients = [await connect(era, backend), await connect(era, backend)] as const;
      const watching = await listen(clients[0], WATCHED_URI);
      const streams = [watching, await listen(clients[1])];
      const announce = () => clients[1].call('test_trigger_resource_update');
      assert.equal(await news(updated, streams, [watching], announce), [1, 0]);
      const uris = watching.messages
        .filter(({ method }) => method === updated)
        .map(({ params }) => params?.uri);
      assert.equal([...new Set(uris)], [WATCHED_URI]);
      await leave(clients, streams);
    });
  }
}

test.run();

/** A client; with `canBeAsked` it answers all requests of servers. */
async function connect(era: 'legacy' | 'modern', template: string, canBeAsked = false) {
  const options = canBeAsked ? { capabilities, replies } : {};
  const path = `/mcp/${template}`;
  if (era === 'legacy') return LegacyClient.open(harness.wire, path, options);
  const client = new ModernClient(harness.wire, path, options);
  return Object.assign(client, { close: async () => {} });
}

/** Opens the stream of notifications, and subscribes to `uri` as the era of the client does. */
async function listen(client: Awaited<ReturnType<typeof connect>>, uri?: string): Promise<OpenStream> {
  if (client instanceof LegacyClient) {
    const stream = await client.listen();
    assert.is(stream.status, 200);
    if (uri !== undefined) assert.equal((await client.ask('resources/subscribe', { uri })).result, {});
    return stream;
  }
  const wanted = { toolsListChanged: true, ...(uri === undefined ? {} : { resourceSubscriptions: [uri] }) };
  const stream = await client.listen(wanted);
  const first = await stream.sees(() => true);
  const found = [first.method, objectOr(first.params).notifications];
  assert.equal(found, ['notifications/subscriptions/acknowledged', wanted]);
  return stream;
}

/** The log messages of a tool that its caller gets at this level: with the answer, or on the stream of notifications. */
async function logLines(
  era: 'legacy' | 'modern',
  template: string,
  level: string,
): Promise<readonly Message[]> {
  const client = await connect(era, template, true);
  if (!(client instanceof LegacyClient)) {
    const { notifications } = await client.call(
      'test_tool_with_logging',
      {},
      { meta: { [META.logLevel]: level } },
    );
    return notifications;
  }
  const stream = await client.listen();
  assert.equal((await client.ask('logging/setLevel', { level })).result, {});
  const { notifications } = await client.call('test_tool_with_logging');
  await delay(quietMs);
  const lines = [...notifications, ...stream.messages].filter(
    ({ method }) => method === 'notifications/message',
  );
  await leave([client], [stream]);
  return lines;
}

/**
 * How often each stream gets one change. The first changes are repeated until all streams of `reported` get one: a stream may
 * begin before the backend listens.
 */
async function news(
  method: string,
  streams: readonly OpenStream[],
  reported: readonly OpenStream[],
  announce: () => Promise<Outcome>,
): Promise<number[]> {
  const counts = () => streams.map((stream) => countOf(stream, method));
  const isTold = async () => {
    assert.is(textOf(await announce()), 'Announced.');
    await delay(quietMs);
    return reported.every((stream) => countOf(stream, method) > 0);
  };
  assert.ok(await eventually(isTold, Boolean), `no stream got ${method}`);
  await delay(quietMs);
  const before = counts();
  await announce();
  await eventually(
    async () => reported.every((stream) => countOf(stream, method) > (before[streams.indexOf(stream)] ?? 0)),
    Boolean,
  );
  await delay(quietMs);
  return counts().map((count, index) => count - (before[index] ?? 0));
}

function countOf({ messages }: OpenStream, method: string): number {
  return messages.filter((message) => message.method === method).length;
}

async function leave(
  clients: readonly { close(): Promise<unknown> }[],
  streams: readonly OpenStream[],
): Promise<void> {
  for (const stream of streams) stream.close();
  for (const client of clients) await client.close();
}
