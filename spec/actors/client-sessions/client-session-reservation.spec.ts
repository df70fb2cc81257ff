// The place of a call between two rounds: kept at the instance and in the conversation until it is left, and lost at once
// when there is nothing left to keep. What clients see of it is in spec/gateway/mcp-rounds.spec.ts.

import * as assert from 'uvu/assert';
import type { Binding } from '../../../src/actors/client-sessions/client-session-types.ts';
import { HeldReservation } from '../../../src/actors/client-sessions/held-reservation.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { ASKABLE, MODERN, PLAIN, SessionHarness, settled, simulateTime } from './client-session-harness.ts';

const test = suite('client session: stay');
let harness = new SessionHarness();
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness();
  },
);

/** A binding at `a`: a part in its conversation, or one of a client's own. */
async function pinAt(whose: 'shared' | 'own', fields: Partial<InstanceDefinition> = {}): Promise<Binding> {
  await harness.add('a', { peer: MODERN, fields });
  const profile = whose === 'own' ? ASKABLE : PLAIN;
  const wish = { template: 't', ownerId: 'ann', profile, asksForLog: false };
  const session = whose === 'own' ? 'isolated' : 'auto';
  harness.inner.fleet.govern('t', { ...harness.inner.fleet.group('t').policy, session });
  return harness.sessions.binder.settle(wish, { signal: new AbortController().signal });
}

/** Keeps a place there; `heard` is what it says to its call. */
function keep(binding: Binding | undefined, isBound = true, { goesOn = false } = {}) {
  const heard: string[] = [];
  const kept: HeldReservation = new HeldReservation({
    binding,
    ownerId: 'ann',
    goesOn,
    exchange: () => {
      throw new Error('no exchange is made here');
    },
    isBound: () => isBound,
    lost: ({ code, delivered }) => heard.push(`${code} ${delivered}`),
    left: () => heard.push('left'),
  });
  kept.watch();
  return { kept, heard };
}

function waitedFor(): number {
  return harness.ref('a').snapshot(1).inFlight;
}

for (const whose of ['shared', 'own'] as const) {
  test(`tells once that ${whose} conversation is over`, async () => {
    const binding = await pinAt(whose);
    const { heard } = keep(binding);
    harness.transport('a').lose();
    await settled();
    assert.equal([waitedFor(), heard], [0, ['BACKEND_UNAVAILABLE unknown', 'left']]);
    assert.equal(keep(binding).heard, ['BACKEND_UNAVAILABLE unknown', 'left'], 'it is over already');
    await binding.close();
  });

  test(`says nothing when the call may go on elsewhere than in ${whose} conversation`, async () => {
    const binding = await pinAt(whose);
    const { kept, heard } = keep(binding, false);
    harness.transport('a').lose();
    await settled();
    assert.equal([waitedFor(), heard], [0, []]);
    kept.leave();
    await binding.close();
  });
}

test('tells when a conversation of its own ends, and the instance goes on', async () => {
  const binding = await pinAt('own');
  const { heard } = keep(binding);
  harness.upstreams('a')[0]?.lose();
  assert.equal([harness.ref('a').state, heard], ['healthy', ['BACKEND_UNAVAILABLE unknown', 'left']]);
});

test('is lost where its owner has too many places, unless its call has one already', async () => {
  const binding = await pinAt('own');
  const share = LIMITS.parkedCalls * LIMITS.ownerShare;
  const all = Array.from({ length: share }, () => keep(binding, false));
  assert.equal(
    all.flatMap(({ heard }) => heard),
    [],
  );
  assert.equal(keep(binding, false).heard, ['QUEUE_FULL unknown', 'left']);
  const next = keep(binding, false, { goesOn: true });
  assert.equal([next.heard, waitedFor()], [[], share + 1]);
  for (const { kept } of [...all, next]) kept.leave();
  assert.is(waitedFor(), 0);
});

test.run();
