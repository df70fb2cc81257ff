// Tokens of accounts while the database does not answer: those in memory are used, and what was written is found out.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import type { ConnectionChange } from '../../src/domain/instances/account-connection.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import type { OAuthStore } from '../../src/persistence/oauth-store.ts';
import type { VaultOptions } from '../../src/vault/vault.ts';
import { until } from '../helpers/eventually.ts';
import { suite } from '../helpers/suite.ts';
import { codeOf, connect, type World, withBackend } from './connected-backend.ts';

const test = suite('tokens while the database is silent');

type Call = 'find' | 'replace';

/** A node with a connected account, on a store and a clock that the spec controls. */
async function connected({ store, target, node }: World, options: Partial<VaultOptions> = {}) {
  const asked = { find: 0, replace: 0 };
  const failures = new Map<Call, (run: () => Promise<unknown>) => Promise<never>>();
  const counted = <T>(call: Call, kind: string, run: () => Promise<T>): Promise<T> => {
    if (kind !== 'connection') return run();
    asked[call] += 1;
    return failures.get(call)?.(run) ?? run();
  };
  const own: OAuthStore = {
    ...store.oauth,
    find: (kind, keys) => counted('find', kind, () => store.oauth.find(kind, keys)),
    replace: (row, version) => counted('replace', row.kind, () => store.oauth.replace(row, version)),
  };
  let passedMs = 0;
  const pauses: (() => void)[] = [];
  const clock = {
    ...systemClock,
    wall: () => systemClock.wall() + passedMs,
    now: () => systemClock.now() + passedMs,
    alarm: (ms: number, run: () => void) => {
      if (ms !== 500) return systemClock.alarm(ms, run);
      pauses.push(run);
      return () => {};
    },
  };
  const vault = node({ clock, store: own, ...options });
  await connect(vault, target, 'user-1');
  const tokens = vault.tokens(target, 'user-1');
  const token = await tokens.current();
  const pass = (ms: number) => {
    passedMs += ms;
  };
  /** The pause between two attempts to write is over. */
  const again = () => {
    for (const run of pauses.splice(0)) run();
  };
  return { vault, tokens, token, asked, failures, pass, pauses, again };
}

/** The lease of the next renewal is stored, and nothing after it. */
function silentAfterLease({
  asked,
  failures,
}: Pick<Awaited<ReturnType<typeof connected>>, 'asked' | 'failures'>) {
  const before = asked.replace;
  failures.set('replace', (run) => (asked.replace - before === 1 ? (run() as Promise<never>) : away()));
}

const away = () => Promise.reject(databaseUnavailable(new Error('away')));
const lost = async (run: () => Promise<unknown>) => {
  await run();
  throw databaseUnavailable(new Error('its answer is lost'), 'unknown');
};

test(
  'are used without asking it each time, also when they are due, until they end',
  withBackend(async (world) => {
    const { tokens, token, asked, failures, pass } = await connected(world);
    failures.set('find', away);
    const looks = async (calls: number) => {
      const before = asked.find;
      for (let call = 0; call < calls; call += 1) assert.is(await tokens.current(), token);
      return asked.find - before;
    };
    pass(10_001);
    assert.is(await looks(5), 1);
    pass(9_000);
    assert.is(await looks(5), 0);
    const silent = Promise.withResolvers<void>();
    failures.set('find', () => silent.promise.then(away));
    pass(1_001);
    const waiting = tokens.current();
    assert.is(await looks(5), 0); // one call waits, and the others go on
    silent.resolve();
    assert.is(await waiting, token);
    failures.delete('find');
    pass(3_550_000);
    await tokens.renewed(token);
    const due = await tokens.current();
    failures.set('find', away);
    pass(3_580_000);
    assert.is(await codeOf(tokens.current()), 'DATABASE_UNAVAILABLE'); // not read for over 15 min
    failures.delete('find');
    assert.is.not(await tokens.current(), due);
  }),
);

