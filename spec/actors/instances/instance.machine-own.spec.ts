// What stands alone at an instance, which are the processes of single clients: it goes on when the shared process does not, and
// ends with its instance, or when somebody has that restarted.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { LIMITS, OWN_BOUNDS } from '../../../src/domain/limits.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { CHILD, type Harness, onHarness, openOwn, settled } from './instance-harness.ts';

const test = suite('instance machine, own');
const declare = onHarness(test);
const check = (sentence: string, body: (stage: Harness) => Promise<void>) =>
  declare(sentence, body, { definition: CHILD });

check(
  'goes on, with its calls, while the shared process is lost, waits, opens and is back',
  async (stage) => {
    const transport = await stage.healthy(withOwn());
    const { own, scripted } = await open(stage, transport);
    const before = call(stage, own);
    transport.closesSlowly = true;
    transport.lose();
    await settled();
    assert.equal([stage.ref.state, stage.ref.takes(own), stage.ref.takes()], ['unhealthy', true, false]);
    const lost = call(stage, own);
    transport.finishClosing();
    await settled();
    assert.is(stage.actor.getSnapshot().value.connection, 'waiting');
    const waiting = call(stage, own);
    await stage.pass(500);
    assert.equal([stage.ref.state, stage.ref.takes(own)], ['starting', true]);
    const starting = call(stage, own);
    await stage.healthy(withOwn());
    assert.is(stage.ref.inFlight, 4);
    for (const exchange of scripted.open) exchange.result();
    for (const caller of [before, lost, waiting, starting])
      assert.equal([caller.ends, caller.error], [1, undefined]);
    const { requests, errors, inFlight } = stage.ref.snapshot(0);
    assert.equal([requests, errors, inFlight, scripted.isClosed], [4, 0, 0, false]);
  },
);

check('leaves the shared process room for a reserve, whichever life of it they began in', async (stage) => {
  const transport = await stage.healthy(withOwn());
  const { processes } = OWN_BOUNDS;
  assert.is(stage.opener.last.room(), processes);
  const { scripted } = await open(stage, transport);
  transport.lose();
  await settled();
  await stage.pass(500);
  assert.equal([stage.opener.openings.length, stage.opener.last.room()], [2, processes - 1]);
  scripted.lose();
  await settled();
  assert.is(stage.opener.last.room(), processes);
});

check('does not end when an unhealthy shared process is given up', async (stage) => {
  const transport = await stage.healthy(withOwn());
  const { own, scripted } = await open(stage, transport);
  transport.onExchange = (exchange) =>
    exchange.fail(backendUnavailable('it is sick', { delivered: 'unknown' }));
  for (let ms = 0; !transport.isClosed; ms += 1_000) {
    assert.ok(ms < 1_000_000, 'it is given up');
    await stage.pass(1_000);
  }
  assert.equal([scripted.isClosed, stage.ref.takes(own)], [false, true]);
});

check('takes nothing new while its instance is drained, and goes on', async (stage) => {
  const { own, scripted } = await open(stage, await stage.healthy(withOwn()));
  stage.ref.drain();
  assert.equal([stage.ref.takes(own), scripted.isClosed], [false, false]);
  stage.ref.resume();
  assert.is(stage.ref.takes(own), true);
});

for (const isLost of [false, true]) {
  const how = isLost ? ' although the shared process waits to be started' : '';

  check(`ends when the instance is restarted by hand${how}, before that opens again`, async (stage) => {
    const { own, scripted } = await openAnd(isLost, stage);
    scripted.closesSlowly = true;
    stage.ref.restart();
    await settled();
    assert.equal([scripted.isClosed, stage.ref.takes(own), stage.opener.openings.length], [true, false, 1]);
    scripted.finishClosing();
    await settled();
    assert.equal([stage.opener.openings.length, stage.ref.state], [2, 'starting']);
  });

  check(`ends when the instance leaves${how}, before that is stopped`, async (stage) => {
    const { scripted } = await openAnd(isLost, stage);
    scripted.closesSlowly = true;
    stage.ref.leave(0);
    await settled();
    assert.equal([scripted.isClosed, stage.ref.state], [true, 'draining']);
    scripted.finishClosing();
    await settled();
    assert.is(stage.ref.state, 'stopped');
  });

  check(`is waited for 30 s when the instance leaves${how}`, async (stage) => {
    const { scripted } = await openAnd(isLost, stage);
    scripted.closesSlowly = true;
    stage.ref.leave(0);
    await stage.pass(LIMITS.drainMs - 1);
    assert.is(stage.ref.state, 'draining');
    await stage.pass(1);
    assert.is(stage.ref.state, 'stopped');
  });
}

