// The transports against a server on the official SDK, in every era, over HTTP and stdio, and against the published reference
// server (the others: catalogue.spec.ts). The details of each transport are in the conformance suite, against our own fixtures;
// `npm run conformance` compares lists, plain calls and errors of tools with those of the SDK.

import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { loadTransport } from '../../../src/transports/load-transport.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import {
  callTool,
  instanceDefinition,
  openOptions,
  see,
  startAndUnsubscribe,
  textOf,
} from '../../conformance/transport.ts';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { until } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition } from '../../transports/http/open-http.ts';

const test = suite('servers on the official SDKs', { timeoutMs: 30_000 });

/** Real programs start slowly when the machine is busy. */
const patient = openOptions({ handshakeTimeoutMs: 20_000 });
const EVERYTHING = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);
const PROGRESS = { kind: 'notification', method: 'notifications/progress' } as const;

const SUBJECTS = ['http', 'stdio'].flatMap((kind) =>
  (['dual', 'modern', 'legacy'] as const).map((served) => [kind, served] as const),
);
for (const [kind, served] of SUBJECTS) {
  const check = (sentence: string, body: (transport: Transport) => Promise<void>): void =>
    test(`${kind}, ${served}: ${sentence}`, () =>
      kind === 'http' ? overHttp(served, body) : overPipe(everythingProgram({ era: served }), body));

  // The SDK compares the headers of the modern era with the body before it looks for the tool.
  check('encodes any tool name so that the SDK accepts it', async (transport) => {
    for (const name of ['grüße', '日本 🎭', ' padded ', '=?base64?YQ==?=']) {
      const error = { code: -32602, message: `Tool ${name} not found` };
      assert.equal((await see(transport.exchange(callTool(name, {})))).events, [{ kind: 'error', error }]);
    }
  });

  check('unsubscribing before the first message aborts the AbortSignal of the handler', async (transport) => {
    const waiting = async () =>
      JSON.parse(textOf((await see(transport.exchange(callTool('test_instance', {})))).events[0])).waiting;
    const silent = transport.exchange(callTool('test_wait', {})).subscribe();
    await until(async () => (await waiting()) === 1, 'the call was running');
    silent.unsubscribe();
    await until(async () => (await waiting()) === 0, 'the call was cancelled');
  });
}

test('server-everything: reports progress, serves calls after a cancelled one, and ends although it ignores the cancel', async () => {
  await overPipe({ command: process.execPath, args: [EVERYTHING, 'stdio'] }, async (transport) => {
    const tool = 'trigger-long-running-operation';
    const request = callTool(tool, { duration: 0.02, steps: 2 }, { progressToken: 7 });
    const { events } = await see(transport.exchange(request));
    assert.equal(
      events.slice(0, -1),
      [1, 2].map((progress) => ({ ...PROGRESS, params: { progressToken: 7, progress, total: 2 } })),
    );
    assert.match(textOf(events.at(-1)), /completed/);
    // The server ignores the AbortSignal, so the end of stdin is not enough.
    const endless = callTool(tool, { duration: 60, steps: 6_000 }, { progressToken: 8 });
    await startAndUnsubscribe(transport.exchange(endless));
    const after = await see(transport.exchange(callTool('echo', { message: 'still here' })));
    assert.is(textOf(after.events[0]), 'Echo: still here');
  });
});

test('server-everything: the gateway runs it over HTTP+SSE, too', async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}/sse`;
  const program = { transport: 'sse', command: process.execPath, args: [EVERYTHING, 'sse'] } as const;
  await endsWith(
    await (await loadTransport('sse'))(httpDefinition(endpoint, program), patient),
    async (transport) => {
      const said = await see(transport.exchange(callTool('echo', { message: 'hello' })));
      assert.is(textOf(said.events[0]), 'Echo: hello');
    },
  );
});

type Served = 'dual' | 'modern' | 'legacy';

async function overHttp(era: Served, body: (transport: Transport) => Promise<void>): Promise<void> {
  const server = await startEverything({ era });
  const transport = await (await loadTransport('http'))(httpDefinition(server.url), patient);
  try {
    await body(transport);
  } finally {
    await transport.close();
    await server.close();
  }
}

async function overPipe(
  program: { readonly command: string; readonly args: string[] },
  body: (transport: Transport) => Promise<void>,
): Promise<void> {
  await endsWith(await (await loadTransport('stdio'))(instanceDefinition(program), patient), body);
}

/** Afterwards its process is gone. */
async function endsWith(transport: Transport, body: (transport: Transport) => Promise<void>): Promise<void> {
  const pid = transport.diagnostics().pid ?? 0;
  try {
    await body(transport);
    assert.ok(isRunning(pid));
  } finally {
    await transport.close();
  }
  assert.not(isRunning(pid));
}

test.run();
