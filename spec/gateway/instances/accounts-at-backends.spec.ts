import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { asGatewayError } from '../../../src/domain/errors/errors.ts';
import { SHARED } from '../../../src/domain/instances/account-connection.ts';
import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { skippingClock } from '../../helpers/time/simulated-time.ts';

const address = { issuer: 'http://127.0.0.1:8080', isPublic: false };

interface World {
  readonly backend: OAuthBackend;
  readonly gateway: Gateway;
  readonly store: MemoryStore;
  /** As an admin with a browser. */
  readonly connect: () => Promise<void>;
  readonly whoami: () => Promise<string>;
}

function withBackend(run: (world: World) => Promise<void>, clock: Clock = systemClock) {
  return async () => {
    const backend = await startOAuthBackend();
    const store = new MemoryStore();
    const gateway = await createGateway({ store, clock, backendAccounts: { address } });
    try {
      await run({
        ...{ backend, gateway, store },
        connect: async () => {
          const vault = await gateway.internals.backendAccounts?.open();
          const { definition } = gateway.instance('mail', 'mail-1');
          const { template, id, endpoint = '', auth } = definition;
          assert.ok(vault && auth);
          const target = { template, id, endpoint, auth };
          const url = await vault.begin(target, { owner: SHARED, binding: 'b' });
          const answer = await fetch(url, { redirect: 'manual' });
          await vault.finish(new URL(answer.headers.get('location') ?? '').searchParams, 'b');
        },
        whoami: async () => {
          const { result } = await gateway.call('mail', 'whoami');
          return JSON.stringify(result);
        },
      });
    } finally {
      await gateway.close({ graceMs: 0 });
      await backend.close();
    }
  };
}

const shared = { mode: 'oauth', who: 'shared' } as const;

async function register({ gateway, backend }: World) {
  const input = { id: 'mail-1', endpoint: backend.url, auth: shared };
  return gateway.register('mail', input, { waitMs: 10_000 });
}

async function connected(world: World): Promise<void> {
  await register(world);
  const healthy = firstValueFrom(world.gateway.on('instance.healthy'));
  await world.connect();
  await healthy;
}

async function errorOf(promise: Promise<unknown>) {
  try {
    await promise;
  } catch (thrown) {
    return asGatewayError(thrown);
  }
  throw new Error('it was answered');
}

const accounts = suite('a backend that wants the shared account');

accounts(
  'is healthy, and says that it waits until its account is connected',
  withBackend(async (world) => {
    const { healthy } = await register(world);
    assert.ok(healthy);
    const { snapshot } = world.gateway.instance('mail', 'mail-1');
    assert.is(snapshot.reason, 'it waits until its account is connected');
    const { code, message } = await errorOf(world.whoami());
    const how = 'an admin connects it with "stagedoor connection add mail mail-1"';
    assert.equal(
      [code, message],
      ['CONNECTION_REQUIRED', `The shared account at the server of "mail" is not connected: ${how} first.`],
    );
    assert.equal(world.backend.seen, []);
  }),
);

accounts(
  'serves all callers once an account is connected',
  withBackend(async (world) => {
    world.backend.account = 'office';
    await connected(world);
    assert.match(await world.whoami(), /office/);
    assert.is(world.gateway.instance('mail', 'mail-1').snapshot.reason, null);
  }),
);

accounts(
  'is opened again at once when its account is connected, or is gone',
  withBackend(async (world) => {
    const { gateway } = world;
    await register(world);
    const delays: number[] = [];
    gateway.on('instance.restarting').subscribe(({ delayMs }) => delays.push(delayMs));
    for (const _ of [1, 2]) {
      const connectedAgain = firstValueFrom(gateway.on('instance.healthy'));
      await world.connect();
      await connectedAgain;
      await world.whoami();
      const waits = firstValueFrom(gateway.on('instance.healthy'));
      world.backend.endGrants();
      assert.is((await errorOf(world.whoami())).code, 'CONNECTION_REQUIRED');
      await waits;
    }
    assert.equal(delays, [0, 0, 0, 0]);
  }),
);

accounts(
  'is opened once with a token that its server refuses',
  withBackend(async (world) => {
    const { gateway, backend } = world;
    const auth = { ...shared, scopes: ['write'] }; // the server wants another one for everything
    await gateway.register('mail', { id: 'mail-1', endpoint: backend.url, auth }, { waitMs: 10_000 });
    let openings = 0;
    gateway.on('instance.restarting').subscribe(() => {
      openings += 1;
    });
    const opened = firstValueFrom(gateway.on('instance.healthy'));
    await world.connect();
    await opened;
    for (let calls = 0; calls < 10; calls += 1) {
      assert.is((await errorOf(world.whoami())).code, 'CONNECTION_REQUIRED');
      await setTimeout(20); // an opening takes so long
    }
    assert.is(openings, 1);
  }),
);

