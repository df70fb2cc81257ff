// Accounts at backends that want OAuth: how they are connected, which calls use them, and how their tokens are refreshed.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { asGatewayError } from '../../src/domain/errors/errors.ts';
import { type ConnectionChange, SHARED } from '../../src/domain/instances/account-connection.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { addressesIn } from '../../src/net/network-guard.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { oauthKey } from '../../src/persistence/oauth-rows.ts';
import { UnknownState } from '../../src/vault/authorization-flow.ts';
import { BackendFetchFailure } from '../../src/vault/backend-fetch.ts';
import type { AccountTarget } from '../../src/vault/oauth-backends.ts';
import { Vault, type VaultOptions } from '../../src/vault/vault.ts';
import { type OAuthBackend, type OAuthBackendOptions, startOAuthBackend } from '../fixtures/oauth-backend.ts';
import { startDocuments } from '../fixtures/oauth-documents.ts';
import { suite } from '../helpers/suite.ts';
import { startRawServer } from '../transports/raw-server.ts';

const BASE = 'http://127.0.0.1:8080';
const BINDING = 'a browser';

interface World {
  readonly backend: OAuthBackend;
  readonly store: MemoryStore;
  readonly target: AccountTarget;
  /** A node: another vault on the same store. */
  node(options?: Partial<VaultOptions>): Vault;
}

function withBackend(run: (world: World) => Promise<void>, options: OAuthBackendOptions = {}) {
  return async () => {
    const backend = await startOAuthBackend(options);
    const store = new MemoryStore();
    const target: AccountTarget = {
      template: 'mail',
      id: 'mail-1',
      endpoint: backend.url,
      auth: { who: 'user' },
    };
    try {
      await run({
        ...{ backend, store, target },
        node: (more) =>
          new Vault({
            clock: systemClock,
            changes$: new Subject(),
            ...{ store: store.oauth, isDenied: addressesIn([]), address: { issuer: BASE, isPublic: false } },
            ...more,
          }),
      });
    } finally {
      await backend.close();
    }
  };
}

/** As a browser: the URL at the authorization server, and the query of the callback to which it leads. */
async function browse(url: string): Promise<URLSearchParams> {
  const answer = await fetch(url, { redirect: 'manual' });
  return new URL(answer.headers.get('location') ?? '').searchParams;
}

async function connect(vault: Vault, target: AccountTarget, owner: string, returnTo?: string) {
  const url = await vault.begin(target, { owner, binding: BINDING, returnTo });
  return vault.finish(await browse(url), BINDING);
}

/** Why an account is needed, by what the error says. */
const WORDS: Readonly<Record<string, string>> = {
  none: 'is not connected',
  ended: 'is no longer connected',
  scopes: 'may not do this yet',
};

async function codeOf(promise: string | Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'none';
  } catch (thrown) {
    const { code, message } = asGatewayError(thrown);
    const [why = ''] = Object.keys(WORDS).filter((key) => message.includes(WORDS[key] ?? ''));
    return `${code} ${why}`.trim();
  }
}

const vaults = suite('the vault');

vaults(
  'connects an account, and gives its token to its owner only',
  withBackend(async ({ backend, target, node }) => {
    const vault = node();
    const { backend: found, way } = await vault.discover(target);
    assert.is(found.server.issuer, backend.issuer);
    assert.is(found.resource, backend.url);
    assert.is(way, 'registration');
    backend.account = 'ada';
    const finished = await connect(vault, target, 'user-1', 'page-7');
    assert.equal([finished.owner, finished.returnTo], ['user-1', 'page-7']);
    assert.is(backend.asked?.resource?.href, backend.url);
    assert.match(await vault.tokens(target, 'user-1').current(), /./);
    assert.is(await codeOf(vault.tokens(target, 'user-2').current()), 'CONNECTION_REQUIRED none');
    assert.is(await codeOf(vault.tokens(target, SHARED).current()), 'CONNECTION_REQUIRED none');
    const [connection] = await vault.list();
    assert.equal(
      [connection?.state, connection?.owner, connection?.scopes],
      ['connected', 'user-1', ['read']],
    );
    assert.not.match(JSON.stringify(connection), new RegExp(await vault.tokens(target, 'user-1').current()));
    assert.equal(await vault.list('user-2'), []);
    await connect(vault, target, 'user-2');
    assert.is(backend.registrations, 1);
  }),
);

