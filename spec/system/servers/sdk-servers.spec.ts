// The transports against servers that others wrote: on the official SDKs, in every era, over HTTP and stdio, and the
// reference servers everything, filesystem and memory as they are published. What each transport must do in detail is
// in the conformance suite, against our own fixtures.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filter, firstValueFrom, timeout } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import { isJsonObject, type JsonObject } from '../../../src/domain/json.ts';
import type { Era } from '../../../src/domain/mcp.ts';
import { createGateway, type Gateway } from '../../../src/gateway.ts';
import { TRANSPORTS } from '../../../src/transports/index.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import {
  callTool,
  cancelledOn,
  instanceDefinition,
  openOptions,
  see,
  startAndUnsubscribe,
  textOf,
  until,
} from '../../conformance/transport.ts';
import {
  PROMPT_NAME,
  RESOURCE_URI,
  type SdkModernServer,
  type SdkServerOptions,
  sdkModernProgram,
  startSdkModernServer,
} from '../../fixtures/sdk-modern-server.ts';
import { inFolder } from '../../helpers/folder.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition } from '../../transports/http/open-http.ts';

const test = suite('servers on the official SDKs', { timeoutMs: 30_000 });

/** Real programs need their time to start when the machine is busy. */
const patient = openOptions({ handshakeTimeoutMs: 20_000 });

// --- a server on @modelcontextprotocol/server, in every form -----------------------------------------------------

interface Subject {
  readonly era: Era;
  with(body: (transport: Transport) => Promise<void>): Promise<void>;
}

const subjects: Readonly<Record<string, Subject>> = {
  'http, dual': overHttp('modern', {}),
  'http, modern': overHttp('modern', { era: 'modern' }),
  'http, modern in event streams': overHttp('modern', { era: 'modern', responseMode: 'sse' }),
  'http, legacy': overHttp('legacy', { era: 'legacy' }),
  'http, legacy without sessions': overHttp('legacy', { era: 'legacy', sessions: false }),
  'stdio, dual': overStdio('modern', 'dual'),
  'stdio, legacy': overStdio('legacy', 'legacy'),
  'stdio, modern': overStdio('modern', 'modern'),
};

for (const [name, subject] of Object.entries(subjects)) {
  const check = (sentence: string, body: (transport: Transport) => Promise<void>): void =>
    test(`${name}: ${sentence}`, () => subject.with(body));

  check('finds the era and learns who the server is', async ({ peer }) => {
    const { capabilities, greeting, ...who } = peer;
    const protocolVersion = subject.era === 'modern' ? '2026-07-28' : '2025-11-25';
    assert.equal(who, {
      era: subject.era,
      protocolVersion,
      serverName: 'sdk-fixture',
      serverVersion: '2.4.0',
    });
    assert.equal(Object.keys(capabilities).sort(), ['prompts', 'resources', 'tools']);
    assert.equal(greeting.capabilities, capabilities);
  });

  check('lists and calls tools', async (transport) => {
    const { tools } = await resultOf(transport, 'tools/list');
    assert.equal(namesOf(tools), ['echo', 'slow', 'fail', 'cancelled']);
    const text = '"é → 🎭" \\ \n\t';
    assert.is(textOf((await see(transport.exchange(callTool('echo', { text })))).events[0]), text);
    const failed = await resultOf(transport, 'tools/call', { name: 'fail', arguments: {} });
    assert.equal([failed.isError, failed.content], [true, [{ type: 'text', text: 'it failed on purpose' }]]);
  });

  check('emits JSON-RPC errors as events, with what the server said', async (transport) => {
    const noTool = { kind: 'error', error: { code: -32602, message: 'Tool nobody not found' } };
    const noMethod = { kind: 'error', error: { code: -32601, message: 'Method not found' } };
    assert.equal(await see(transport.exchange(callTool('nobody', {}))), {
      events: [noTool],
      end: 'completed',
    });
    assert.equal(await see(transport.exchange({ method: 'no/such' })), {
      events: [noMethod],
      end: 'completed',
    });
  });

  check('emits progress with the token of the caller, then the result', async (transport) => {
    const request = callTool('slow', { steps: 3, ms: 1 }, { progressToken: 'mine' });
    const { events, end } = await see(transport.exchange(request));
    assert.is(end, 'completed');
    assert.equal(
      events.slice(0, -1),
      [1, 2, 3].map((step) => progressEvent({ progressToken: 'mine', progress: step, total: 3 })),
    );
    assert.is(textOf(events.at(-1)), 'did 3 steps');
  });

  check('cancels: unsubscribing reaches the AbortSignal of the handler', async (transport) => {
    const { events } = await see(transport.exchange(callTool('slow', { steps: 1, ms: 1 })));
    assert.is(textOf(events.at(-1)), 'did 1 steps');
    await startAndUnsubscribe(transport.exchange(callTool('slow', { steps: 100_000, ms: 1 })));
    await until(async () => (await cancelledOn(transport)).length > 0, 'the signal fired');
    assert.is((await cancelledOn(transport)).length, 1);
  });

  check('reads a resource and gets a prompt whose names are not ASCII', async (transport) => {
    const read = await resultOf(transport, 'resources/read', { uri: RESOURCE_URI });
    const uri = new URL(RESOURCE_URI).href;
    assert.equal(read.contents, [{ uri, mimeType: 'text/plain', text: 'viele Grüße' }]);
    const { resources } = await resultOf(transport, 'resources/list');
    assert.equal(namesOf(resources), ['notes']);
    const params = { name: PROMPT_NAME, arguments: { name: 'Jürgen' } };
    const { messages } = await resultOf(transport, 'prompts/get', params);
    assert.equal(messages, [{ role: 'user', content: { type: 'text', text: 'Guten Tag, Jürgen' } }]);
    assert.is(transport.facts().unmatchedMessages, 0);
  });
}

