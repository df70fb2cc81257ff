// The tokens of connected accounts: how they are renewed, by several nodes, and when they end.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { asGatewayError } from '../../src/domain/errors/errors.ts';
import { type ConnectionChange, SHARED } from '../../src/domain/instances/account-connection.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import type { OAuthStore } from '../../src/persistence/oauth-store.ts';
import { BackendFetchFailure } from '../../src/vault/backend-fetch.ts';
import { until } from '../helpers/eventually.ts';
import { suite } from '../helpers/suite.ts';
import { codeOf, connect, type World, withBackend } from './connected-backend.ts';

const vaults = suite('tokens of the vault');

vaults(
  'a node with another address renews the token with the client that got it',
  withBackend(async ({ backend, target, node }) => {
    await connect(node(), target, 'user-1');
    const other = node({ address: { issuer: 'http://127.0.0.1:8081', isPublic: false } });
    const tokens = other.tokens(target, 'user-1');
    const before = await tokens.current();
    backend.expireTokens();
    assert.ok(await tokens.renewed(before));
    assert.equal([backend.refreshes, backend.registrations], [1, 1]);
    await connect(other, target, 'user-2');
    assert.is(backend.registrations, 2);
  }),
);

vaults(
  'lists a connection whose server says that its token lives for millions of years',
  withBackend(
    async ({ target, node }) => {
      const vault = node();
      await connect(vault, target, SHARED);
      const [connection] = await vault.list();
      assert.ok(Date.parse(connection?.expiresAt ?? '') > Date.now());
    },
    { tokenSeconds: 1e14 },
  ),
);

for (const [what, end] of [
  ['a line break', '\r\nX-Evil: 1'],
  ['a space', ' x'],
  ['other letters', 'é中'],
  ['a NUL', '\0'],
] as const)
  vaults(
    `a token with ${what}, which no header can have, is a bad answer of its server`,
    withBackend(async ({ backend, target, node }) => {
      const vault = node();
      backend.tokenEnd = end;
      const refused = await connect(vault, target, 'user-1').catch((thrown: unknown) => thrown);
      assert.instance(refused, BackendFetchFailure);
      assert.match(Object(refused).message, 'a token that cannot be sent');
      assert.equal(await vault.list('user-1'), []);
      backend.tokenEnd = '';
      await connect(vault, target, 'user-1');
      const tokens = vault.tokens(target, 'user-1');
      const token = await tokens.current();
      backend.expireTokens();
      backend.tokenEnd = end;
      assert.match(await codeOf(tokens.renewed(token)), 'BACKEND_UNAVAILABLE');
      const [connection] = await vault.list('user-1');
      assert.is(connection?.state, 'connected');
    }),
  );

vaults(
  '100 calls with an expired token on three nodes cause one refresh',
  withBackend(async ({ backend, target, node }) => {
    const nodes = [node(), node(), node()];
    const [first] = nodes;
    assert.ok(first);
    await connect(first, target, SHARED);
    const expired = await first.tokens(target, SHARED).current();
    backend.expireTokens();
    const all = Array.from({ length: 100 }, async (_, index) => {
      const tokens = nodes[index % 3]?.tokens(target, SHARED);
      assert.ok(tokens);
      assert.ok(await tokens.renewed(expired));
      return tokens.current();
    });
    const renewed = new Set(await Promise.all(all));
    assert.is(renewed.size, 1);
    assert.not(renewed.has(expired));
    assert.equal([backend.refreshes, backend.refreshAttempts], [1, 1]);
  }),
);

vaults(
  'renews a token before it expires',
  withBackend(async ({ backend, target, node }) => {
    let nowMs = Date.now();
    const vault = node({ clock: { ...systemClock, wall: () => nowMs } });
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    const before = await tokens.current();
    assert.is(tokens.current(), before, 'from memory, without a promise');
    nowMs += 3_580_000;
    assert.is.not(await tokens.current(), before);
    assert.is(backend.refreshes, 1);
  }),
);

