// The lives of one node on one database, and an HTTP server behind them. A life does not end when the next one begins: it is not asked
// any more, as after `kill -9`.

import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import type { Store } from '../../../src/persistence/store.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import type { Suite } from '../suite.ts';

/** What each test has of its own. */
interface Lives {
  readonly server: HttpFixture;
  /** Of the lives that begin from now on. */
  store: Store;
  readonly gateways: Gateway[];
}

/** Opens a database for each test of the suite, and closes everything after it. */
export function livesFor(test: Suite, serverOptions: Parameters<typeof startHttpServer>[0] = {}) {
  const current: Lives[] = [];
  const own = (): Lives => {
    const [lives] = current;
    if (lives === undefined) throw new Error('no test has begun');
    return lives;
  };
  test.before.each(async () => {
    const opened = openStore('sqlite://', { cwd: '.', migrations: 'apply' });
    const [server, store] = await Promise.all([startHttpServer(serverOptions), opened]);
    current.push({ server, store, gateways: [] });
  });
  test.after.each(async () => {
    const { server, store, gateways } = own();
    current.pop();
    await Promise.all(gateways.map((gateway) => gateway.close({ graceMs: 0 })));
    await Promise.all([store.close(), server.close()]);
  });
  return {
    get server(): HttpFixture {
      return own().server;
    },
    get store(): Store {
      return own().store;
    },
    /** Changes the store of the lives that begin from now on. */
    change(change: Partial<Store>): void {
      const lives = own();
      lives.store = { ...lives.store, ...change };
    },
    /** Begins the next life. */
    async start(options: GatewayOptions = {}): Promise<Gateway> {
      const { store, gateways } = own();
      const gateway = await createGateway({ store, node: { id: 'n' }, ...options });
      gateways.push(gateway);
      return gateway;
    },
  };
}
