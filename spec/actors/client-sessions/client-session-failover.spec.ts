// What becomes of sessions whose instance is lost, by `session_failover` and by what they have done: they go on elsewhere,
// or end. Those that finish first are in client-session-finishing.spec.ts.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { isSafe } from '../../../src/actors/client-sessions/client-state.ts';
import type { SessionFailover } from '../../../src/domain/policy.ts';
import { suite } from '../../helpers/suite.ts';
import {
  answers,
  ask,
  FULL,
  PLAIN,
  resultOf,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: failover');
let harness = new SessionHarness();
simulateTime(test, () => harness.close());

/** Ways to lose an instance; after each of them it may not be used. */
const LOSSES: Readonly<Record<string, (id: string) => unknown>> = {
  'its process dies': (id) => harness.transport(id).lose(),
  'it is drained': (id) => harness.ref(id).drain(),
  'it leaves': (id) => void harness.inner.fleet.remove('t', id, 0),
};

for (const [loss, lose] of Object.entries(LOSSES)) {
  for (const [failover, tool, isKept] of [
    ['auto', 'read', true],
    ['auto', 'again', true],
    ['auto', 'write', false],
    ['always', 'read', true],
    ['always', 'write', true],
    ['never', 'read', false],
    ['never', 'write', false],
  ] as const) {
    const outcome = isKept ? 'goes on elsewhere' : 'ends';
    test(`with failover ${failover}, after a call of "${tool}", ${outcome} when ${loss}`, async () => {
      const session = await openOnA(failover);
      await resultOf(ask(session, tool));
      lose('a');
      await settled();
      const call = ask(session, 'read');
      if (isKept) {
        assert.is(await resultOf(call), 'b');
        assert.is(harness.sessions.find(session.id), session);
      } else {
        assert.is(codeOf(await call.end), 'SESSION_NOT_FOUND');
        assert.is(harness.sessions.find(session.id), undefined);
      }
    });
  }
}

test('knows by its method and by its tool what may be made twice', async () => {
  harness = new SessionHarness();
  const ref = await harness.add('a');
  const safe = ['tools/list', 'resources/read', 'ping', 'completion/complete', 'logging/setLevel'];
  const unsafe = ['tasks/cancel', 'tools/call', 'constructor'];
  assert.equal(
    safe.map((method) => isSafe({ method }, ref)),
    safe.map(() => true),
  );
  assert.equal(
    unsafe.map((method) => isSafe({ method }, ref)),
    unsafe.map(() => false),
  );
});

test.run();

/** A session on `a`, with `b` beside it. */
async function openOnA(sessionFailover: SessionFailover): Promise<ClientSession> {
  harness = new SessionHarness({ policy: { sessionFailover } });
  await harness.add('a', { peer: FULL, script: answers('a') });
  const session = await harness.open(PLAIN);
  await harness.add('b', { peer: FULL, script: answers('b') });
  return session;
}

function codeOf(end: string | Error | undefined): string {
  return end instanceof Error && 'code' in end ? String(end.code) : String(end);
}
