// The order of use, and how many are parked and ended in one go. What it means to be parked is client-sessions.spec.ts's.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { ExpiringSessions } from '../../../src/actors/client-sessions/expiring-sessions.ts';
import type { SessionRecord } from '../../../src/domain/client.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { PLAIN } from '../../helpers/failing-backend.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace } from '../../helpers/turns.ts';

const test = suite('client sessions: expiry');
const IDLE_MS = 10 * LIMITS.sessionParkMs;
const GO_MS = 20;
const MANY = 60;
simulateTime(test);

test('ends a few in one go, those first that were not used for longest', () => {
  const { resting, add, ended } = staged();
  const sessions = add(MANY);
  const [first] = sessions;
  mock.timers.tick(LIMITS.sessionParkMs);
  if (first !== undefined) resting.used(first);
  mock.timers.tick(IDLE_MS - LIMITS.sessionParkMs);
  assert.equal(ended, sessions.slice(1, 1 + LIMITS.paceTasks));
  mock.timers.tick(GO_MS);
  assert.is(ended.length, 2 * LIMITS.paceTasks);
  mock.timers.tick(GO_MS);
  assert.equal([ended.length, resting.size], [MANY - 1, 1]);
});

test('makes room with a few whose time is over: those that are meant, or any', () => {
  const { resting, add, ended } = staged();
  add(MANY, 'ann');
  const bobs = add(2, 'bob');
  resting.makeRoom(() => true);
  assert.is(ended.length, 0);
  resting.stop(); // only makeRoom ends any
  mock.timers.tick(IDLE_MS);
  resting.makeRoom(({ ownerId }) => ownerId === 'bob');
  assert.equal(ended, bobs);
  resting.makeRoom(() => true);
  assert.is(ended.length, 2 + LIMITS.paceTasks);
});

test.run();

function staged() {
  const ended: SessionRecord[] = [];
  const end = (session: SessionRecord): void => {
    ended.push(session);
    resting.delete(session);
  };
  const alarm = alarmOf(steadyPace());
  const resting = new ExpiringSessions({ now: () => Date.now(), alarm }, IDLE_MS, end);
  const add = (count: number, ownerId = 'ann'): SessionRecord[] =>
    Array.from({ length: count }, (_, number) => {
      const id = `${ownerId} ${number}`;
      const session: SessionRecord = {
        id,
        ownerId,
        openedAtMs: 0,
        usedAtMs: 0,
        isParked: false,
        profile: PLAIN,
        parts: [],
        isListened: false,
        calls: 0,
        park: () => true,
        dismiss: () => undefined,
        close: () => Promise.resolve(),
      };
      resting.add(session);
      return session;
    });
  return { resting, add, ended };
}