vaults(
  'a revoked grant is "connect again", without further attempts',
  withBackend(async ({ backend, target, node }) => {
    const changes: ConnectionChange[] = [];
    const changes$ = new Subject<ConnectionChange>();
    changes$.subscribe((change) => changes.push(change));
    const vault = node({ changes$ });
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    const token = await tokens.current();
    backend.endGrants();
    assert.is(await codeOf(tokens.renewed(token)), 'CONNECTION_REQUIRED ended');
    for (let call = 0; call < 10; call += 1) await codeOf(tokens.current());
    assert.is(backend.refreshAttempts, 1);
    assert.equal(
      changes.map(({ type }) => type),
      ['connected', 'refresh-failed'],
    );
    const [connection] = await vault.list('user-1');
    assert.equal(
      [connection?.state, connection?.reason],
      ['ended', 'its authorization server refuses (invalid_grant)'],
    );
    await connect(vault, target, 'user-1');
    assert.is(await codeOf(tokens.current()), 'none');
  }),
);

vaults(
  'an account that is connected again at another node is a change here when it is read, a renewed token is not',
  withBackend(async ({ backend, target, node }) => {
    let passedMs = 0;
    const { wall, now } = systemClock;
    const clock = { ...systemClock, wall: () => wall() + passedMs, now: () => now() + passedMs };
    const changes: ConnectionChange[] = [];
    const changes$ = new Subject<ConnectionChange>();
    changes$.subscribe((change) => changes.push(change));
    const [one, other] = [node({ clock, changes$ }), node({ clock })];
    await connect(other, target, 'user-1');
    const tokens = one.tokens(target, 'user-1');
    const first = await tokens.current();
    backend.expireTokens();
    assert.ok(await other.tokens(target, 'user-1').renewed(first));
    passedMs += 11_000;
    assert.is.not(await tokens.current(), first);
    assert.equal(changes, []);
    await connect(other, target, 'user-1');
    passedMs += 11_000;
    await tokens.current();
    assert.equal(
      changes.map(({ type, owner }) => [type, owner]),
      [['connected', 'user-1']],
    );
  }),
);

vaults(
  'an authorization server that is down is asked again after a pause, and the connection stays',
  withBackend(async ({ backend, target, node }) => {
    let nowMs = 0;
    const vault = node({ clock: { ...systemClock, now: () => nowMs } });
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    const token = await tokens.current();
    backend.isDown = true;
    for (let call = 0; call < 5; call += 1)
      assert.is(await codeOf(tokens.renewed(token)), 'BACKEND_UNAVAILABLE');
    backend.isDown = false;
    nowMs += 6_000;
    assert.ok(await tokens.renewed(token));
    assert.is(backend.refreshes, 1);
  }),
);

vaults(
  'the lease of a node that has died is taken by another one, once',
  withBackend(async ({ backend, store, target, node }) => {
    let nowMs = Date.now();
    const vault = node({ clock: { ...systemClock, wall: () => nowMs } });
    await connect(vault, target, 'user-1');
    const token = await vault.tokens(target, 'user-1').current();
    /** As a node that dies while it refreshes. */
    const leave = async (tries: number) => {
      const [row] = await store.oauth.list({ kind: 'connection' }, 1);
      assert.ok(row);
      const value = JSON.stringify({ ...JSON.parse(row.value), lease: { untilMs: nowMs + 30_000, tries } });
      await store.oauth.replace({ ...row, value }, row.version);
    };
    await leave(1);
    nowMs += 30_001;
    const renewed = vault.tokens(target, 'user-1');
    assert.ok(await renewed.renewed(token));
    assert.is(backend.refreshes, 1);
    await leave(2);
    nowMs += 30_001;
    const refused = await renewed.current();
    assert.is(await codeOf(renewed.renewed(refused)), 'CONNECTION_REQUIRED ended');
    assert.is(backend.refreshes, 1);
  }),
);

vaults(
  'the lease of a node that has ended is taken at once, that of one that may go on is not',
  withBackend(async ({ backend, store, target, node }) => {
    let looks = 0;
    const hasEnded = (life: string) => {
      assert.equal([life, backend.refreshes], ['two', 0]);
      looks += 1;
      return looks === 3;
    };
    const one = node({ lives: { life: () => 'one', hasEnded } });
    await connect(one, target, 'user-1');
    const token = await one.tokens(target, 'user-1').current();
    backend.expireTokens();
    // As it was left by a node that dies between its question and the answer.
    const [row] = await store.oauth.list({ kind: 'connection' }, 1);
    assert.ok(row);
    const lease = { untilMs: Date.now() + 30_000, tries: 1, life: 'two' };
    const value = JSON.stringify({ ...JSON.parse(row.value), lease });
    await store.oauth.replace({ ...row, value }, row.version);
    assert.ok(await one.tokens(target, 'user-1').renewed(token));
    assert.equal([looks, backend.refreshes], [3, 1]);
  }),
);

