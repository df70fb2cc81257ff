// How many sessions of other lives are read and claimed at the same time, and for which callers.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { SessionKeeper } from '../../../../src/actors/sessions/rows/session-keeper.ts';
import { SessionRecovery } from '../../../../src/actors/sessions/rows/session-recovery.ts';
import { rowKeyOf } from '../../../../src/actors/sessions/rows/stored-row.ts';
import { newSession } from '../../../../src/actors/sessions/session-transitions.ts';
import { hasCode } from '../../../../src/domain/errors/errors.ts';
import { sessionLost } from '../../../../src/domain/errors/session-errors.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { NotHolder } from '../../../../src/domain/nodes/forwarding.ts';
import { newLife, newSessionId } from '../../../../src/domain/nodes/life.ts';
import type { RecoverySteps } from '../../../../src/domain/sessions/all-sessions.ts';
import type { SessionHolders } from '../../../../src/domain/sessions/session-holder.ts';
import { type AnySessionValue, writeSession } from '../../../../src/domain/sessions/session-value.ts';
import { MemoryStore } from '../../../../src/persistence/memory/memory-store.ts';
import type { SessionStore } from '../../../../src/persistence/store.ts';
import { KEPT } from '../../../helpers/backends/harness.ts';
import { PLAIN } from '../../../helpers/backends/profiles.ts';
import { suite } from '../../../helpers/suite.ts';
import { alarmsOf, simulatedClock } from '../../../helpers/time/simulated-time.ts';

const test = suite('sessions that are being read');
const MOST = 25_000;
const PAUSE_MS = 50;

/** The steps of an endpoint that can recover every session. */
const recoverAs = (make: (generation: number) => void): RecoverySteps<AnySessionValue> => ({
  isOwn: (_value): _value is AnySessionValue => true,
  check: async () => {},
  make: (_value, generation) => make(generation),
});

test('one caller takes no more than its share, and has it again afterwards', async () => {
  const answered = Promise.withResolvers<void>();
  const { sessions } = new MemoryStore();
  const read = (keys: readonly string[]) => answered.promise.then(() => sessions.read(keys));
  const store = { ...sessions, read };
  const keeper = new SessionKeeper({ store, node: 'n', life: newLife(), ...KEPT, clock: simulatedClock });
  const recovery = new SessionRecovery(keeper, {});
  const before = newLife();
  const recover = (ownerId: string) =>
    recovery.recover(
      newSessionId(before),
      ownerId,
      recoverAs(() => {}),
    );
  const own = Array.from({ length: MOST * LIMITS.ownerShare }, () => recover('user:ann'));
  assert.throws(
    () => recover('user:ann'),
    (thrown: Error) =>
      hasCode(thrown, 'QUEUE_FULL') && /This caller has too many sessions .* \(\d+\)/.test(thrown.message),
  );
  const other = recover('user:bob');
  assert.ok(other);
  answered.resolve();
  await Promise.all([...own, other]);
  assert.is(await recover('user:ann'), undefined);
});

test('a session that is not stored is waited for while its node may store it, and is unknown after that', async () => {
  const { sessions } = new MemoryStore();
  const before = newLife();
  let isAwaited = true;
  const mayBeStoredLater = async (life: string) => isAwaited && life === before;
  const own = {
    store: sessions,
    node: 'n',
    life: newLife(),
    ...KEPT,
    clock: simulatedClock,
    holders: { mayBeStoredLater },
  };
  const recovery = new SessionRecovery(new SessionKeeper(own), {});
  const id = newSessionId(before);
  const recover = () =>
    recovery.recover(
      id,
      'user:ann',
      recoverAs(() => {}),
    );
  const outcome = await recover()?.catch((thrown: unknown) => thrown);
  assert.ok(outcome instanceof NotHolder);
  assert.is(outcome.life, before);
  isAwaited = false;
  const later = recover();
  assert.ok(later, 'it is looked for again');
  await later;
  assert.is(recover(), undefined);
});

test('of a session that cannot be recovered the row stays while other nodes would wait for it, so that none does', async () => {
  const { sessions } = new MemoryStore();
  const before = newLife();
  const id = newSessionId(before);
  const value = writeSession(newSession('t', 'user:ann', PLAIN));
  const row = { node: 'm', life: before, generation: 1, value, usedAt: new Date(0).toISOString() };
  await sessions.insert([{ ...row, key: rowKeyOf(id) }]);
  let mayReturn = true;
  const holders: SessionHolders = {
    decideSession: async () => ({ do: 'claim' }),
    mayBeStoredLater: async (life) => mayReturn && life === before,
  };
  /** What a node says about it, and whether there is a row then. */
  const refused = async (node: string): Promise<readonly unknown[]> => {
    const own = { store: sessions, node, life: newLife(), ...KEPT, clock: simulatedClock, holders };
    const check = () => Promise.reject(sessionLost('its backend does not know it any more'));
    const steps = { ...recoverAs(() => assert.unreachable()), check };
    const recovering = new SessionRecovery(new SessionKeeper(own), {}).recover(id, 'user:ann', steps);
    const outcome = await recovering?.catch((thrown: Error) => thrown.message);
    return [outcome, (await sessions.read([rowKeyOf(id)])).length];
  };
  assert.equal([await refused('a'), await refused('b')], Array(2).fill([undefined, 1]));
  mayReturn = false;
  assert.equal([await refused('a'), await refused('b')], Array(2).fill([undefined, 0]));
});

