// Whenever an instance is asked to leave or is stopped from above: it ends, its callers are answered, nothing stays open.
// The moments are those of the table below; what it does while it lives is in the other specs of the machine.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, end');
const check = onHarness(test);

/** Every moment in which an instance can be asked to leave. What is behind `leave` may still have to be settled. */
const moments: Readonly<Record<string, (stage: Harness) => Promise<(() => void) | undefined>>> = {
  'while it opens': async () => undefined,
  'while it opens and does not heed the signal': async ({ opener }) => {
    opener.heedsSignal = false;
    return () => opener.last.succeed();
  },
  'while it waits to open again': async ({ opener }) => {
    opener.last.fail();
    await settled();
    return undefined;
  },
  'while it is healthy': async (stage) => {
    await stage.healthy();
    return undefined;
  },
  'while it is probed': async (stage) => {
    await stage.healthy();
    await stage.pass(30_000);
    return undefined;
  },
  'while it is unhealthy': async (stage) => {
    const transport = await stage.healthy();
    transport.onExchange = (probe) => probe.refuse(-1);
    for (const ms of [30_000, 1_000]) await stage.pass(ms);
    assert.is(stage.ref.state, 'unhealthy');
    return undefined;
  },
  'while a lost session closes': async (stage) => {
    const transport = await stage.healthy();
    transport.closesSlowly = true;
    transport.lose();
    await settled();
    return () => transport.finishClosing();
  },
  'while it drains': async (stage) => {
    await stage.healthy();
    stage.ref.drain();
    return undefined;
  },
  'while it waits for calls before it restarts': async (stage) => {
    await stage.healthy();
    stage.call();
    stage.ref.restart();
    return undefined;
  },
  'while it closes for a restart': async (stage) => {
    const transport = await stage.healthy();
    transport.closesSlowly = true;
    stage.ref.restart();
    await settled();
    return () => transport.finishClosing();
  },
  'while it leaves already': async (stage) => {
    await stage.healthy();
    stage.call();
    stage.ref.leave(60_000);
    return undefined;
  },
};

for (const [moment, arrange] of Object.entries(moments)) {
  check(`stops when it has to leave ${moment}`, async (stage) => {
    const settle = await arrange(stage);
    const caller = stage.call();
    stage.ref.leave(0);
    await stage.pass(0);
    settle?.();
    await settled();
    assert.is(stage.ref.state, 'stopped');
    assert.is(stage.states.at(-1), 'stopped');
    assert.is(caller.ends, 1);
    assert.equal(
      stage.opener.transports.map(({ isClosed }) => isClosed),
      stage.opener.transports.map(() => true),
    );
    await stage.pass(3_600_000);
    assert.is(stage.opener.openings.length, 1);
  });

  check(`leaves nothing open when it is stopped from above ${moment}`, async (stage) => {
    const settle = await arrange(stage);
    const caller = stage.call();
    stage.actor.stop();
    settle?.();
    await settled();
    assert.equal([stage.ref.state, stage.states.at(-1), caller.ends], ['stopped', 'stopped', 1]);
    assert.ok(stage.opener.transports.every(({ isClosed }) => isClosed));
    assert.ok(
      stage.opener.openings.every(({ signal }) => signal.aborted || stage.opener.transports.length > 0),
    );
  });
}

check('calls off an opening, and closes what it brings nevertheless', async (stage) => {
  stage.opener.heedsSignal = false;
  stage.ref.restart();
  stage.ref.leave(0);
  await settled();
  const late = new ScriptedTransport();
  stage.opener.last.succeed(late);
  await settled();
  assert.is(stage.opener.openings.length, 1);
  assert.equal([late.isClosed, late.exchanges.length, stage.ref.state], [true, 0, 'stopped']);
});

check('stops although an opening never ends, and closes what it brings much later', async (stage) => {
  stage.opener.heedsSignal = false;
  stage.ref.leave(0);
  await stage.pass(LIMITS.drainMs);
  assert.is(stage.ref.state, 'stopped');
  assert.is(stage.opener.last.signal.aborted, true);
  const late = stage.opener.last.succeed();
  await settled();
  assert.is(late.isClosed, true);
});

check('stops although the closing never ends', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  stage.ref.leave(0);
  await stage.pass(LIMITS.drainMs - 1);
  assert.is(stage.ref.state, 'draining');
  await stage.pass(1);
  assert.is(stage.ref.state, 'stopped');
});

test.run();