/** A node that renews its token, which the database takes over 30 s to store: `store` lets it, and resolves when it has. */
async function slowlyRenewed({ store, target, node }: World) {
  const held = Promise.withResolvers<void>();
  const asked = { replaces: 0, passedMs: 0 };
  const slow: OAuthStore = {
    ...store.oauth,
    replace: async (row, version) => {
      if (row.kind === 'connection') asked.replaces += 1;
      if (asked.replaces === 2) await held.promise;
      return store.oauth.replace(row, version);
    },
  };
  const { wall, now } = systemClock;
  const clock = { ...systemClock, wall: () => wall() + asked.passedMs, now: () => now() + asked.passedMs };
  const vault = node({ store: slow, clock });
  await connect(vault, target, 'user-1');
  const tokens = vault.tokens(target, 'user-1');
  const before = await tokens.current();
  asked.passedMs += 3_580_000;
  const renewed = Promise.resolve(tokens.current());
  await until(() => asked.replaces === 2, 'it stores the token');
  asked.passedMs += 31_000;
  return { tokens, before, renewed, store: held.resolve };
}

vaults(
  'a token that is still being stored after its lease is used by other calls of the node, and not renewed again',
  withBackend(async (world) => {
    const { tokens, before, renewed, store } = await slowlyRenewed(world);
    assert.is(await tokens.renewed(before), true);
    const used = await tokens.current();
    store();
    assert.is(await renewed, used);
    assert.is(world.backend.refreshAttempts, 1);
  }),
);

vaults(
  'a token is stored although another node took the lease, or gave the account up, but not in place of a newer one',
  withBackend(async (world) => {
    const { store, target, node } = world;
    const given = { lease: undefined, refreshToken: undefined, accessToken: '', ended: 'refused' };
    for (const meanwhile of [{ lease: { untilMs: 9e12, tries: 2 } }, given, { refreshToken: 'newer' }]) {
      const slowly = await slowlyRenewed(world);
      const [row] = await store.oauth.list({ kind: 'connection' }, 1);
      assert.ok(row);
      const value = JSON.stringify({ ...JSON.parse(row.value), accessToken: 'newer', ...meanwhile });
      await store.oauth.replace({ ...row, value }, row.version);
      slowly.store();
      const renewed = await slowly.renewed;
      assert.is(renewed === 'newer', 'refreshToken' in meanwhile && meanwhile.refreshToken === 'newer');
      assert.is.not(renewed, slowly.before);
      assert.is(await node().tokens(target, 'user-1').current(), renewed);
    }
  }),
);

vaults(
  'a token that comes when its account is no longer connected is revoked, too',
  withBackend(async (world) => {
    const { backend, target, node } = world;
    const slowly = await slowlyRenewed(world);
    const other = node();
    const found = await other.find(target, 'user-1');
    assert.ok(await other.disconnect(found?.id ?? ''));
    await until(() => backend.revocations === 1, 'the token before is revoked');
    slowly.store();
    assert.is(await codeOf(slowly.renewed), 'CONNECTION_REQUIRED none');
    await until(() => backend.revocations === 2, 'the new token is revoked');
  }),
);

vaults(
  'a token that is still valid is used while the node that renews it does not finish',
  withBackend(async ({ backend, store, target, node }) => {
    let passedMs = 0;
    const { wall, now } = systemClock;
    const clock = { ...systemClock, wall: () => wall() + passedMs, now: () => now() + 5 * passedMs };
    const vault = node({ clock, lives: { life: () => 'one', hasEnded: () => false } });
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    const token = await tokens.current();
    passedMs += 3_575_000;
    const [row] = await store.oauth.list({ kind: 'connection' }, 1);
    assert.ok(row);
    const lease = { untilMs: clock.wall() + 30_000, tries: 1, life: 'two' };
    await store.oauth.replace(
      { ...row, value: JSON.stringify({ ...JSON.parse(row.value), lease }) },
      row.version,
    );
    const used = tokens.current();
    passedMs += 3_000;
    assert.is(await used, token);
    assert.is(backend.refreshAttempts, 0);
  }),
);