vaults(
  'lists the shared account, and ends any, however many users have connected theirs since',
  withBackend(async ({ store, target, node }) => {
    const vault = node();
    await connect(vault, target, SHARED);
    const [shared] = await vault.list(SHARED);
    assert.is(shared?.owner, SHARED);
    const [row] = await store.oauth.list({ kind: 'connection' }, 1);
    assert.ok(row);
    for (let n = 0; n < 1_001; n += 1) {
      const value = JSON.stringify({ ...JSON.parse(row.value), owner: `user-${n}` });
      const createdAt = new Date(Date.parse(row.createdAt) + 1 + n).toISOString();
      await store.oauth.save({
        ...row,
        key: oauthKey('connection', `${n}`),
        userId: `user-${n}`,
        createdAt,
        value,
      });
    }
    assert.equal(await vault.list(SHARED), [shared]);
    assert.is((await vault.list()).length, 1_000);
    const [first] = await vault.list('user-0');
    assert.is(await vault.disconnect(first?.id ?? '', 'user-1'), false);
    assert.is(await vault.disconnect(first?.id ?? ''), true);
    assert.is(await vault.disconnect(shared?.id ?? '', 'user-1'), false);
    assert.is(await vault.disconnect(shared?.id ?? ''), true);
    assert.is(await vault.disconnect('0'), false);
    assert.equal(await vault.list(SHARED), []);
  }),
);

vaults(
  'uses one registration for users who connect first at the same time, at any node',
  withBackend(async ({ backend, store, target, node }) => {
    const { find } = store.oauth;
    const both = Promise.withResolvers<void>();
    let looks = 0;
    store.oauth.find = async (kind, keys) => {
      const rows = await find.call(store.oauth, kind, keys);
      if (kind !== 'own-client') return rows;
      looks += 1;
      if (looks === 2) both.resolve();
      await both.promise;
      return rows;
    };
    const begun = ['user-1', 'user-2'].map(async (owner) => {
      const vault = node();
      return { vault, url: await vault.begin(target, { owner, binding: BINDING }) };
    });
    for (const { vault, url } of await Promise.all(begun)) await vault.finish(await browse(url), BINDING);
    assert.equal([backend.registrations, (await node().list()).length], [2, 2]);
    assert.is(await store.oauth.count({ kind: 'own-client' }), 1);
  }),
);

vaults(
  'keeps its registration for 180 days after the last use',
  withBackend(async ({ backend, store, target, node }) => {
    const DAY_MS = 24 * 3_600_000;
    let nowMs = Date.now();
    const vault = node({ clock: { ...systemClock, wall: () => nowMs } });
    const kept = async () => {
      await store.oauth.sweep(new Date(nowMs).toISOString());
      return store.oauth.count({ kind: 'own-client' });
    };
    await connect(vault, target, 'user-1');
    for (let use = 0; use < 2; use += 1) {
      nowMs += 179 * DAY_MS;
      await connect(vault, target, 'user-1');
      assert.equal([await kept(), backend.registrations], [1, 1]);
    }
    nowMs += 180 * DAY_MS;
    assert.is(await kept(), 0);
    await connect(vault, target, 'user-1');
    assert.is(backend.registrations, 2);
  }),
);

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
  'takes a state once, from the browser that began',
  withBackend(async ({ target, node }) => {
    const vault = node();
    const query = await browse(await vault.begin(target, { owner: 'user-1', binding: BINDING }));
    const isUnknown = async (asked: URLSearchParams, binding: string) =>
      assert.ok(
        (await vault.finish(asked, binding).catch((thrown: unknown) => thrown)) instanceof UnknownState,
      );
    await isUnknown(query, 'another browser');
    await isUnknown(new URLSearchParams({ state: 'x'.repeat(43), code: 'y' }), BINDING);
    await vault.finish(query, BINDING);
    await isUnknown(query, BINDING);
    let nowMs = Date.now();
    const late = node({ clock: { ...systemClock, wall: () => nowMs } });
    const old = await browse(await late.begin(target, { owner: 'user-1', binding: BINDING }));
    nowMs += 10 * 60_000;
    assert.ok((await late.finish(old, BINDING).catch((thrown: unknown) => thrown)) instanceof UnknownState);
  }),
);

