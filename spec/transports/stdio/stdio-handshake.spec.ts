// Openings that fail, or are aborted, between the start of the program and the end of the handshake.

import * as assert from 'uvu/assert';
import type { GatewayError } from '../../../src/domain/errors/errors.ts';
import {
  type ContainerProgram,
  exitedWith,
  type ProgramEnd,
  type RunInContainer,
} from '../../../src/domain/instances/found-instances.ts';
import type { OpeningHistory } from '../../../src/transports/open-options.ts';
import { open as stdio } from '../../../src/transports/stdio/stdio.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { noCapability } from '../../conformance/conversation.ts';
import {
  callTool,
  cancelledOn,
  instanceDefinition,
  openOptions,
  refusal,
  see,
  textOf,
} from '../../conformance/transport.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, node, openStdio, withStarts } from './open-stdio.ts';

const test = suite('stdio handshake', { timeoutMs: 30_000 });

/** The probe may take half of the handshake timeout, which is never reached. */
const PATIENT = { probeTimeoutMs: 60_000 };
const EXITS_WHEN_ASKED = node("process.stdin.once('data', () => process.exit(3))");
/** Does not wait for a program to start. */
const IMPATIENT = { probeTimeoutMs: 10 };

test('does not open when the handshake is refused', async () => {
  const refusing = "say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } })";
  const code = `const say = (message) => console.log(JSON.stringify(message));
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => { const { id } = JSON.parse(line); ${refusing} })`;
  const error = await refusal(openStdio(node(code)));
  assert.match(error.message, 'refused the handshake');
});

test('does not open a program that returns what it is sent', async () => {
  const code = 'process.stdin.pipe(process.stdout)';
  const error = await refusal(openStdio(node(code)));
  assert.is(error.message, 'The backend is unavailable: it echoes its input.');
});

test('fails at the handshake timeout of a silent server, does not cancel initialize, and stops the program', async () => {
  const error = await refusal(openStdio(silent(), { handshakeTimeoutMs: 400 }));
  assert.match(error.message, 'no handshake within 0.4 s');
  const [pid, ...received] = wordsOf(error);
  assert.not(isRunning(Number(pid)));
  const found = received.map((line) => JSON.parse(line).method);
  assert.equal(found, ['server/discover', 'initialize']);
});

for (const how of ['garbage', 'silence', 'exit'] as const) {
  test(`speaks the legacy era with a server that answers the probe with ${how}, and remembers silence`, async () => {
    const history: OpeningHistory = {};
    const program = fixture(`--before-initialize=${how}`);
    const first = await openStdio(program, { history, ...(how === 'silence' ? IMPATIENT : PATIENT) });
    assert.equal([first.handshake.era, history.skipsProbe], ['legacy', how === 'garbage' ? undefined : true]);
    await stillWorks(first);
    await first.close();
    // An unanswered probe would take longer than a test may.
    const again = await openStdio(program, { history, handshakeTimeoutMs: 120_000, ...PATIENT });
    assert.is(again.handshake.era, 'legacy');
    await again.close();
  });
}

test('does not probe a server again that stopped reading after the probe', async () => {
  const history: OpeningHistory = {};
  const program = fixture('--before-initialize=deaf');
  const error = await refusal(openStdio(program, { history, handshakeTimeoutMs: 900 }));
  assert.match(error.message, 'no handshake within');
  const transport = await openStdio(program, { history });
  assert.equal([transport.handshake.era, history.skipsProbe], ['legacy', true]);
  await transport.close();
});

test('speaks only the era that the registration fixes, to clients of their own, too', async () => {
  for (const era of ['legacy', 'modern'] as const) {
    const transport = await openStdio(fixture('--era=dual'), { era, ...PATIENT });
    const conversation = await transport.openConversation({
      profile: noCapability,
      signal: new AbortController().signal,
    });
    assert.equal(
      [transport.handshake.era, conversation?.handshake.era, transport.leaveEra?.()],
      [era, era, false],
    );
    await conversation?.close();
    await transport.close();
  }
  const error = await refusal(openStdio(fixture('--era=legacy'), { era: 'modern' }));
  assert.match(error.message, 'refused the handshake');
});