vaults(
  'an account that is used is kept for longer than 180 days, also if its token is never renewed',
  withBackend(
    async ({ store, target, node }) => {
      let passedMs = 0;
      const { wall, now } = systemClock;
      const clock = { ...systemClock, wall: () => wall() + passedMs, now: () => now() + passedMs };
      const vault = node({ clock });
      const outcomes: string[] = [];
      for (const owner of ['user-1', 'user-2']) await connect(vault, target, owner);
      for (let days = 0; days < 300; days += 100) {
        await store.oauth.sweep(new Date(clock.wall()).toISOString());
        outcomes.push(await codeOf(vault.tokens(target, 'user-1').current()));
        passedMs += 100 * 24 * 3_600_000;
      }
      assert.equal(outcomes, ['none', 'none', 'none']);
      assert.is(await codeOf(vault.tokens(target, 'user-2').current()), 'CONNECTION_REQUIRED none');
    },
    { hasRefreshTokens: false, tokenSeconds: 1e9 },
  ),
);

vaults(
  'an account that is written while the clock is far behind is there when it is right again',
  withBackend(async ({ store, target, node }) => {
    let aheadMs = 0;
    const vault = node({ clock: { ...systemClock, wall: () => systemClock.wall() + aheadMs } });
    await connect(vault, target, 'user-1');
    aheadMs = -400 * 24 * 3_600_000;
    const tokens = vault.tokens(target, 'user-1');
    await tokens.current();
    await tokens.missingScopes(['write']);
    aheadMs = 0;
    await store.oauth.sweep(new Date(systemClock.wall()).toISOString());
    assert.is(await codeOf(vault.tokens(target, 'user-1').current()), 'none');
  }),
);

vaults(
  'a token without refresh lives until a 401',
  withBackend(
    async ({ target, node }) => {
      const vault = node();
      await connect(vault, target, 'user-1');
      const tokens = vault.tokens(target, 'user-1');
      const token = await tokens.current();
      assert.is(await codeOf(tokens.renewed(token)), 'CONNECTION_REQUIRED ended');
    },
    { hasRefreshTokens: false },
  ),
);

vaults(
  'asks for the scopes that a call was refused for, together with the granted ones',
  withBackend(async ({ backend, target, node }) => {
    const vault = node();
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    await tokens.current();
    // Two calls at once, which need different ones.
    const all = await Promise.all([tokens.missingScopes(['write']), tokens.missingScopes(['send'])]);
    for (const needs of all.map(asGatewayError))
      assert.is(await codeOf(Promise.reject(needs)), 'CONNECTION_REQUIRED scopes');
    await connect(vault, target, 'user-1');
    assert.equal(new Set(backend.asked?.scopes), new Set(['read', 'write', 'send']));
  }),
);

vaults(
  'leaves the row alone when a call is refused again for the same scopes',
  withBackend(async ({ target, node, store }) => {
    const vault = node();
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    await tokens.current();
    const versionAfter = async (...scopes: string[]) => {
      await tokens.missingScopes(scopes);
      return (await store.oauth.list({ kind: 'connection' }, 1))[0]?.version;
    };
    const first = await versionAfter('write', 'send');
    assert.equal([await versionAfter('send'), await versionAfter('write')], [first, first]);
    assert.is.not(await versionAfter('delete'), first);
  }),
);

vaults(
  'keeps at most 100 scopes to ask for, however many a server names',
  withBackend(async ({ backend, target, node, store }) => {
    const vault = node();
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    await tokens.current();
    const named = Array.from({ length: 64 }, (_, index) => `${index}`);
    for (const call of ['a', 'b', 'c', 'd'])
      await tokens.missingScopes(named.map((each) => `${call}${each}${'x'.repeat(60)}`));
    const [row] = await store.oauth.list({ kind: 'connection' }, 1);
    assert.ok((row?.value.length ?? 0) < 10_000, 'the row stays small');
    await tokens.missingScopes(['write']);
    await connect(vault, target, 'user-1');
    const { scopes = [] } = backend.asked ?? {};
    assert.equal([scopes.length, ...scopes.slice(0, 2)], [100, 'read', 'write'], 'the last refusal counts');
  }),
);

vaults.run();
