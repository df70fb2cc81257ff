// When somebody is the only caller, and for how long two are mixed.

import * as assert from 'uvu/assert';
import { LoneCaller } from '../../../src/transports/handshake.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('lone caller');

function harness() {
  const clock = { nowMs: 0 };
  return { clock, lone: new LoneCaller(() => clock.nowMs) };
}

test('is the first one, however often they call, and whoever probes', () => {
  const { lone } = harness();
  assert.is(lone.isAlone, true);
  for (const caller of ['ada', undefined, 'ada', undefined]) {
    lone.note(caller);
    assert.is(lone.isAlone, true);
  }
});

test('is nobody for a minute after somebody else began to call', () => {
  const { clock, lone } = harness();
  lone.note('ada');
  clock.nowMs = 10;
  lone.note('bo');
  assert.is(lone.isAlone, false);
  clock.nowMs = 60_009;
  assert.is(lone.isAlone, false);
  lone.note('bo');
  clock.nowMs = 60_010;
  assert.is(lone.isAlone, true);
});

test('is nobody while two take turns', () => {
  const { clock, lone } = harness();
  for (const caller of ['ada', 'bo', 'ada']) {
    lone.note(caller);
    clock.nowMs += 50_000;
  }
  assert.is(lone.isAlone, false);
});

test.run();