vaults(
  'refuses the answer of another issuer, and says that the user has denied',
  withBackend(async ({ backend, target, node }) => {
    const vault = node();
    const query = await browse(await vault.begin(target, { owner: 'user-1', binding: BINDING }));
    query.set('iss', 'https://evil.example');
    const mixed = await vault.finish(query, BINDING).catch((thrown: unknown) => thrown);
    assert.ok(mixed instanceof BackendFetchFailure);
    backend.account = undefined;
    const denied = await connect(vault, target, 'user-1').catch((thrown: unknown) => thrown);
    assert.match(String(denied), /access_denied/);
    assert.equal(await vault.list(), []);
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
  'disconnecting deletes the tokens, and tells the authorization server',
  withBackend(async ({ backend, target, node }) => {
    const vault = node();
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    await tokens.current();
    const [connection] = await vault.list('user-1');
    assert.ok(connection);
    assert.not(await vault.disconnect(connection.id, 'user-2'));
    const revoked = new Promise<void>((resolve) => {
      const stop = systemClock.every(5, () => {
        if (backend.revocations === 0) return;
        stop();
        resolve();
      });
    });
    assert.ok(await vault.disconnect(connection.id, 'user-1'));
    assert.equal(await vault.list(), []);
    assert.is(await codeOf(tokens.current()), 'CONNECTION_REQUIRED none');
    await revoked;
  }),
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

vaults(
  'a backend that names the authorization server of another gets none of its accounts',
  withBackend(async ({ backend, target, node }) => {
    const vault = node();
    await connect(vault, target, 'user-1');
    const theirs = await vault.tokens(target, 'user-1').current();
    const [named, claimed] = [
      await startDocuments(() => backend.issuer),
      await startDocuments(() => backend.issuer, backend.url),
    ];
    try {
      const other: AccountTarget = { ...target, template: 'other', endpoint: `${named.url}/mcp` };
      assert.is((await vault.discover(other)).backend.resource, other.endpoint);
      assert.is(await codeOf(vault.tokens(other, 'user-1').current()), 'CONNECTION_REQUIRED none');
      const asked = new URL(await vault.begin(other, { owner: 'user-1', binding: BINDING }));
      assert.is(asked.searchParams.get('resource'), other.endpoint, 'the server can see for whom it is');
      const liar: AccountTarget = { ...target, template: 'liar', endpoint: `${claimed.url}/mcp` };
      const refused = await vault.discover(liar).catch((thrown: unknown) => thrown);
      assert.match(String(refused), 'its document is for another resource');
      assert.is(await vault.tokens(target, 'user-1').current(), theirs);
    } finally {
      await Promise.all([named.close(), claimed.close()]);
    }
  }),
);

vaults('metadata whose issuer is no text names no authorization server', async () => {
  const server = await startRawServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ issuer: { toString: 1 } }));
  });
  const documents = await startDocuments(() => new URL(server.url).origin);
  const vault = new Vault({
    ...{ clock: systemClock, changes$: new Subject(), store: new MemoryStore().oauth },
    ...{ isDenied: addressesIn([]), address: { issuer: BASE, isPublic: false } },
  });
  const endpoint = `${documents.url}/mcp`;
  try {
    const target: AccountTarget = { template: 'mail', id: 'm', endpoint, auth: { who: 'user' } };
    const refused = await vault.discover(target).catch((thrown: unknown) => thrown);
    assert.instance(refused, BackendFetchFailure);
    assert.match(String(refused), 'has no metadata that names it');
  } finally {
    await Promise.all([server.close(), documents.close()]);
  }
});

vaults('another authorization server is not used before an admin confirms it', async () => {
  const [first, second] = [await startOAuthBackend(), await startOAuthBackend()];
  const store = new MemoryStore();
  let issuer = first.issuer;
  const documents = await startDocuments(() => issuer);
  const target: AccountTarget = {
    template: 'mail',
    id: 'm',
    endpoint: `${documents.url}/mcp`,
    auth: { who: 'user' },
  };
  const vault = new Vault({
    clock: systemClock,
    changes$: new Subject(),
    ...{ store: store.oauth, isDenied: addressesIn([]), address: { issuer: BASE, isPublic: false } },
  });
  try {
    assert.is((await vault.discover(target)).backend.server.issuer, first.issuer);
    issuer = second.issuer;
    const { backend } = await vault.discover(target);
    assert.equal([backend.server.issuer, backend.changedTo], [first.issuer, second.issuer]);
    const refused = await vault
      .begin(target, { owner: SHARED, binding: BINDING })
      .catch((thrown: unknown) => thrown);
    assert.match(String(refused), /authorization server changed/);
    assert.match(String(await vault.check(target).catch((thrown: unknown) => thrown)), second.issuer);
    assert.is((await vault.confirm(target, 'https://elsewhere.example')).changedTo, second.issuer);
    const confirmed = await vault.discover(target, 'any');
    assert.equal([confirmed.backend.server.issuer, confirmed.backend.changedTo], [second.issuer, undefined]);
  } finally {
    await Promise.all([first.close(), second.close(), documents.close()]);
  }
});

vaults.run();
