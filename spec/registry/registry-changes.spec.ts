// Changes one after the other over a store that may not answer, and when it is read anew. Time is simulated.

import { firstValueFrom, Subject, timer } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import type { GatewayEvent } from '../../src/domain/events/events.ts';
import type { RevisionChange } from '../../src/persistence/revision-watch.ts';
import { RegistryChanges } from '../../src/registry/registry-changes.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { pass, simulatedClock, simulateTime } from '../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../helpers/time/turns.ts';

const test = suite('registry: changes');
let storeChanges$ = new Subject<RevisionChange>();
let reported: GatewayEvent['type'][] = [];
let reloads = 0;
let reload: () => Promise<void> = async () => {};
let changes = make();

simulateTime(test, () => {
  storeChanges$ = new Subject();
  reported = [];
  reloads = 0;
  reload = async () => {};
  changes = make();
});
test.before.each(async () => {
  await changes.load(storeChanges$);
  reloads = 0;
});
test.after.each(() => changes.close());

test('reads at most twice a second, and misses no change', async () => {
  for (let left = 90; left > 0; left -= 1) {
    storeChanges$.next({ kind: 'changed' });
    await pass(10);
  }
  assert.is(reloads, 2);
  await pass(500);
  assert.is(reloads, 3);
  reload = () => Promise.reject(new Error('gone'));
  for (let left = 90; left > 0; left -= 1) {
    storeChanges$.next({ kind: left % 2 === 0 ? 'changed' : 'away' });
    await pass(10);
  }
  assert.is(reloads, 4, 'also when the database fails again and again');
});

test('reads again after a failure: at the next notice, or after 5 s', async () => {
  reload = () => Promise.reject(databaseUnavailable('gone'));
  storeChanges$.next({ kind: 'changed' });
  await pass(500);
  assert.is(reloads, 1);
  for (const kind of ['away', 'answered'] as const) storeChanges$.next({ kind });
  await pass(500);
  assert.is(reloads, 2);
  await pass(4_499);
  assert.is(reloads, 2);
  await pass(1);
  assert.is(reloads, 3);
  assert.equal(reported, ['registry.behind']);
  reload = async () => {};
  await pass(500);
  await pass(5_000);
  assert.equal([reloads, reported], [4, ['registry.behind', 'registry.current']]);
  await pass(60_000);
  assert.is(reloads, 4);
});

test('a notice during a reading that fails causes the next one at once', async () => {
  const reading = Promise.withResolvers<void>();
  reload = () => reading.promise;
  storeChanges$.next({ kind: 'changed' });
  await pass(100);
  storeChanges$.next({ kind: 'changed' });
  reload = async () => {};
  reading.reject(databaseUnavailable('gone'));
  await pass(0);
  await pass(500);
  assert.equal([reloads, reported], [2, ['registry.behind', 'registry.current']]);
  await pass(60_000);
  assert.is(reloads, 2);
});

test('does nothing once it is closed, and ends its timers', async () => {
  reload = () => Promise.reject(databaseUnavailable('gone'));
  storeChanges$.next({ kind: 'changed' });
  await pass(100);
  const writing = Promise.withResolvers<void>();
  const change = codeOf(changes.run(() => writing.promise));
  const closing = changes.close();
  assert.is(storeChanges$.observed, false);
  writing.reject(databaseUnavailable('gone'));
  assert.is(await change, 'DATABASE_UNAVAILABLE');
  await closing;
  await pass(60_000);
  assert.equal([reloads, reported], [1, ['registry.behind']]);
});

test('a change behind a silent database does not wait for all changes before it', async () => {
  const endedAtMs: number[] = [];
  let begun = 0;
  const giveUp = async () => {
    await firstValueFrom(timer(5_000));
    throw databaseUnavailable(undefined);
  };
  reload = giveUp;
  const change = async () => {
    const askedAtMs = Date.now();
    const code = await codeOf(
      changes.run(() => {
        begun += 1;
        return giveUp();
      }),
    );
    endedAtMs.push(Date.now() - askedAtMs);
    return code;
  };
  const codes: Promise<unknown>[] = [];
  for (let index = 0; index < 100; index += 1) {
    codes.push(change());
    await pass(200);
  }
  for (let left = 50; left > 0; left -= 1) await pass(200);
  assert.equal(new Set(await Promise.all(codes)), new Set(['DATABASE_UNAVAILABLE']));
  assert.ok(Math.max(...endedAtMs) <= 6_000, `${Math.max(...endedAtMs)} ms`);
  assert.ok(begun <= 6, `${begun} were tried`);
  reload = async () => {};
  await pass(5_000);
  assert.is(await changes.run(async () => 'back'), 'back');
});

test.run();

function make(): RegistryChanges {
  const count = async () => {
    reloads += 1;
    await reload();
    return reloads;
  };
  return new RegistryChanges({
    store: { revision: count },
    clock: simulatedClock,
    scheduler: untimedScheduler(),
    emit: ({ type }: GatewayEvent) => reported.push(type),
    apply: async () => {},
  });
}