// --- what only HTTP has ------------------------------------------------------------------------------------------

test('cancels a call over HTTP before the server said its first word', async () => {
  for (const options of [
    { era: 'modern' },
    { era: 'modern', responseMode: 'sse' },
    { era: 'legacy' },
  ] as const) {
    await withServer(options, async (transport, server) => {
      const silent = transport.exchange(callTool('slow', { steps: 1, ms: 60_000 })).subscribe();
      await until(() => server.calls.running === 1, 'the call was running');
      silent.unsubscribe();
      await until(() => server.calls.running === 0, 'the call was cancelled');
      assert.is(server.calls.cancelled.length, 1);
    });
  }
});

test('mirrors method and name in headers that the SDK accepts, whatever the name', async () => {
  const tools = ['grüße', '日本 🎭', ' padded ', '=?base64?YQ==?='];
  await withServer({ era: 'modern', moreEchoes: tools }, async (transport, server) => {
    for (const tool of tools) {
      const { events } = await see(transport.exchange(callTool(tool, { text: tool })));
      assert.is(textOf(events[0]), tool);
    }
    await resultOf(transport, 'resources/read', { uri: RESOURCE_URI });
    await resultOf(transport, 'prompts/get', { name: PROMPT_NAME, arguments: { name: 'Jürgen' } });
    await until(() => server.requests.length === tools.length + 3, 'all requests were answered');
    assert.equal(
      server.requests.map(({ headers, status }) => [
        headers['mcp-method'],
        decoded(headers['mcp-name']),
        status,
      ]),
      [
        ['server/discover', undefined, 200],
        ...tools.map((tool) => ['tools/call', tool, 200]),
        ['resources/read', RESOURCE_URI, 200],
        ['prompts/get', PROMPT_NAME, 200],
      ],
    );
  });
});

// --- behind a gateway --------------------------------------------------------------------------------------------

