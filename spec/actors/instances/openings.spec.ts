// What one instance has open: it waits for its turn, and can be asked when the last of it is gone. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Openings } from '../../../src/actors/instances/openings.ts';
import { asGatewayError } from '../../../src/domain/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ScriptedOpener, ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { definition, settled } from './instance-harness.ts';

const test = suite('openings');
const signal = new AbortController().signal;

test('opens at once when nobody was before', async () => {
  const opener = new ScriptedOpener();
  const opened = new Openings(opener.open).open(definition(), signal);
  const transport = opener.last.succeed();
  assert.is(await opened, transport);
});

test('opens when the one before has ended', async () => {
  const opener = new ScriptedOpener();
  const before = Promise.withResolvers<void>();
  void new Openings(opener.open, before.promise).open(definition(), signal);
  await settled();
  assert.is(opener.openings.length, 0);
  before.resolve();
  await settled();
  assert.is(opener.openings.length, 1);
});

test('does not open what was called off meanwhile', async () => {
  const opener = new ScriptedOpener();
  const controller = new AbortController();
  const opening = new Openings(opener.open, new Promise(() => undefined));
  const opened = opening.open(definition(), controller.signal);
  controller.abort();
  const error = await opened.catch(asGatewayError);
  assert.equal('delivered' in error && error.delivered, 'no');
  assert.is(opener.openings.length, 0);
  await opening.close();
});

test('closes the latest, and says when it is gone', async () => {
  const opener = new ScriptedOpener();
  const openings = new Openings(opener.open);
  void openings.open(definition(), signal);
  const transport = opener.last.succeed();
  transport.closesSlowly = true;
  let isGone = false;
  void openings.close().then(() => {
    isGone = true;
  });
  await settled();
  assert.equal([transport.isClosed, isGone], [true, false]);
  transport.finishClosing();
  await settled();
  assert.is(isGone, true);
});

test('opens every time with the first definition, by which it is known what was learned, and what runs', async () => {
  const seen: unknown[] = [];
  const first = definition({ weight: 1 });
  const openings = new Openings(async (opened) => {
    seen.push(opened);
    return new ScriptedTransport();
  });
  await openings.open(first, signal);
  await openings.open({ ...first, weight: 3 }, signal);
  assert.ok(seen.every((opened) => opened === first));
  assert.is(seen.length, 2);
});

test('has nothing to close when nothing was opened, or the opening failed', async () => {
  const opener = new ScriptedOpener();
  const openings = new Openings(opener.open);
  await openings.close();
  const opened = openings.open(definition(), signal).catch(asGatewayError);
  opener.last.fail();
  await opened;
  await openings.close();
});

test('does not wait longer than 30 s for what does not close', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  const opener = new ScriptedOpener();
  const openings = new Openings(opener.open);
  void openings.open(definition(), signal);
  opener.last.succeed().closesSlowly = true;
  const closed = openings.close();
  await settled();
  mock.timers.tick(LIMITS.drainMs);
  await closed;
  mock.timers.reset();
});

test.run();