check('says that it is reopening while it is being restarted from its wait, call by call', async (stage) => {
  const { own, scripted } = await openAnd(true, stage);
  call(stage, own);
  scripted.closesSlowly = true;
  stage.ref.restart();
  await settled();
  assert.equal([stage.ref.state, stage.ref.isReopening], ['draining', false]);
  scripted.last.result();
  await settled();
  assert.equal([stage.ref.state, stage.ref.isReopening, stage.ref.takes(own)], ['unhealthy', true, false]);
  scripted.finishClosing();
  await settled();
  assert.equal([stage.ref.state, stage.ref.isReopening], ['starting', false]);
});

check('leaves also when it is to while it is being restarted', async (stage) => {
  const { scripted } = await openAnd(true, stage);
  scripted.closesSlowly = true;
  stage.ref.restart();
  await settled();
  stage.ref.leave(0);
  scripted.finishClosing();
  await settled();
  assert.equal([stage.ref.state, stage.opener.openings.length], ['stopped', 1]);
});

check(
  'has no shared process started any more while its instance leaves and waits for a call in it',
  async (stage) => {
    const { own, scripted } = await openAnd(true, stage);
    const caller = call(stage, own);
    stage.ref.leave(LIMITS.drainMs);
    await stage.pass(LIMITS.drainMs - 1);
    assert.equal([stage.ref.state, stage.opener.openings.length, caller.ends], ['draining', 1, 0]);
    scripted.last.result();
    await settled();
    assert.equal([stage.ref.state, caller.error, scripted.isClosed], ['stopped', undefined, true]);
  },
);

check('refuses what is to go through the shared process meanwhile', async (stage) => {
  const { scripted } = await openAnd(true, stage);
  scripted.closesSlowly = true;
  stage.ref.restart();
  await settled();
  const caller = stage.call();
  assert.equal([caller.ends, caller.error?.delivered, stage.ref.inFlight], [1, 'no', 0]);
  scripted.finishClosing();
});

check('proves nothing of the life of the shared process', async (stage) => {
  const { own, scripted } = await open(stage, await stage.healthy(withOwn()));
  call(stage, own);
  await stage.pass(10_000);
  scripted.last.notify('notifications/progress');
  await stage.pass(25_000);
  assert.is(stage.probes, 1, 'it is asked all the same');
});

check('costs one call when it breaks the rules', async (stage) => {
  const { own, scripted } = await open(stage, await stage.healthy(withOwn()));
  scripted.thrownByExchange = new Error('broken');
  const caller = call(stage, own);
  assert.equal([caller.ends, caller.error?.delivered, stage.ref.inFlight], [1, 'unknown', 0]);
  assert.is(stage.ref.state, 'healthy');
});

check('ends although the actor of its instance broke', async (stage) => {
  const { scripted } = await open(stage, await stage.healthy(withOwn()));
  stage.actor.stop();
  assert.is(scripted.isClosed, false);
  await stage.ref.endOwn();
  assert.is(scripted.isClosed, true);
});

check('is waited for 30 s then, too', async (stage) => {
  const { scripted } = await open(stage, await stage.healthy(withOwn()));
  scripted.closesSlowly = true;
  stage.actor.stop();
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  try {
    let isOver = false;
    const ending = stage.ref.endOwn().then(() => {
      isOver = true;
    });
    mock.timers.tick(LIMITS.drainMs - 1);
    await settled();
    assert.is(isOver, false);
    mock.timers.tick(1);
    await ending;
  } finally {
    mock.timers.reset();
    scripted.finishClosing();
  }
});

check(
  'is called off while it is being opened, and not left behind when it comes nevertheless',
  async (stage) => {
    const transport = await stage.healthy(withOwn());
    const held = Promise.withResolvers<ScriptedTransport>();
    let ending: AbortSignal | undefined;
    transport.openUpstream = (_, signal) => {
      ending = signal;
      return held.promise;
    };
    const opening = codeOf(openOwn(stage.ref, PROFILE));
    stage.ref.leave(0);
    await settled();
    assert.equal([ending?.aborted, stage.ref.state], [true, 'draining']);
    const late = new ScriptedTransport();
    held.resolve(late);
    assert.is(await opening, 'BACKEND_UNAVAILABLE');
    await settled();
    assert.equal([late.isClosed, stage.ref.state], [true, 'stopped']);
  },
);

test.run();

const PROFILE = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} };

function withOwn(): ScriptedTransport {
  const transport = new ScriptedTransport();
  transport.kind = 'stdio';
  transport.ownStandsAlone = true;
  return transport;
}

async function open(stage: Harness, transport: ScriptedTransport) {
  const own = await openOwn(stage.ref, PROFILE);
  const [scripted] = transport.upstreams;
  assert.ok(own !== undefined && scripted !== undefined);
  return { own, scripted };
}

async function openAnd(isLost: boolean, stage: Harness) {
  const transport = await stage.healthy(withOwn());
  const opened = await open(stage, transport);
  if (isLost) transport.lose();
  await settled();
  return opened;
}

function call(stage: Harness, own: Upstream) {
  return stage.call(undefined, undefined, own);
}
