// The stdio transport: the conformance suite over real programs in every era, then how it opens and closes.

import * as assert from 'uvu/assert';
import { PASS_ENV } from '../../../src/domain/instances/command.ts';
import { exitedWith } from '../../../src/domain/instances/found-instances.ts';
import { open as stdio } from '../../../src/transports/stdio/stdio.ts';
import {
  callTool,
  collect,
  failure,
  instanceDefinition,
  openOptions,
  refusal,
  see,
  textOf,
  transportConformance,
} from '../../conformance/transport.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, openStdio, scripted, withStarts, withStdio } from './open-stdio.ts';

const test = suite('stdio transport', { timeoutMs: 30_000 });

for (const [name, flags] of [
  ['a legacy server', ['--era=legacy']],
  ['a modern server', ['--era=modern']],
  ['a bare server', ['--era=bare']],
] as const) {
  transportConformance(test, { name, open: async () => ({ transport: await openStdio(fixture(...flags)) }) });
}

test('learns era, revision and name of the server in the handshake', async () => {
  const eras = { legacy: '2025-11-25', dual: '2026-07-28', modern: '2026-07-28', bare: '' };
  for (const [era, protocolVersion] of Object.entries(eras)) {
    await withStdio(fixture(`--era=${era}`, '--name=me'), async ({ handshake }) => {
      assert.is(handshake.protocolVersion, protocolVersion);
      assert.is(handshake.era, era === 'dual' ? 'modern' : era);
      assert.is(handshake.serverInfo.name === 'me', era !== 'bare');
    });
  }
});

test('gives the program its own variables, and of the gateway only those that are passed', async () => {
  const { command, args } = fixture();
  const transport = await openStdio({ command, args, env: { API_TOKEN: 'for the server' } });
  const { events } = await see(transport.exchange(callTool('env', {})));
  const environment = JSON.parse(textOf(events[0]));
  await transport.close();
  assert.is(environment.API_TOKEN, 'for the server');
  assert.is(environment.PATH, process.env.PATH);
  assert.equal(
    Object.keys(environment).filter(
      (name) => (name.startsWith('npm_') && !PASS_ENV.includes(name)) || name === 'USER',
    ),
    [],
  );
});

test('tolerates a server that talks on stdout before and between its answers', async () => {
  await withStdio(fixture('--stdout-noise'), async (transport) => {
    const { events } = await see(transport.exchange(callTool('echo', { text: 'heard' })));
    assert.is(textOf(events[0]), 'heard');
    assert.ok(Number(transport.diagnostics().oddOutput?.lines) >= 4);
  });
});

test('does not open when the program refuses to start, and keeps its stderr out of the message', async () => {
  const error = await refusal(openStdio(fixture('--refuse-start')));
  assert.is(error.message, 'The backend is unavailable: exited with code 3.');
  assert.equal(error.facts.stderr, ['refusing to start: the fixture was told so']);
});

test('does not open without a program', async () => {
  const missing = await refusal(openStdio({ command: 'no-such-program', args: [], env: {} }));
  assert.match(missing.message, 'could not be started: ENOENT, there is no program "no-such-program"');
  const none = await refusal(stdio(instanceDefinition({}), openOptions()));
  assert.match(none.message, 'no command is given');
});

test('starts nothing when the opening was already aborted', () =>
  withStarts(async (counted, starts) => {
    const error = await refusal(openStdio(counted(fixture()), { signal: AbortSignal.abort() }));
    assert.equal(
      [error.message, await starts()],
      ['The backend is unavailable: its start was cancelled.', 0],
    );
  }));

test('a server that reads lines with readline, which also ends them at U+2028 and U+2029, gets each message whole', () => {
  const program = scripted(
    "say({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: line }] } });",
  );
  return withStdio(program, async (transport) => {
    const text = 'a\u2028b\u2029\u2028c\u0085d';
    const { events } = await see(transport.exchange(callTool('echo', { text })));
    const line = textOf(events[0]);
    assert.match(line, 'a\\u2028b\\u2029\\u2028c');
    assert.is(JSON.parse(line).params.arguments.text, text);
  });
});

test('closed$ reports that the program exited by itself', async () => {
  const transport = await openStdio(fixture('--exit-after=1'));
  const closed = collect(transport.closed$);
  const { events } = await see(transport.exchange(callTool('echo', { text: 'last words' })));
  assert.is(textOf(events[0]), 'last words');
  assert.equal(await closed, [{ ...exitedWith(1), isExpected: false }]);
  const { end } = await see(transport.exchange(callTool('echo', { text: 'too late' })));
  assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  assert.is(transport.diagnostics().pid, null);
  await transport.close();
});

test('closing answers pending calls before the program has stopped', async () => {
  const transport = await openStdio(fixture('--ignore-stdin-end', '--ignore-sigterm'));
  const pending = see(transport.exchange(callTool('sleep', { ms: 60_000 })));
  let stopped = false;
  const closing = transport.close().then(() => {
    stopped = true;
  });
  const { end } = await pending;
  assert.match(String(end), 'closed by the gateway');
  assert.not(stopped);
  await closing;
});

test.run();
