// Accounts at backends that want OAuth: how they are connected, at which authorization server, and how they are disconnected.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { type ConnectionChange, SHARED } from '../../src/domain/instances/account-connection.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../src/domain/time/task-scheduler.ts';
import { addressesIn } from '../../src/net/network-guard.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { oauthKey } from '../../src/persistence/oauth-rows.ts';
import type { OAuthStore } from '../../src/persistence/oauth-store.ts';
import { RightLost, UnknownState } from '../../src/vault/authorization-flow.ts';
import { BackendFetchFailure } from '../../src/vault/backend-fetch.ts';
import type { AccountTarget } from '../../src/vault/oauth-backends.ts';
import { Vault } from '../../src/vault/vault.ts';
import { startOAuthBackend } from '../fixtures/oauth-backend.ts';
import { startDocuments } from '../fixtures/oauth-documents.ts';
import { until } from '../helpers/eventually.ts';
import { suite } from '../helpers/suite.ts';
import { startRawServer } from '../transports/raw-server.ts';
import { BASE, BINDING, browse, codeOf, connect, withBackend } from './connected-backend.ts';

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
  'does not revoke the tokens of an account of which nobody knows whether it is stored',
  withBackend(async ({ backend, target, store, node }) => {
    const { save } = store.oauth;
    store.oauth.save = async (row) => {
      await save(row);
      if (row.userId === 'user-1') throw databaseUnavailable(new Error('away'), 'unknown');
    };
    const vault = node();
    const failed = await connect(vault, target, 'user-1').catch((thrown: unknown) => thrown);
    assert.match(String(failed), 'unknown');
    assert.match(await vault.tokens(target, 'user-1').current(), /./);
    await connect(vault, target, 'user-2'); // a revocation would have arrived before
    assert.is(backend.revocations, 0);
  }),
);