test('a gateway serves one template from SDK servers of both eras, over both transports', async () => {
  await withGateway(async (gateway, server) => {
    const eras = { 'http-modern': 'modern', 'stdio-legacy': 'legacy', 'stdio-modern': 'modern' };
    const loadBalancer = { strategy: 'round_robin', health_check_interval: 1 } as const;
    const options = { loadBalancer, waitMs: 20_000 };
    await gateway.register('sdk', { id: 'http-modern', endpoint: server.url }, options);
    await gateway.register('sdk', { id: 'stdio-legacy', ...sdkModernProgram('legacy') }, options);
    await gateway.register('sdk', { id: 'stdio-modern', ...sdkModernProgram('modern') }, options);
    const { instances } = gateway.health('sdk');
    assert.equal(Object.fromEntries(instances.map(({ id, era }) => [id, era])), eras);
    const answeredBy: string[] = [];
    for (const text of ['one', 'two', 'three']) {
      const { result, instanceId } = await gateway.call('sdk', 'echo', { text });
      assert.is(textIn(result), text);
      answeredBy.push(instanceId);
    }
    assert.equal(answeredBy.sort(), Object.keys(eras));
    const probes = Object.keys(eras).map((id) => {
      const own = gateway.on('probe.finished').pipe(filter(({ instanceId }) => instanceId === id));
      return firstValueFrom(own.pipe(timeout(15_000)));
    });
    assert.equal(
      (await Promise.all(probes)).map(({ passed }) => passed),
      [true, true, true],
    );
    const pids = instances.flatMap(({ pid }) => (pid === null ? [] : [pid]));
    assert.is(pids.length, 2);
    await gateway.close();
    assert.equal(pids.map(isRunning), [false, false]);
  });
});

// --- the reference servers, as they are published ------------------------------------------------------------------

interface ReferenceServer {
  /** The start of its name in the handshake. */
  readonly name: RegExp;
  readonly script: string;
  /** `folder` is an empty folder of this test. */
  readonly args: (folder: string) => readonly string[];
  readonly env: (folder: string) => Readonly<Record<string, string>>;
  readonly call: (folder: string) => { tool: string; args: JsonObject; answer: RegExp };
}

const references: readonly ReferenceServer[] = [
  {
    name: /everything/,
    script: '@modelcontextprotocol/server-everything/dist/index.js',
    args: () => ['stdio'],
    env: () => ({}),
    call: () => ({ tool: 'echo', args: { message: 'grüße 🎭' }, answer: /^Echo: grüße 🎭$/ }),
  },
  {
    name: /filesystem/,
    script: '@modelcontextprotocol/server-filesystem/dist/index.js',
    args: (folder) => [folder],
    env: () => ({}),
    call: (folder) => ({
      tool: 'read_text_file',
      args: { path: join(folder, 'note.txt') },
      answer: /^what the note says$/,
    }),
  },
  {
    name: /memory/,
    script: '@modelcontextprotocol/server-memory/dist/index.js',
    args: () => [],
    env: (folder) => ({ MEMORY_FILE_PATH: join(folder, 'memory.jsonl') }),
    call: () => ({
      tool: 'create_entities',
      args: { entities: [{ name: 'Ada', entityType: 'person', observations: ['wrote programs'] }] },
      answer: /"name": "Ada"/,
    }),
  },
];

for (const reference of references) {
  const [, name] = reference.script.split('/');

  test(`${name}: shakes hands, lists and is called`, async () => {
    await withFolder(async (folder) => {
      const transport = await TRANSPORTS.stdio.open(referenceDefinition(reference, folder), patient);
      const pid = transport.facts().pid ?? 0;
      try {
        const { era, protocolVersion, serverName } = transport.peer;
        assert.equal([era, protocolVersion], ['legacy', '2025-11-25']);
        assert.match(serverName, reference.name);
        const { tools } = await resultOf(transport, 'tools/list');
        const { tool, args, answer } = reference.call(folder);
        assert.ok(namesOf(tools).includes(tool));
        const { events, end } = await see(transport.exchange(callTool(tool, args)));
        assert.is(end, 'completed');
        assert.match(textOf(events[0]), answer);
        assert.ok(isRunning(pid));
      } finally {
        await transport.close();
      }
      assert.not(isRunning(pid));
      assert.is(transport.facts().unmatchedMessages, 0);
    });
  });
}

