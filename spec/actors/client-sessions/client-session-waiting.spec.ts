// Requests that wait for a binding: each is answered once.

import * as assert from 'uvu/assert';
import type { Waiter } from '../../../src/actors/client-sessions/client-session-types.ts';
import { BindingWaiters } from '../../../src/actors/client-sessions/session-binding.ts';
import { queueFull } from '../../../src/domain/error-catalogue.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { SessionHarness } from './client-session-harness.ts';

const test = suite('client session: waiting');
const harness = new SessionHarness();

test.before(async () => {
  await harness.add('a');
});
test.after(() => harness.close());

test('refuses only requests that need a dedicated conversation', () => {
  const waiting = new BindingWaiters();
  const heard: string[] = [];
  waiting.add(waiter(heard, 'one', true));
  waiting.add(waiter(heard, 'two'));
  assert.is(waiting.needsOwn, true);
  waiting.fail(queueFull('t'));
  waiting.resume(binding());
  assert.equal(heard, ['one QUEUE_FULL', 'two a']);
  assert.is(waiting.needsOwn, false);
});

test('takes no more than there is room for', () => {
  const waiting = new BindingWaiters();
  for (let n = 0; n < LIMITS.queuedPerInstance; n += 1) assert.is(waiting.add(waiter([], '')), true);
  assert.is(waiting.add(waiter([], '')), false);
});

test.run();

function waiter(heard: string[], name: string, needsOwn = false): Waiter {
  return {
    needsOwn,
    bound: ({ ref }) => heard.push(`${name} ${ref.id}`),
    refused: ({ code }) => heard.push(`${name} ${code}`),
  };
}

function binding() {
  const ref = harness.ref('a');
  if (ref.peer === undefined) throw new Error('not connected');
  return harness.sessions.binder.shared.join(ref, ref.peer);
}