test(
  'are not used longer than 15 min after their rows were read, however often they are asked for',
  withBackend(async (world) => {
    const { tokens, token, failures, pass } = await connected(world);
    failures.set('find', away);
    for (let look = 0; look < 89; look += 1) {
      pass(10_001);
      assert.is(await tokens.current(), token);
    }
    pass(10_001);
    for (let call = 0; call < 3; call += 1) assert.is(await codeOf(tokens.current()), 'DATABASE_UNAVAILABLE');
  }),
);

test(
  'are not used after they were refused, and an account that is connected again elsewhere is noticed',
  withBackend(async (world) => {
    const changes$ = new Subject<ConnectionChange>();
    const changes: string[] = [];
    changes$.subscribe(({ type }) => changes.push(type));
    const { tokens, token, failures } = await connected(world, { changes$ });
    failures.set('find', away);
    assert.is(await codeOf(tokens.renewed(token)), 'DATABASE_UNAVAILABLE');
    assert.is(await codeOf(tokens.current()), 'DATABASE_UNAVAILABLE');
    failures.delete('find');
    await connect(world.node(), world.target, 'user-1');
    changes.length = 0;
    assert.is.not(await tokens.current(), token);
    assert.equal(changes, ['connected']);
  }),
);

test(
  'are renewed although the answers to their leases were lost',
  withBackend(async (world) => {
    const { tokens, token, failures } = await connected(world);
    failures.set('replace', lost);
    for (let call = 0; call < 3; call += 1)
      assert.is(await codeOf(tokens.renewed(token)), 'DATABASE_UNAVAILABLE');
    assert.is(world.backend.refreshAttempts, 0);
    failures.delete('replace');
    assert.is(await tokens.renewed(token), true);
    assert.is(world.backend.refreshAttempts, 1);
  }),
);

test(
  'are used as soon as they are renewed, and stored when it answers',
  withBackend(async (world) => {
    const node = await connected(world);
    const { vault, tokens, token, failures, pauses, again, pass } = node;
    silentAfterLease(node);
    assert.is(await tokens.renewed(token), true);
    let areStored = false;
    const stored = vault.stored().then(() => {
      areStored = true;
    });
    const renewed = await tokens.current();
    assert.is.not(renewed, token);
    failures.set('find', away);
    pass(31_000);
    assert.equal([await tokens.current(), await tokens.renewed(token)], [renewed, true]);
    assert.is(world.backend.refreshAttempts, 1);
    failures.clear();
    await until(() => pauses.length > 0);
    assert.is(areStored, false);
    again();
    await stored;
    assert.is(await world.node().tokens(world.target, 'user-1').current(), renewed);
    assert.is(world.backend.refreshAttempts, 1);
  }),
);

test(
  'are waited for while their server is asked for them',
  withBackend(async (world) => {
    const { vault, tokens, token } = await connected(world);
    const asked = Promise.withResolvers<void>();
    world.backend.refreshGate = asked.promise;
    const renewed = tokens.renewed(token);
    await until(() => world.backend.refreshAttempts === 1);
    let areStored = false;
    const stored = vault.stored().then(() => {
      areStored = true;
    });
    await new Promise(setImmediate);
    assert.is(areStored, false);
    asked.resolve();
    await stored;
    const [row] = await world.store.oauth.list({ kind: 'connection' }, 1);
    assert.is.not(JSON.parse(row?.value ?? '{}').accessToken, token);
    assert.is(await renewed, true);
  }),
);

test(
  'that are renewed and cannot be stored are lost with a warning',
  withBackend(async (world) => {
    const warnings: string[] = [];
    const warn = (line: string) => void warnings.push(line);
    const node = await connected(world, { warn });
    const { vault, tokens, token, pauses, again } = node;
    silentAfterLease(node);
    assert.is(await tokens.renewed(token), true);
    for (let attempt = 1; attempt < 60; attempt += 1) {
      await until(() => pauses.length > 0);
      assert.equal(warnings, []);
      again();
    }
    await vault.stored();
    assert.equal(warnings, [
      `the database has not taken new tokens of an account at ${world.backend.issuer}: it has to be connected again`,
    ]);
  }),
);

test.run();
