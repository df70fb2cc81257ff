// Rows of the authorization server that have expired are deleted, but not by a clock that may be wrong. Source: ADR 386.

import * as assert from 'uvu/assert';
import { type Clock, systemClock } from '../../src/domain/time/clock.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { becomes } from '../helpers/eventually.ts';
import { startSignIn } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('expired rows of the authorization server', { timeoutMs: 90_000 });
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const REFUSED = 'no expired grants, clients and accounts are deleted: the clock may be wrong';

test('are deleted each 10 min, also when no client asked, unless the clock was set or differs from that of the database', async () => {
  let [passedMs, stepMs] = [0, 0];
  const sweeps: (() => void)[] = [];
  const every: Clock['every'] = (everyMs, ring) => {
    if (everyMs !== 10 * MINUTE_MS) return systemClock.background.every(everyMs, ring);
    sweeps.push(ring);
    return () => {};
  };
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + passedMs,
    wall: () => systemClock.wall() + passedMs + stepMs,
    background: { ...systemClock.background, every },
  };
  const store = new MemoryStore();
  const { close, warnings } = await startSignIn({ store, clock });
  try {
    const { oauth } = store;
    const save = (key: string, ageMs: number) => {
      const [createdAt, expiresAt] = [ageMs - DAY_MS, ageMs].map((at) => new Date(systemClock.wall() + at));
      const times = { createdAt: `${createdAt?.toISOString()}`, expiresAt: `${expiresAt?.toISOString()}` };
      return oauth.save({ kind: 'connection', key, ...times, value: '{}' });
    };
    const kept = async () => (await oauth.find('connection', ['hour', 'month'])).map(({ key }) => key);
    const sweep = () => {
      passedMs += 10 * MINUTE_MS;
      for (const ring of sweeps) ring();
    };
    await save('month', 30 * DAY_MS);
    await save('hour', -60 * MINUTE_MS);
    sweep();
    await becomes(kept, ['month']);

    stepMs = 100 * DAY_MS; // for a moment
    sweep();
    await becomes(() => warnings.length, 1);
    stepMs = 0;
    sweep();
    await becomes(() => warnings.length, 2);

    stepMs = 100 * DAY_MS; // for longer, on one of several nodes
    const database = (serverTimeMs: () => Promise<number>) => Object.assign(store, { serverTimeMs });
    database(async () => systemClock.wall() + passedMs);
    sweep();
    await becomes(() => warnings.length, 3);
    sweep();
    await becomes(() => warnings.length, 4);
    const [set, differs] = ['was set since it was last compared', 'differs from the clock of the database'];
    assert.equal(
      warnings,
      [set, set, set, differs].map((reason) => [{ reason }, REFUSED]),
    );
    assert.equal(await kept(), ['month']);

    database(async () => clock.wall());
    sweep();
    await becomes(kept, []);
  } finally {
    await close();
  }
});

test.run();