test('tries the legacy era first, once, after a server did not answer in the modern one', async () => {
  const history: OpeningHistory = {};
  const eras: unknown[] = [];
  for (let opening = 0; opening < 2; opening += 1) {
    const transport = await openStdio(fixture('--era=dual'), { history, ...PATIENT });
    eras.push(transport.handshake.era, transport.leaveEra?.());
    await transport.close();
  }
  assert.equal(eras, ['modern', true, 'legacy', false]);
});

test('probes a slow server again when it refuses the legacy era', async () => {
  const transport = await openStdio(fixture('--era=modern'), IMPATIENT);
  assert.is(transport.handshake.era, 'modern');
  await stillWorks(transport);
  await transport.close();
});

test('forgets an unanswered probe, so that a log line goes to the only exchange', async () => {
  const transport = await openStdio(fixture('--before-initialize=silence'), IMPATIENT);
  const { events } = await see(transport.exchange(callTool('log', { text: 'mine' })));
  const found = events.map(({ kind }) => kind);
  assert.equal(found, ['notification', 'result']);
  assert.equal(await cancelledOn(transport), [1]);
  await transport.close();
});

test('starts a broken program twice at its first opening, and once at each later one, with a probe at every other', () =>
  withStarts(async (counted, starts) => {
    const history: OpeningHistory = {};
    const breaking = counted(EXITS_WHEN_ASKED);
    const error = await refusal(openStdio(breaking, { history }));
    assert.is(error.message, 'The backend is unavailable: exited with code 3.');
    assert.equal([await starts(), history.skipsProbe], [2, false]);
    const skipped: unknown[] = [];
    for (let opening = 0; opening < 4; opening += 1) {
      await refusal(openStdio(breaking, { history }));
      skipped.push(history.skipsProbe);
    }
    assert.equal([await starts(), skipped], [6, [true, false, true, false]]);
  }));

test('starts a program in a container again if it exited when it was probed, but not if it cannot be started', async () => {
  let starts = 0;
  const runInContainer: RunInContainer = async (_container, [command], { onOutput }) => {
    starts += 1;
    if (command === 'missing') throw new Error('no such program');
    const exit = Promise.withResolvers<ProgramEnd>();
    const write: ContainerProgram['write'] = (line, done) => {
      done();
      const { id, method } = JSON.parse(line.split('\n')[0] ?? '');
      const result = { protocolVersion: '2025-11-25', capabilities: {} };
      if (method === 'server/discover') exit.resolve(exitedWith(1));
      else if (id !== undefined) onOutput(Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`));
    };
    const end = () => exit.resolve(exitedWith(0));
    return { pid: undefined, exited: exit.promise, write, endInput: end, signal: async () => end() };
  };
  const container = { engine: 'unix:///engine.sock', id: 'a'.repeat(64) };
  const history: OpeningHistory = {};
  const open = (command: string) =>
    stdio(instanceDefinition({ command, container }), openOptions({ history, programs: { runInContainer } }));
  await refusal(open('missing'));
  assert.equal([starts, history], [1, {}]);
  const transport = await open('server');
  assert.equal([starts, transport.handshake.era, history.skipsProbe], [3, 'legacy', true]);
  await transport.close();
});

test('has text that a program wrote instead of an answer among the lines of stderr', async () => {
  const code = "console.log('Missing the API key'); console.log('{\"data\":1}'); setInterval(() => {}, 1e6)";
  const error = await refusal(openStdio(node(code), { handshakeTimeoutMs: 600 }));
  assert.equal(error.facts.stderr, ['Missing the API key']);
});

test('stops the program when the opening is aborted', async () => {
  const caller = new AbortController();
  setTimeout(() => caller.abort(), 300);
  const error = await refusal(openStdio(silent(), { signal: caller.signal }));
  assert.match(error.message, 'cancelled');
  assert.not(isRunning(Number(wordsOf(error)[0])));
});

async function stillWorks(transport: Transport): Promise<void> {
  const { events } = await see(transport.exchange(callTool('echo', { text: 'still here' })));
  assert.is(textOf(events.at(-1)), 'still here');
}

/** Prints its pid and what it receives on stderr, and never answers nor stops by itself. */
function silent() {
  return node(
    "console.error(process.pid); process.stdin.on('data', (data) => console.error(String(data).trim())); setInterval(() => {}, 1e6)",
  );
}

function wordsOf({ facts }: GatewayError): readonly string[] {
  return facts.stderr ?? [];
}

test.run();
