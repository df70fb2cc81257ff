// A program that serves HTTP and is run by the gateway: its start and its end.

import { fileURLToPath } from 'node:url';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { PASS_ENV } from '../../../src/domain/instances/command.ts';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { open as http } from '../../../src/transports/http/http.ts';
import type { Transport, TransportDiagnostics } from '../../../src/transports/transport.ts';
import { conversationConformance } from '../../conformance/conversation.ts';
import {
  callTool,
  failure,
  refusal,
  see,
  textOf,
  transportConformance,
} from '../../conformance/transport.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { until } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition, idleProgram, openOptions } from './open-http.ts';

const test = suite('managed http', { timeoutMs: 30_000 });

const fixture = fileURLToPath(new URL('../../fixtures/http-server.ts', import.meta.url));

async function definition(args: readonly string[], more: Partial<InstanceDefinition> = {}) {
  const endpoint = `http://127.0.0.1:${await freePort()}/mcp`;
  return httpDefinition(endpoint, { command: process.execPath, args, ...more });
}

async function withManaged(
  args: readonly string[],
  body: (transport: Transport) => Promise<void>,
): Promise<void> {
  const transport = await http(await definition(args), openOptions({ handshakeTimeoutMs: 20_000 }));
  try {
    await body(transport);
  } finally {
    await transport.close();
  }
}

transportConformance(test, {
  name: 'managed',
  open: async () => ({
    transport: await http(
      await definition([fixture, '--answers=sse']),
      openOptions({ handshakeTimeoutMs: 20_000 }),
    ),
  }),
});
// A program that serves nothing starts fast.
conversationConformance(test, {
  name: 'managed',
  open: async () => {
    const server = await startHttpServer({ answers: 'sse' });
    const transport = await http(httpDefinition(server.url, idleProgram), openOptions());
    return { transport, release: () => server.close() };
  },
});

test('starts the program with its port in PORT, and stops it at the end', async () => {
  let pid = 0;
  await withManaged([fixture], async (transport) => {
    pid = transport.diagnostics().pid ?? 0;
    assert.is(textOf((await see(transport.exchange(callTool('pid', {})))).events[0]), String(pid));
    const { events } = await see(transport.exchange(callTool('env', {})));
    const env = JSON.parse(textOf(events[0]));
    assert.match(env.PORT, /^\d+$/);
    // Node hands NODE_V8_COVERAGE to every child by itself while coverage is measured.
    const known = ['PATH', 'HOME', 'LANG', 'PORT', 'NODE_V8_COVERAGE', ...PASS_ENV];
    const found = Object.keys(env).filter((name) => !known.includes(name));
    assert.equal(found, []);
  });
  assert.not.ok(isRunning(pid));
});

test('leaves PORT alone when the definition sets it', async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}/mcp`;
  const args = [fixture, `--port=${new URL(endpoint).port}`];
  const own = httpDefinition(endpoint, { command: process.execPath, args, env: { PORT: '7' } });
  const transport = await http(own, openOptions({ handshakeTimeoutMs: 20_000 }));
  const { events } = await see(transport.exchange(callTool('env', {})));
  assert.is(JSON.parse(textOf(events[0])).PORT, '7');
  await transport.close();
});

test('ends when the program exits, with the reason of the exit and every call answered', async () => {
  await withManaged([fixture], async (transport) => {
    const left = see(transport.exchange(callTool('sleep', { ms: 60_000 })));
    await see(transport.exchange(callTool('echo', { text: 'the other was sent' })));
    process.kill(transport.diagnostics().pid ?? 0, 'SIGKILL');
    assert.equal(failure((await left).end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
    assert.equal(await firstValueFrom(transport.closed$), { reason: 'killed by SIGKILL', isExpected: false });
    const { end } = await see(transport.exchange(callTool('echo', { text: 'too late' })));
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  });
});

test('reports how a program that never listened exited, without its stderr in the message', async () => {
  const script = "console.error('no such option'); process.exit(3)";
  const error = await refusal(http(await definition(['-e', script]), openOptions()));
  assert.is(error.message, 'The backend is unavailable: exited with code 3.');
  assert.equal(error.facts.stderr, ['no such option']);
});

test('does not wait for a program that answers with a refusal', async () => {
  const refuse = "(_, answer) => { console.error('asked'); answer.writeHead(401).end(); }";
  const script = `require('http').createServer(${refuse}).listen(process.env.PORT)`;
  const error = await refusal(
    http(await definition(['-e', script]), openOptions({ handshakeTimeoutMs: 5_000 })),
  );
  assert.equal(
    [error.facts.reason, error.facts.stderr],
    ["answered 401 (the gateway's credentials for the server were refused)", ['asked']],
  );
});

test('stops a program that does not listen in time, or whose opening is aborted', async () => {
  const script = 'setInterval(() => {}, 1000)';
  const started: TransportDiagnostics[] = [];
  const onStarted = (facts: () => TransportDiagnostics) => started.push(facts());
  await refusal(http(await definition(['-e', script]), openOptions({ handshakeTimeoutMs: 600, onStarted })));
  const pid = Number(started.pop()?.pid);
  assert.ok(pid > 0);
  assert.not.ok(isRunning(pid));
  const stop = new AbortController();
  for (const { signal } of [stop, { signal: AbortSignal.abort() }]) {
    const opening = refusal(http(await definition(['-e', script]), openOptions({ signal, onStarted })));
    if (signal === stop.signal) await until(() => started.length > 0, 'it is started');
    stop.abort();
    await opening;
  }
  const found = started.map((facts) => isRunning(Number(facts.pid)));
  assert.equal(found, [false]);
});

test.run();