test('server-everything: reports progress, and is stopped in the middle of work that nobody waits for', async () => {
  await withFolder(async (folder) => {
    const [everything] = references;
    if (everything === undefined) throw new Error('the first of the table');
    const transport = await TRANSPORTS.stdio.open(referenceDefinition(everything, folder), patient);
    const pid = transport.facts().pid ?? 0;
    try {
      const tool = 'trigger-long-running-operation';
      const request = callTool(tool, { duration: 0.02, steps: 2 }, { progressToken: 7 });
      const { events } = await see(transport.exchange(request));
      assert.equal(
        events.slice(0, -1),
        [1, 2].map((progress) => ({ ...PROGRESS, params: { progressToken: 7, progress, total: 2 } })),
      );
      assert.match(textOf(events.at(-1)), /completed/);
      await startAndUnsubscribe(transport.exchange(callTool(tool, { duration: 60, steps: 6_000 })));
      const after = await see(transport.exchange(callTool('echo', { message: 'still here' })));
      assert.is(textOf(after.events[0]), 'Echo: still here');
      assert.ok(isRunning(pid));
    } finally {
      await transport.close();
    }
    // Its tool does not look at the AbortSignal, so the end of stdin is not enough.
    assert.not(isRunning(pid));
  });
});

// --- helpers -------------------------------------------------------------------------------------------------------

const PROGRESS = { kind: 'notification', method: 'notifications/progress' } as const;

function overHttp(era: Era, options: SdkServerOptions): Subject {
  return { era, with: (body) => withServer(options, (transport) => body(transport)) };
}

function overStdio(era: Era, served: 'dual' | 'modern' | 'legacy'): Subject {
  return {
    era,
    with: async (body) => {
      const transport = await TRANSPORTS.stdio.open(instanceDefinition(sdkModernProgram(served)), patient);
      const pid = transport.facts().pid ?? 0;
      try {
        await body(transport);
      } finally {
        await transport.close();
      }
      assert.not(isRunning(pid));
    },
  };
}

async function withServer(
  options: SdkServerOptions,
  body: (transport: Transport, server: SdkModernServer) => Promise<void>,
): Promise<void> {
  const server = await startSdkModernServer(options);
  try {
    const transport = await TRANSPORTS.http.open(httpDefinition(server.url), patient);
    try {
      await body(transport, server);
    } finally {
      await transport.close();
    }
  } finally {
    await server.close();
  }
}

/** A gateway without instances, and a dual server that can be one. */
async function withGateway(
  body: (gateway: Gateway, server: SdkModernServer) => Promise<void>,
): Promise<void> {
  const server = await startSdkModernServer();
  const gateway = await createGateway({ graceMs: 0 });
  try {
    await body(gateway, server);
  } finally {
    await gateway.close();
    await server.close();
  }
}

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    await writeFile(join(folder, 'note.txt'), 'what the note says');
    await body(folder);
  });
}

function referenceDefinition({ script, args, env }: ReferenceServer, folder: string) {
  return instanceDefinition({
    command: process.execPath,
    args: [fileURLToPath(import.meta.resolve(script)), ...args(folder)],
    env: env(folder),
  });
}

async function resultOf(transport: Transport, method: string, params?: JsonObject): Promise<JsonObject> {
  const { events } = await see(transport.exchange(params === undefined ? { method } : { method, params }));
  const [event] = events;
  const value = event?.kind === 'result' ? event.result.value : undefined;
  if (!isJsonObject(value)) throw new Error(`${method} was answered with ${JSON.stringify(event)}`);
  return value;
}

function namesOf(items: unknown): readonly string[] {
  if (!Array.isArray(items)) throw new Error('not a list');
  return items.map((item: unknown) => (isJsonObject(item) ? String(item.name) : ''));
}

function textIn(result: unknown): unknown {
  const [part] = Object(result).content;
  return part.text;
}

function progressEvent(params: { progressToken: string; progress: number; total: number }): ExchangeEvent {
  return { ...PROGRESS, params: { ...params, message: `step ${params.progress}` } };
}

/** The name that a header means; see eraHeaders. */
function decoded(header: string | string[] | undefined): string | undefined {
  const encoded = typeof header === 'string' ? /^=\?base64\?(.*)\?=$/.exec(header)?.[1] : undefined;
  return encoded === undefined ? header?.toString() : Buffer.from(encoded, 'base64').toString('utf8');
}

test.run();
