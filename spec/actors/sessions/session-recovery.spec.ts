// How many sessions of other lives are read at the same time, and for which callers.

import * as assert from 'uvu/assert';
import { SessionKeeper } from '../../../src/actors/sessions/session-keeper.ts';
import { SessionRecovery } from '../../../src/actors/sessions/session-recovery.ts';
import { newLife, newSessionId } from '../../../src/domain/life.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { MemoryStore } from '../../../src/persistence/memory-store.ts';
import { simulatedClock } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('sessions that are being read');
const MOST = 25_000;

test('one caller takes no more than its share, and has it again afterwards', async () => {
  const answered = Promise.withResolvers<void>();
  const { sessions } = new MemoryStore();
  const read = (keys: readonly string[]) => answered.promise.then(() => sessions.read(keys));
  const store = { ...sessions, read };
  const keeper = new SessionKeeper({ store, node: 'n', life: newLife(), clock: simulatedClock });
  const recovery = new SessionRecovery(keeper, {});
  const before = newLife();
  const recover = (ownerId: string) => recovery.recover(newSessionId(before), ownerId, async () => undefined);
  const own = Array.from({ length: MOST * LIMITS.ownerShare }, () => recover('user:ann'));
  assert.throws(
    () => recover('user:ann'),
    (thrown: unknown) => Object(thrown).code === 'QUEUE_FULL',
  );
  const other = recover('user:bob');
  assert.ok(other);
  answered.resolve();
  await Promise.all([...own, other]);
  assert.is(await recover('user:ann'), undefined);
});

test.run();
