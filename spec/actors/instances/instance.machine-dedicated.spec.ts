// Dedicated processes at an instance: they continue when the shared process is lost, and end with their
// instance, or when it is restarted by command.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Conversation } from '../../../src/transports/transport.ts';
import { openOwn } from '../../helpers/backends/harness.ts';
import { STDIO } from '../../helpers/backends/profiles.ts';
import { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from '../../helpers/time/simulated-time.ts';
import { type InstanceHarness, onHarness } from './instance-harness.ts';

const test = suite('instance machine, dedicated processes');
const declare = onHarness(test);
const check = (sentence: string, body: (harness: InstanceHarness) => Promise<void>) =>
  declare(sentence, body, { fields: STDIO });

check(
  'continue with their calls while the shared process is lost, waits, and opens again',
  async (harness) => {
    const transport = await harness.healthy(withOwn());
    const { own, scripted } = await open(harness, transport);
    const before = call(harness, own);
    transport.closesSlowly = true;
    transport.disconnect();
    await settled();
    const found = [harness.ref.state, harness.ref.acceptsCalls(own), harness.ref.acceptsCalls()];
    assert.equal(found, ['unhealthy', true, false]);
    const lost = call(harness, own);
    transport.finishClosing();
    await settled();
    assert.is(harness.actor.getSnapshot().value.connection, 'waiting');
    const waiting = call(harness, own);
    await harness.pass(500);
    assert.equal([harness.ref.state, harness.ref.acceptsCalls(own)], ['starting', true]);
    const starting = call(harness, own);
    await harness.healthy(withOwn());
    assert.is(harness.ref.activeCalls, 4);
    for (const exchange of scripted.open) exchange.result();
    for (const caller of [before, lost, waiting, starting])
      assert.equal([caller.ends, caller.error], [1, undefined]);
    assert.equal([harness.ref.activeCalls, scripted.isClosed], [0, false]);
  },
);

for (const isLost of [false, true]) {
  const how = isLost ? ' although the shared process waits to be started' : '';

  check(`end when the instance is restarted by command${how}, before it opens again`, async (harness) => {
    const { own, scripted } = await openAnd(isLost, harness);
    scripted.closesSlowly = true;
    harness.ref.restart();
    await settled();
    const found = [scripted.isClosed, harness.ref.acceptsCalls(own), harness.scripted.openings.length];
    assert.equal(found, [true, false, 1]);
    scripted.finishClosing();
    await settled();
    assert.equal([harness.scripted.openings.length, harness.ref.state], [2, 'starting']);
  });

  check(`end when the instance leaves${how}, before it is stopped`, async (harness) => {
    const { scripted } = await openAnd(isLost, harness);
    scripted.closesSlowly = true;
    harness.ref.leave(0);
    await settled();
    assert.equal([scripted.isClosed, harness.ref.state], [true, 'draining']);
    scripted.finishClosing();
    await settled();
    assert.is(harness.ref.state, 'stopped');
  });

  check(`have at most 30 s to close when the instance leaves${how}`, async (harness) => {
    const { scripted } = await openAnd(isLost, harness);
    scripted.closesSlowly = true;
    harness.ref.leave(0);
    await settled();
    await harness.pass(LIMITS.drainMs - 1);
    assert.is(harness.ref.state, 'draining');
    await harness.pass(1);
    assert.is(harness.ref.state, 'stopped');
  });
}

check(
  'calls in one delay the end of a leaving instance, whose shared process is not started again',
  async (harness) => {
    const { own, scripted } = await openAnd(true, harness);
    const caller = call(harness, own);
    harness.ref.leave(LIMITS.drainMs);
    await harness.pass(LIMITS.drainMs - 1);
    assert.equal([harness.ref.state, harness.scripted.openings.length, caller.ends], ['draining', 1, 0]);
    scripted.last.result();
    await settled();
    assert.equal([harness.ref.state, caller.error, scripted.isClosed], ['stopped', undefined, true]);
  },
);

for (const command of ['leave', 'restart'] as const) {
  declare(`calls in one go on while its HTTP instance leaves after a late ${command}`, async (harness) => {
    const transport = await harness.healthy(withOwn());
    const { own, scripted } = await open(harness, transport);
    const caller = call(harness, own);
    transport.closesSlowly = true;
    if (command === 'leave') harness.ref.leave(LIMITS.drainMs);
    else harness.ref.restart();
    await harness.pass(LIMITS.drainMs);
    harness.ref.leave(10_000);
    transport.finishClosing();
    await settled();
    assert.equal([harness.scripted.openings.length, caller.ends], [1, 0], 'it is not opened again');
    scripted.last.result();
    assert.equal([harness.ref.state, caller.error], ['stopped', undefined]);
  });
}

check(
  'an opening is aborted when the instance leaves, and closed if it succeeds nevertheless',
  async (harness) => {
    const transport = await harness.healthy(withOwn());
    const held = Promise.withResolvers<ScriptedTransport>();
    let ending: AbortSignal | undefined;
    transport.openConversation = ({ signal }) => {
      ending = signal;
      return held.promise;
    };
    const opening = codeOf(openOwn(harness.ref));
    harness.ref.leave(0);
    await settled();
    assert.equal([ending?.aborted, harness.ref.state], [true, 'draining']);
    const late = new ScriptedTransport();
    held.resolve(late);
    assert.is(await opening, 'BACKEND_UNAVAILABLE');
    await settled();
    assert.equal([late.isClosed, harness.ref.state], [true, 'stopped']);
  },
);

test.run();

function withOwn(): ScriptedTransport {
  const transport = new ScriptedTransport();
  transport.conversationsAreIndependent = true;
  return transport;
}

async function open(harness: InstanceHarness, transport: ScriptedTransport) {
  const own = await openOwn(harness.ref);
  const [scripted] = transport.conversations;
  assert.ok(own !== undefined && scripted !== undefined);
  return { own, scripted };
}

async function openAnd(isLost: boolean, harness: InstanceHarness) {
  const transport = await harness.healthy(withOwn());
  const opened = await open(harness, transport);
  if (isLost) transport.disconnect();
  await settled();
  return opened;
}

function call(harness: InstanceHarness, own: Conversation) {
  return harness.call(undefined, undefined, own);
}
