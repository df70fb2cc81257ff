// Whenever an instance is asked to leave or is stopped from above: it ends, its callers are answered, nothing stays open.
// The moments are those of the table below; what it does while it lives is in the other specs of the machine.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, end');
const check = onHarness(test);

/** Every moment in which an instance can be asked to leave. What is behind `leave` may still have to be settled. */
const moments: Readonly<Record<string, (harness: Harness) => Promise<(() => void) | undefined>>> = {
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
  'while it is probed': async (harness) => {
    await harness.healthy();
    await harness.pass(30_000);
    return undefined;
  },
  'while it is unhealthy': async (harness) => {
    const transport = await harness.healthy();
    transport.onExchange = (probe) => probe.refuse(-1);
    for (const ms of [30_000, 1_000]) await harness.pass(ms);
    assert.is(harness.ref.state, 'unhealthy');
    return undefined;
  },
  'while a lost session closes': async (harness) => {
    const transport = await harness.healthy();
    transport.closesSlowly = true;
    transport.lose();
    await settled();
    return () => transport.finishClosing();
  },
  'while it waits for calls before it restarts': async (harness) => {
    await harness.healthy();
    harness.call();
    harness.ref.restart();
    return undefined;
  },
  'while it closes for a restart': async (harness) => {
    const transport = await harness.healthy();
    transport.closesSlowly = true;
    harness.ref.restart();
    await settled();
    return () => transport.finishClosing();
  },
};

for (const [moment, arrange] of Object.entries(moments)) {
  check(`stops when it has to leave ${moment}`, async (harness) => {
    const settle = await arrange(harness);
    const caller = harness.call();
    harness.ref.leave(0);
    await harness.pass(0);
    settle?.();
    await settled();
    assert.is(harness.ref.state, 'stopped');
    assert.is(harness.states.at(-1), 'stopped');
    assert.is(caller.ends, 1);
    assert.equal(
      harness.opener.transports.map(({ isClosed }) => isClosed),
      harness.opener.transports.map(() => true),
    );
    await harness.pass(3_600_000);
    assert.is(harness.opener.openings.length, 1);
  });

  check(`leaves nothing open when it is stopped from above ${moment}`, async (harness) => {
    const settle = await arrange(harness);
    const caller = harness.call();
    harness.actor.stop();
    settle?.();
    await settled();
    assert.equal([harness.ref.state, harness.states.at(-1), caller.ends], ['stopped', 'stopped', 1]);
    assert.ok(harness.opener.transports.every(({ isClosed }) => isClosed));
    assert.ok(
      harness.opener.openings.every(({ signal }) => signal.aborted || harness.opener.transports.length > 0),
    );
  });
}

check('stops although the closing never ends', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  harness.ref.leave(0);
  await harness.pass(LIMITS.drainMs - 1);
  assert.is(harness.ref.state, 'draining');
  await harness.pass(1);
  assert.is(harness.ref.state, 'stopped');
});

test.run();
