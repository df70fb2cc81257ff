// When the registry is read anew. Time is simulated.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import type { GatewayEvent } from '../../src/domain/events/events.ts';
import type { RevisionChange } from '../../src/persistence/revision-watch.ts';
import { Follower } from '../../src/registry/follower.ts';
import { suite } from '../helpers/suite.ts';
import { pass, simulatedClock, simulateTime } from '../helpers/time/simulated-time.ts';

const test = suite('registry: follower');
let storeChanges$ = new Subject<RevisionChange>();
let reported: GatewayEvent['type'][] = [];
let reloads = 0;
let reload: () => Promise<void> = async () => {};
let follower = make();

simulateTime(test, () => {
  storeChanges$ = new Subject();
  reported = [];
  reloads = 0;
  reload = async () => {};
  follower = make();
  follower.follow(storeChanges$);
});
test.after.each(() => follower.close());

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
  follower.close();
  assert.is(storeChanges$.observed, false);
  follower.requestReload();
  await pass(60_000);
  assert.equal([reloads, reported], [1, ['registry.behind']]);
});

test.run();

function make(): Follower {
  const emit = ({ type }: GatewayEvent) => reported.push(type);
  const count = () => {
    reloads += 1;
    return reload();
  };
  return new Follower(count, emit, simulatedClock);
}
