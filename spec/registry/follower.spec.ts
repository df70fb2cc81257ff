// When the registry is read anew. Time is simulated.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import type { RevisionChange } from '../../src/persistence/revision-watch.ts';
import { Follower } from '../../src/registry/follower.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: follower');
let storeChanges$ = new Subject<RevisionChange>();
let told: GatewayEvent['type'][] = [];
let reloads = 0;
let reload: () => Promise<void> = async () => {};
let follower = make();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  storeChanges$ = new Subject();
  told = [];
  reloads = 0;
  reload = async () => {};
  follower = make();
  follower.follow(storeChanges$);
});
test.after.each(() => {
  follower.close();
  mock.timers.reset();
});

test('reads at most twice a second, and nothing is missed', async () => {
  for (let left = 90; left > 0; left -= 1) {
    storeChanges$.next({ kind: 'changed' });
    await tick(10);
  }
  assert.is(reloads, 2);
  await tick(500);
  assert.is(reloads, 3);
  reload = () => Promise.reject(new Error('gone'));
  for (let left = 90; left > 0; left -= 1) {
    storeChanges$.next({ kind: left % 2 === 0 ? 'changed' : 'away' });
    await tick(10);
  }
  assert.is(reloads, 4, 'also when the database fails again and again');
});

test('reads again after a failure: at the next news, or after five seconds', async () => {
  reload = () => Promise.reject(databaseUnavailable('gone'));
  storeChanges$.next({ kind: 'changed' });
  await tick(500);
  assert.is(reloads, 1);
  storeChanges$.next({ kind: 'answered' });
  await turn();
  assert.is(reloads, 2);
  await tick(500);
  await tick(4_999);
  assert.is(reloads, 2);
  await tick(1);
  assert.is(reloads, 3);
  assert.equal(told, ['registry.behind']);
  reload = async () => {};
  await tick(500);
  await tick(5_000);
  assert.equal([reloads, told], [4, ['registry.behind', 'registry.current']]);
  await tick(60_000);
  assert.is(reloads, 4);
});

test('hears and does nothing any more when it is closed, and ends its waits', async () => {
  reload = () => Promise.reject(databaseUnavailable('gone'));
  storeChanges$.next({ kind: 'changed' });
  await tick(100);
  follower.close();
  assert.is(storeChanges$.observed, false);
  follower.requestReload();
  await tick(60_000);
  assert.equal([reloads, told], [1, ['registry.behind']]);
});

test.run();

function make(): Follower {
  const emit = ({ type }: GatewayEvent) => told.push(type);
  return new Follower({
    emit,
    reload: () => {
      reloads += 1;
      return reload();
    },
  });
}

async function tick(ms: number): Promise<void> {
  await turn();
  mock.timers.tick(ms);
  await turn();
}
