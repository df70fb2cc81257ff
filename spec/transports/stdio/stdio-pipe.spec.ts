// What a handshake sees of a pipe: answers, and a probe that may have none. Real programs of a few lines.

import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors.ts';
import { MODERN_VERSIONS } from '../../../src/domain/mcp.ts';
import { withEraMetadata } from '../../../src/transports/handshake.ts';
import { StdioChannel } from '../../../src/transports/stdio/stdio-channel.ts';
import { StdioPipe } from '../../../src/transports/stdio/stdio-handshake.ts';
import { cancelledOn, see, until } from '../../conformance/transport.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, LADDER, withStdio } from './open-stdio.ts';

const test = suite('stdio pipe', { timeoutMs: 20_000 });

const CLIENT = { name: 'spec', version: '0' };
const PROBE = { method: 'server/discover' };
const MODERN_PROBE = withEraMetadata(PROBE, { era: 'modern', protocolVersion: MODERN_VERSIONS[0] }, CLIENT);
const SILENCE = { kind: 'none', lack: 'it did not answer server/discover' };

test('gives the answer to the probe, and leaves later requests all the time they need', () =>
  withPipe([], 10_000, async (pipe) => {
    assert.is((await pipe.request(PROBE)).kind, 'error');
    assert.is(pipe.outcome, 'answered');
    assert.is((await pipe.request({ method: 'ping' })).kind, 'result');
  }));

test('waits for a probe as long as it has patience, knows of a late answer, and does not ask again', () =>
  withPipe(['--era=modern'], 1, async (pipe) => {
    assert.equal(await pipe.request(MODERN_PROBE), SILENCE);
    assert.is(pipe.outcome, 'unanswered');
    await until(() => pipe.outcome === 'late', 'the answer came');
    assert.is((await pipe.request(PROBE)).kind, 'result', 'the program refuses this one');
  }));

test('tells when the probe has come to an end, or that it takes too long', () =>
  withPipe(['--slow-start=300'], 1, async (pipe) => {
    await pipe.settled(60_000);
    assert.equal(await pipe.request(PROBE), SILENCE);
    await pipe.settled(1);
    assert.is(pipe.outcome, 'unanswered');
  }).then(() =>
    withPipe([], 1, async (pipe) => {
      await pipe.request(PROBE);
      await pipe.settled(60_000);
      assert.is(pipe.outcome, 'answered');
    }),
  ));

test('takes a late refusal for one like any other', () =>
  withPipe([], 1, async (pipe) => {
    assert.equal(await pipe.request(PROBE), SILENCE);
    await until(() => pipe.outcome === 'answered', 'the answer came');
  }));

test('takes what is no answer for none, without waiting', () =>
  withPipe(['--before-initialize=garbage'], 10_000, async (pipe) => {
    assert.equal(await pipe.request(PROBE), SILENCE);
    assert.is(pipe.outcome, 'answered');
    assert.is(pipe.lack, 'it wrote 1 line that is no JSON-RPC, and did not answer server/discover');
  }));

test('fails with the end of the program', () =>
  withPipe(['--before-initialize=exit'], 10_000, async (pipe) => {
    const error = await pipe.request(PROBE).catch((thrown: unknown) => thrown);
    assert.is(error instanceof GatewayError && error.facts.reason, 'exited with code 1');
    assert.is(pipe.outcome, 'unanswered');
  }));

test('asks without a probe like with one', () =>
  withPipe([], undefined, async (pipe) => {
    assert.is((await pipe.request({ method: 'ping' })).kind, 'result');
    assert.is(pipe.outcome, undefined);
    pipe.forgetProbe();
  }));

test('cancels no probe that was answered', () =>
  withStdio(fixture(), async (transport) => {
    assert.equal(await cancelledOn(transport), []);
    assert.is((await see(transport.exchange({ method: 'ping' }))).end, 'completed');
  }));

test.run();

async function withPipe(
  flags: readonly string[],
  patienceMs: number | undefined,
  body: (pipe: StdioPipe) => Promise<void>,
): Promise<void> {
  const channel = new StdioChannel(fixture(...flags), { ladder: LADDER });
  try {
    await body(new StdioPipe(channel, patienceMs));
  } finally {
    await channel.close();
  }
}
