// Sessions with one template in several lives of a node, and the operations on the store that they cost. A life ends here as with
// `kill -9`: the gateway of the next one opens the store while the one before still runs, and that one is not asked any more.

import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import type { SessionStore } from '../../../src/persistence/store.ts';
import { livesFor } from '../../helpers/stores/lives.ts';
import type { Suite } from '../../helpers/suite.ts';
import { postTo } from './post.ts';

export const ADA: Principal = { ...ANONYMOUS, id: 'user:ada' };
export const EVE: Principal = { ...ANONYMOUS, id: 'user:eve' };
export const READ = { method: 'resources/list' };
export const UNSAFE = call('count');

export function call(name: string) {
  return { method: 'tools/call', params: { name, arguments: { text: 'x' } } };
}

export function post(gateway: Gateway, headers: object, message: JsonObject, principal = ADA) {
  return postTo(gateway, { template: 't', headers, message, principal });
}

/** The answer of a database that is away. */
export function refusal(): Promise<void> {
  const refused = Promise.reject(databaseUnavailable(new Error('away')));
  refused.catch(() => undefined); // nothing may have asked yet
  return refused;
}

/** The store of each test of the suite, and a server behind it, which answers with streams. */
export class StoredSessions {
  readonly lives;
  /** The operations on sessions, without trims. */
  operations: string[] = [];
  /** What each operation on sessions waits for. */
  blocked: Promise<void> | undefined;
  #sessions: SessionStore | undefined;

  constructor(test: Suite) {
    this.lives = livesFor(test, { answers: 'sse' });
    test.before.each(() => {
      this.operations = [];
      this.blocked = undefined;
      this.#sessions = this.lives.store.sessions;
      this.lives.change({ sessions: this.#watched(this.#sessions) });
    });
  }

  get server() {
    return this.lives.server;
  }

  /** The sessions in the store, whose operations are neither noted nor blocked. */
  get sessions(): SessionStore {
    if (this.#sessions === undefined) throw new Error('no test has begun');
    return this.#sessions;
  }

  /** The next life of the node. */
  start(options: GatewayOptions = {}): Promise<Gateway> {
    return this.lives.start({ ...options, sessions: { recover: true, ...options.sessions } });
  }

  async registered(gateway: Gateway, load: object = {}): Promise<void> {
    await gateway.register('t', { id: 'a', endpoint: this.server.url }, { waitMs: 20_000 });
    await gateway.changeTemplate('t', load);
  }

  #watched(sessions: SessionStore): SessionStore {
    const watching =
      <Input extends unknown[], Output>(name: string, operation: (...input: Input) => Promise<Output>) =>
      async (...input: Input) => {
        this.operations.push(name);
        await this.blocked;
        return operation(...input);
      };
    return {
      insert: watching('insert', sessions.insert),
      update: watching('update', sessions.update),
      read: watching('read', sessions.read),
      claim: watching('claim', sessions.claim),
      delete: watching('delete', sessions.delete),
      trim: sessions.trim,
    };
  }
}