test('the rows of many sessions are read and claimed a hundred at a time', async () => {
  const { sessions } = new MemoryStore();
  const [before, life] = [newLife(), newLife()];
  const ids = Array.from({ length: 250 }, () => newSessionId(before));
  const value = writeSession(newSession('t', 'user:ann', PLAIN));
  const row = { node: 'n', life: before, generation: 1, value, usedAt: new Date(0).toISOString() };
  await sessions.insert(ids.map((id) => ({ ...row, key: rowKeyOf(id) })));
  const groups: Record<'read' | 'claim', number[]> = { read: [], claim: [] };
  const store: SessionStore = {
    ...sessions,
    read: (keys) => {
      groups.read.push(keys.length);
      return sessions.read(keys);
    },
    claim: (rows, next) => {
      groups.claim.push(rows.length);
      return sessions.claim(rows, next);
    },
  };
  const keeper = new SessionKeeper({ store, node: 'n', life, ...KEPT, clock: simulatedClock });
  const recovery = new SessionRecovery(keeper, {});
  const generations: number[] = [];
  const steps = recoverAs((generation) => void generations.push(generation));
  await Promise.all(ids.map((id) => recovery.recover(id, 'user:ann', steps)));
  assert.equal(new Set(generations), new Set([2]));
  assert.is(generations.length, 250);
  assert.equal(keeper.counts.claims, { won: 250, lost: 0 });
  for (const sizes of Object.values(groups)) assert.ok(Math.max(...sizes) === 100, String(sizes));
  for (const sizes of Object.values(groups)) assert.ok(sizes.length <= 4, String(sizes));
});

test('sessions that come one after the other within a moment share their statements', async () => {
  const { sessions } = new MemoryStore();
  const [before, life] = [newLife(), newLife()];
  const ids = Array.from({ length: 20 }, () => newSessionId(before));
  const value = writeSession(newSession('t', 'user:ann', PLAIN));
  const row = { node: 'n', life: before, generation: 1, value, usedAt: new Date(0).toISOString() };
  await sessions.insert(ids.map((id) => ({ ...row, key: rowKeyOf(id) })));
  const claims: number[] = [];
  const claim: SessionStore['claim'] = (rows, next) => {
    claims.push(rows.length);
    return sessions.claim(rows, next);
  };
  const { clock, ring } = alarmsOf(PAUSE_MS);
  const keeper = new SessionKeeper({ store: { ...sessions, claim }, node: 'n', life, ...KEPT, clock });
  const recovery = new SessionRecovery(keeper, {});
  let recovered = 0;
  const steps = recoverAs(() => {
    recovered += 1;
  });
  const all: unknown[] = [];
  for (const id of ids) {
    all.push(recovery.recover(id, 'user:ann', steps));
    await turn();
  }
  assert.is(recovered, 1); // it waited for nothing
  for (let pauses = 0; pauses < 2; pauses += 1) {
    ring();
    await turn();
  }
  await Promise.all(all);
  assert.equal(claims, [1, 1, 18]); // the first of each burst goes alone
});

test('claims that another life has made first are counted as lost', async () => {
  const { sessions } = new MemoryStore();
  const [before, life] = [newLife(), newLife()];
  const id = newSessionId(before);
  const value = writeSession(newSession('t', 'user:ann', PLAIN));
  const row = { node: 'n', life: before, generation: 1, value, usedAt: new Date(0).toISOString() };
  await sessions.insert([{ ...row, key: rowKeyOf(id) }]);
  const store: SessionStore = {
    ...sessions,
    claim: async (rows, next) => {
      await sessions.claim(rows, { node: 'm', life: 'life-2--' });
      return sessions.claim(rows, next);
    },
  };
  const decideSession: SessionHolders['decideSession'] = async ({ life: holder }) =>
    holder === before ? { do: 'claim' } : { do: 'forward', life: holder };
  const keeper = new SessionKeeper({
    store,
    node: 'n',
    life,
    ...KEPT,
    clock: simulatedClock,
    holders: { decideSession },
  });
  const steps = recoverAs(() => assert.unreachable());
  const recovered = new SessionRecovery(keeper, {}).recover(id, 'user:ann', steps);
  const outcome = await Promise.resolve(recovered).then(
    () => '',
    (thrown: Error) => thrown.message,
  );
  assert.is(outcome, 'another node has the session');
  assert.equal([keeper.counts.claims, keeper.counts.recovered], [{ won: 0, lost: 1 }, 0]);
});

test.run();