accounts(
  'gets no token of the earlier endpoint when its endpoint is replaced, also by one that names the same authorization server',
  withBackend(async (world) => {
    await connected(world);
    await world.whoami();
    const sent: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      const own = `http://${request.headers.host}`;
      sent.push(request.headers.authorization);
      if (request.url?.startsWith('/.well-known/') === true) {
        const document = { resource: `${own}/mcp`, authorization_servers: [world.backend.issuer] };
        response.setHeader('Content-Type', 'application/json').end(JSON.stringify(document));
        return;
      }
      const metadata = `resource_metadata="${own}/.well-known/oauth-protected-resource/mcp"`;
      response.writeHead(401, { 'WWW-Authenticate': `Bearer ${metadata}` }).end();
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    try {
      await world.gateway.deregister('mail', 'mail-1');
      const { port } = other.address() as AddressInfo;
      const input = { id: 'mail-1', endpoint: `http://127.0.0.1:${port}/mcp`, auth: shared };
      await world.gateway.register('mail', input, { waitMs: 10_000 });
      assert.is((await errorOf(world.whoami())).code, 'CONNECTION_REQUIRED');
      assert.ok(sent.length > 0);
      assert.equal([...new Set(sent)], [undefined]);
    } finally {
      other.closeAllConnections();
      other.close();
    }
  }),
);

accounts(
  'notices with the first call that another node has connected the account',
  withBackend(async (world) => {
    await register(world);
    await using other = await createGateway({ store: world.store, backendAccounts: { address } });
    if (!other.instance('mail', 'mail-1').snapshot.healthy)
      await firstValueFrom(other.on('instance.healthy'));
    const healthy = firstValueFrom(world.gateway.on('instance.healthy'));
    await world.connect();
    await healthy;
    const again = firstValueFrom(other.on('instance.healthy'));
    assert.is((await errorOf(other.call('mail', 'whoami'))).code, 'CONNECTION_REQUIRED');
    await again;
    assert.match(JSON.stringify((await other.call('mail', 'whoami')).result), /someone/);
  }),
);

accounts(
  'gets a renewed token after a 401, once for all calls',
  withBackend(async (world) => {
    await connected(world);
    await world.whoami();
    world.backend.expireTokens();
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.whoami()));
    assert.is(answers.length, 20);
    assert.equal([world.backend.refreshes, world.backend.refreshAttempts], [1, 1]);
  }),
);

const { clock, skip } = skippingClock();
/** The checks for silent calls, which the spec makes. */
const checks: (() => void)[] = [];
const checkedClock: Clock = {
  ...clock,
  alarm: (waitMs, callback) => {
    if (waitMs !== 500) return clock.alarm(waitMs, callback);
    checks.push(callback);
    return () => {};
  },
};

accounts(
  'is not silent while the gateway waits for a token',
  withBackend(async (world) => {
    const { backend, gateway } = world;
    await connected(world);
    await world.whoami();
    const ejected: string[] = [];
    gateway.on('instance.ejected').subscribe(({ reason }) => ejected.push(reason));
    backend.expireTokens();
    const gate = Promise.withResolvers<void>();
    backend.refreshGate = gate.promise;
    const calls = [1, 2, 3, 4].map(() => world.whoami());
    await until(() => backend.refreshAttempts === 1);
    skip(10_000);
    for (const check of checks.splice(0)) check();
    gate.resolve();
    await Promise.all(calls);
    assert.equal(ejected, []);
  }, checkedClock),
);

accounts(
  'sends a call again once, however long the refusal of its token is',
  withBackend(async (world) => {
    await connected(world);
    await world.whoami();
    world.backend.expireTokens();
    world.backend.isWordy = true;
    const before = world.backend.seen.length;
    assert.match(await world.whoami(), /someone/);
    await setTimeout(200);
    const sent = world.backend.seen.slice(before).map(({ tool }) => tool);
    assert.equal(sent, ['whoami']);
  }),
);

accounts(
  'waits for its account again when its grant is gone, without further attempts',
  withBackend(async (world) => {
    await connected(world);
    world.backend.endGrants();
    const { code, message } = await errorOf(world.whoami());
    assert.is(code, 'CONNECTION_REQUIRED');
    assert.match(message, 'is no longer connected');
    assert.is(world.backend.refreshAttempts, 1);
  }),
);

accounts(
  'names the scopes that a tool needs, and asks for them at the next connecting',
  withBackend(async (world) => {
    await connected(world);
    const { code, message } = await errorOf(world.gateway.call('mail', 'write'));
    assert.is(code, 'CONNECTION_REQUIRED');
    assert.match(message, 'may not do this yet');
    const goal = { template: 'mail', instanceId: 'mail-1', owner: SHARED };
    let goesOn = false;
    const connecting = world.gateway.internals.backendAccounts?.connectLinks.whenConnected(goal, 10_000);
    const waited = connecting?.then(() => {
      goesOn = true;
    });
    await setTimeout(100); // the database would have answered
    assert.is(goesOn, false, 'the account that lacks the scope is not the one that is waited for');
    await world.connect();
    await waited;
    assert.equal(world.backend.asked?.scopes?.toSorted(), ['read', 'write']);
    await world.gateway.call('mail', 'write');
  }),
);

accounts('cannot be registered with a command, or without saying for whom', async () => {
  await using gateway = await createGateway();
  const refusal = async (input: object) => (await errorOf(gateway.register('mail', input))).message;
  const endpoint = 'http://127.0.0.1:9/mcp';
  assert.match(await refusal({ command: 'node x.js', auth: shared }), /without a command/);
  assert.match(await refusal({ endpoint, auth: { mode: 'oauth' } }), /auth.who/);
  assert.match(await refusal({ endpoint, auth: shared, headers: { authorization: 'x' } }), /Authorization/);
  assert.match(await refusal({ endpoint, auth: { mode: 'none', who: 'user' } }), /other fields/);
});

accounts.run();
