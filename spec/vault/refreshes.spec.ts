import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { asGatewayError } from '../../src/domain/errors/errors.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../src/domain/time/task-scheduler.ts';
import { addressesIn } from '../../src/net/network-guard.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import type { OAuthStore } from '../../src/persistence/oauth-store.ts';
import { accountConnectionKey } from '../../src/vault/account-connections.ts';
import type { AccountTarget, OAuthBackend } from '../../src/vault/oauth-backends.ts';
import { Vault, type VaultOptions } from '../../src/vault/vault.ts';
import { until } from '../helpers/eventually.ts';
import { suite } from '../helpers/suite.ts';

interface Answering {
  /** What the token endpoint answers to this request, which is the first, second and so on. */
  token: (count: number) => object;
  /** No answer is sent before this number of requests came. */
  holdsUntil: number;
  asked: number;
}

/** A backend that is its own authorization server, without any check, and a vault whose users are connected to it. */
async function withUsers(
  users: number,
  answering: Answering,
  run: (tokens: Vault, target: AccountTarget) => unknown,
  store: OAuthStore = new MemoryStore().oauth,
) {
  const held: (() => void)[] = [];
  const server = createServer((request, response) => {
    const { pathname: path } = new URL(request.url ?? '', 'http://any');
    const base = `http://${request.headers.host}`;
    const answer = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
    response.setHeader('content-type', 'application/json');
    request.resume();
    if (path === '/register') answer(201, { client_id: 'gateway' });
    else if (path === '/token') {
      answering.asked += 1;
      const body = answering.token(answering.asked);
      held.push(() => answer(200, { token_type: 'Bearer', ...body }));
      if (answering.asked >= answering.holdsUntil) for (const send of held.splice(0)) send();
    } else if (path === '/.well-known/oauth-authorization-server')
      answer(200, {
        ...{ issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token` },
        ...{ registration_endpoint: `${base}/register`, code_challenge_methods_supported: ['S256'] },
      });
    else answer(path === '/mcp' ? 401 : 404, {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const target: AccountTarget = { template: 'mail', id: 'mail-1', endpoint, auth: { who: 'user' } };
  const vault = vaultOn({ store });
  try {
    for (let user = 0; user < users; user += 1) {
      const url = await vault.begin(target, { owner: `user-${user}`, binding: 'a browser' });
      const state = new URL(url).searchParams.get('state') ?? '';
      await vault.finish(new URLSearchParams({ code: 'any', state }), 'a browser');
    }
    await run(vault, target);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function vaultOn(options: Pick<VaultOptions, 'store'> & Partial<VaultOptions>): Vault {
  return new Vault({
    ...{ clock: systemClock, scheduler: new TaskScheduler() },
    ...{ changes$: new Subject(), isDenied: addressesIn([]) },
    lives: { life: () => 'a life', hasEnded: () => false },
    address: { issuer: 'http://127.0.0.1:8080', isPublic: false },
    ...options,
  });
}

async function outcome(token: string | Promise<string>): Promise<string> {
  return Promise.resolve(token).then(
    () => 'ok',
    (thrown: unknown) => asGatewayError(thrown).message,
  );
}

const refreshes = suite('refreshes of tokens');

refreshes('of many users at the same time wait for each other', async () => {
  const USERS = 60;
  const AT_THE_SAME_TIME = 16;
  const token = (count: number) => {
    const isFirst = count <= USERS;
    return { access_token: `a${count}`, refresh_token: `r${count}`, expires_in: isFirst ? 0 : 3_600 };
  };
  const answering: Answering = { token, holdsUntil: 0, asked: 0 };
  await withUsers(USERS, answering, async (vault, target) => {
    answering.holdsUntil = answering.asked + AT_THE_SAME_TIME;
    const users = Array.from({ length: USERS }, (_, user) => vault.tokens(target, `user-${user}`).current());
    assert.equal([...new Set(await Promise.all(users.map(outcome)))], ['ok']);
    assert.is(answering.asked, 2 * USERS);
  });
});

refreshes('of many users are all made when their server answers again after it was silent', async () => {
  const USERS = 30;
  const token = (count: number) => ({
    ...{ access_token: `a${count}`, refresh_token: `r${count}` },
    expires_in: count <= USERS ? 0 : 3_600,
  });
  const answering: Answering = { token, holdsUntil: 0, asked: 0 };
  const store = new MemoryStore().oauth;
  await withUsers(
    USERS,
    answering,
    async (_, target) => {
      let isPatient = false;
      const alarm: typeof systemClock.alarm = (ms, run) => systemClock.alarm(isPatient ? ms : 50, run);
      const vault = vaultOn({ store, clock: { ...systemClock, alarm } });
      answering.holdsUntil = Number.POSITIVE_INFINITY;
      assert.match(await outcome(vault.tokens(target, 'user-0').current()), 'gave no answer');
      isPatient = true;
      answering.holdsUntil = 0;
      const others = Array.from({ length: USERS - 1 }, (_, user) => vault.tokens(target, `user-${user + 1}`));
      const outcomes = await Promise.all(others.map((tokens) => outcome(tokens.current())));
      assert.equal([...new Set(outcomes)], ['ok']);
    },
    store,
  );
});

refreshes(
  'of one connection are made by one node, also when the clock of another is 45 s ahead',
  async () => {
    const token = (count: number) => ({
      ...{ access_token: `a${count}`, refresh_token: `r${count}` },
      expires_in: count <= 2 ? 0 : 3_600,
    });
    const answering: Answering = { token, holdsUntil: 0, asked: 0 };
    const store = new MemoryStore().oauth;
    await withUsers(
      2,
      answering,
      async (vault, target) => {
        let looks = 0;
        const ahead = vaultOn({
          store: { ...store, find: (...asked) => store.find(...asked).finally(() => (looks += 1)) },
          clock: { ...systemClock, wall: () => systemClock.wall() + 45_000 },
        });
        answering.holdsUntil = answering.asked + 2;
        const first = vault.tokens(target, 'user-0').current();
        await until(() => answering.asked === 3, 'the first node asks for a token');
        const second = ahead.tokens(target, 'user-0').current();
        await until(() => looks >= 4, 'the second node waits for the row');
        assert.is(answering.asked, 3);
        const other = vault.tokens(target, 'user-1').current(); // its request lets both be answered
        assert.equal([...new Set(await Promise.all([first, second]))].length, 1);
        assert.equal([await outcome(other), answering.asked], ['ok', 4]);
      },
      store,
    );
  },
);

refreshes('that bring the same token, which is over, are made once for a call', async () => {
  const token = () => ({ access_token: 'same', refresh_token: 'r', expires_in: 0 });
  const answering: Answering = { token, holdsUntil: 0, asked: 0 };
  await withUsers(1, answering, async (vault, target) => {
    const tokens = vault.tokens(target, 'user-0');
    assert.is(await tokens.current(), 'same');
    assert.is(answering.asked, 2);
    assert.is(await tokens.renewed('same'), false);
    assert.is(answering.asked, 3);
  });
});

refreshes('fail when other nodes change the connection each time', async () => {
  const token = () => ({ access_token: 'a', refresh_token: 'r', expires_in: 0 });
  const answering: Answering = { token, holdsUntil: 0, asked: 0 };
  const store = new MemoryStore().oauth;
  let tries = 0;
  const replace: OAuthStore['replace'] = async (row, version) => {
    if (row.kind !== 'connection') return store.replace(row, version);
    tries += 1;
    return false;
  };
  await withUsers(
    1,
    answering,
    async (vault, target) => {
      const message = await outcome(vault.tokens(target, 'user-0').renewed('a').then(String));
      assert.match(message, 'its connection is changed by other nodes all the time');
      assert.equal([tries, answering.asked], [20, 1]);
    },
    { ...store, replace },
  );
});

refreshes('are not needed for long tokens that leave the memory: their rows are read again', async () => {
  const USERS = 700;
  const rowsRead = { count: 0 };
  const store = new MemoryStore().oauth;
  const counting: OAuthStore = {
    ...store,
    find: (kind, keys) => {
      if (kind === 'connection') rowsRead.count += 1;
      return store.find(kind, keys);
    },
  };
  for (const { length, rows } of [
    { length: 60_000, rows: 1 },
    { length: 1_000, rows: 0 },
  ]) {
    const token = () => ({ access_token: 'a'.repeat(length), expires_in: 3_600 });
    const answering: Answering = { token, holdsUntil: 0, asked: 0 };
    const run = async (vault: Vault, target: AccountTarget) => {
      await connectMore(store, USERS);
      const all = Array.from({ length: USERS }, (_, user) => vault.tokens(target, `user-${user}`));
      for (const tokens of all) await tokens.current();
      rowsRead.count = 0;
      for (const tokens of all.slice(-500)) await tokens.current();
      assert.is(rowsRead.count, 0);
      await all[0]?.current();
      assert.is(rowsRead.count, rows, `${length} characters`);
      assert.is(answering.asked, 1);
    };
    await withUsers(1, answering, run, counting);
  }
});

/** Users beside the first, with a token like that of the first. */
async function connectMore(store: OAuthStore, users: number): Promise<void> {
  const [row] = await store.list({ kind: 'connection' }, 1);
  assert.ok(row);
  const value = JSON.parse(row.value);
  const { issuer, resource } = value;
  const backend = { server: { issuer }, resource } as OAuthBackend;
  for (let user = 1; user < users; user += 1) {
    const owner = `user-${user}`;
    const key = accountConnectionKey(owner, backend);
    await store.save({ ...row, key, userId: owner, value: JSON.stringify({ ...value, owner }) });
  }
}

refreshes.run();
