// The tokens of connected accounts: how they are renewed, by several nodes, and when they end.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { asGatewayError } from '../../src/domain/errors/errors.ts';
import { type ConnectionChange, SHARED } from '../../src/domain/instances/account-connection.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { suite } from '../helpers/suite.ts';
import { codeOf, connect, withBackend } from './connected-backend.ts';

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
    const needs = asGatewayError(await tokens.missingScopes(['write']));
    assert.is(await codeOf(Promise.reject(needs)), 'CONNECTION_REQUIRED scopes');
    await connect(vault, target, 'user-1');
    assert.equal(backend.asked?.scopes, ['read', 'write']);
  }),
);

vaults.run();