vaults(
  'has connected an account whose tokens are stored, whatever the database does then',
  withBackend(async ({ store, target, node }) => {
    const changes$ = new Subject<ConnectionChange>();
    const changes: string[] = [];
    changes$.subscribe(({ type, owner }) => changes.push(`${type} ${owner}`));
    const vault = node({ changes$ });
    const { save, find } = store.oauth;
    store.oauth.save = async (row) => {
      await save(row);
      if (row.kind === 'connection')
        store.oauth.find = () => Promise.reject(databaseUnavailable(new Error('away')));
    };
    assert.is((await connect(vault, target, 'user-1')).owner, 'user-1');
    store.oauth.find = find;
    assert.equal(changes, ['connected user-1']);
    assert.match(await vault.tokens(target, 'user-1').current(), /./);
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
  'keeps no account of a user whose right ends while its token is asked for',
  withBackend(async ({ backend, target, node }) => {
    const vault = node();
    const query = await browse(await vault.begin(target, { owner: 'user-1', binding: BINDING }));
    const issued: number[] = [];
    const mayFinish = async () => issued.push(backend.issued.length) === 1;
    const refused = await vault.finish(query, BINDING, mayFinish).catch((thrown: unknown) => thrown);
    assert.ok(refused instanceof RightLost);
    assert.ok(Number(issued[1]) > Number(issued[0]), 'it is asked before and after');
    await until(() => backend.revocations === 1, 'its token is revoked');
    assert.equal(await vault.list('user-1'), []);
  }),
);

vaults(
  'keeps no account of a user who was deleted right before it was stored',
  withBackend(async ({ backend, target, store, node }) => {
    let isDeleted = false;
    const save: OAuthStore['save'] = async (row) => {
      if (row.kind === 'connection') isDeleted = true;
      await store.oauth.save(row);
    };
    const vault = node({ store: { ...store.oauth, save } });
    const query = await browse(await vault.begin(target, { owner: 'user-1', binding: BINDING }));
    const refused = await vault.finish(query, BINDING, () => !isDeleted).catch((thrown: unknown) => thrown);
    assert.ok(refused instanceof RightLost);
    await until(() => backend.revocations === 1, 'its token is revoked');
    assert.equal(await vault.list('user-1'), []);
  }),
);

vaults(
  'keeps the account that another user connected right before the first one lost the right',
  withBackend(async ({ backend, target, store, node }) => {
    const query = await browse(await node().begin(target, { owner: SHARED, binding: BINDING }));
    const later = { ...systemClock, wall: () => systemClock.wall() + 5 };
    let isStored = false;
    const save: OAuthStore['save'] = async (row) => {
      await store.oauth.save(row);
      isStored ||= row.kind === 'connection';
    };
    const mayFinish = async () => {
      if (!isStored) return true;
      await connect(node({ clock: later }), target, SHARED);
      return false;
    };
    const vault = node({ store: { ...store.oauth, save } });
    const refused = await vault.finish(query, BINDING, mayFinish).catch((thrown: unknown) => thrown);
    assert.ok(refused instanceof RightLost);
    await until(() => backend.revocations === 1, 'the token of the first one is revoked');
    assert.is((await vault.list()).length, 1);
    assert.match(await vault.tokens(target, SHARED).current(), /./);
  }),
);

vaults(
  'revokes the tokens of an account that cannot be stored',
  withBackend(async ({ backend, target, store, node }) => {
    const full = { ...store.oauth, save: async () => Promise.reject(new Error('the disk is full')) };
    const query = await browse(await node().begin(target, { owner: 'user-1', binding: BINDING }));
    const failed = await node({ store: full })
      .finish(query, BINDING)
      .catch((thrown: unknown) => thrown);
    assert.match(String(failed), 'the disk is full');
    await until(() => backend.revocations === 1, 'its token is revoked');
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
  'disconnecting revokes the tokens that were renewed meanwhile',
  withBackend(async ({ backend, target, store, node }) => {
    const vault = node();
    await connect(vault, target, 'user-1');
    const tokens = vault.tokens(target, 'user-1');
    const refused = await tokens.current();
    const [connection] = await vault.list('user-1');
    assert.ok(connection);
    const { list } = store.oauth;
    store.oauth.list = async (...asked) => {
      store.oauth.list = list;
      const rows = await list(...asked);
      assert.is(await tokens.renewed(refused), true);
      return rows;
    };
    assert.ok(await vault.disconnect(connection.id));
    await until(() => backend.revoked.length > 0);
    assert.equal(backend.revoked, backend.issued.slice(-1));
    assert.equal(await vault.list(), []);
  }),
);

vaults(
  'registers itself once at a server that names no possible time for the end of its secret',
  withBackend(
    async ({ backend, target, node }) => {
      await connect(node(), target, 'user-1');
      await connect(node(), target, 'user-2');
      assert.is(backend.registrations, 1);
    },
    { secretExpiresAt: '1e400' },
  ),
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
    ...{
      clock: systemClock,
      scheduler: new TaskScheduler(),
      changes$: new Subject(),
      store: new MemoryStore().oauth,
    },
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

vaults(
  'the tokens of an earlier authorization server are not sent to the one that was confirmed',
  async () => {
    const asked: string[] = [];
    const second = await startRawServer((request, response) => {
      const { origin } = new URL(second.url);
      request.resume();
      asked.push(request.url ?? '');
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(
        JSON.stringify({
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          revocation_endpoint: `${origin}/revoke`,
          code_challenge_methods_supported: ['S256'],
        }),
      );
    });
    let issuer = '';
    const documents = await startDocuments(() => issuer);
    const endpoint = `${documents.url}/mcp`;
    const first = await startOAuthBackend({ resource: endpoint });
    issuer = first.issuer;
    const target: AccountTarget = { template: 'mail', id: 'm', endpoint, auth: { who: 'user' } };
    const store = new MemoryStore();
    const vault = new Vault({
      ...{ clock: systemClock, scheduler: new TaskScheduler(), changes$: new Subject(), store: store.oauth },
      ...{ isDenied: addressesIn([]), address: { issuer: BASE, isPublic: false } },
    });
    try {
      await connect(vault, target, 'user-1');
      const [connection] = await vault.list();
      issuer = new URL(second.url).origin;
      await vault.confirm(target);
      assert.ok(await vault.disconnect(connection?.id ?? ''));
      await vault.confirm(target); // a revocation would have arrived before
      assert.equal(
        asked.filter((path) => !path.startsWith('/.well-known/')),
        [],
      );
    } finally {
      await Promise.all([first.close(), second.close(), documents.close()]);
    }
  },
);

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
  const node = (oauth: OAuthStore) =>
    new Vault({
      ...{ clock: systemClock, scheduler: new TaskScheduler() },
      changes$: new Subject(),
      ...{ store: oauth, isDenied: addressesIn([]), address: { issuer: BASE, isPublic: false } },
    });
  const vault = node(store.oauth);
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

    issuer = first.issuer;
    const find: OAuthStore['find'] = async (kind, keys) => {
      const rows = await store.oauth.find(kind, keys);
      if (kind === 'backend' && issuer === first.issuer) await vault.confirm(target, issuer); // at another node
      return rows;
    };
    const { changedTo } = (await node({ ...store.oauth, find }).discover(target)).backend;
    assert.equal(
      [changedTo, (await vault.discover(target)).backend.server.issuer],
      [undefined, first.issuer],
    );
  } finally {
    await Promise.all([first.close(), second.close(), documents.close()]);
  }
});

vaults.run();
