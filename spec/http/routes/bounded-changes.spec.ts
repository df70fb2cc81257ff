// Changes of the registry wait for each other: one caller has a bounded number under way, so that the others wait for few.

import * as assert from 'uvu/assert';
import { CHANGES } from '../../../src/http/routing/bounded-work.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { until } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('changes that are under way');

test('are bounded for each caller', async () => {
  const store = new MemoryStore();
  let released = Promise.resolve();
  const templates: MemoryStore['templates'] = {
    ...store.templates,
    save: async (change) => {
      await released;
      return store.templates.save(change);
    },
  };
  const slow = new Proxy(store, {
    get: (_store, name) => {
      const value: unknown = name === 'templates' ? templates : Reflect.get(store, name);
      return typeof value === 'function' ? value.bind(store) : value;
    },
  });
  const app = await startWithAccounts({ gateway: { store: slow } });
  await app.gateway.register('demo', { id: 'one', handler: () => ({}) });
  const held = Promise.withResolvers<void>();
  released = held.promise;
  const [greedy, other] = [await app.key(['gateway:write']), await app.key(['gateway:write'])];
  const change = (who: Credentials) =>
    app.as(who, 'PATCH', '/gateway/templates/demo', { body: { load_balancer: { max_retries: 1 } } });
  const most = CHANGES.atOnce * CHANGES.share;
  const refused: string[] = [];
  const changes = Array.from({ length: most + 1 }, async () => {
    const { status, outcome, headers } = await change(greedy);
    if (status !== 200) refused.push(`${outcome}, again after ${headers.get('retry-after')} s`);
    return status;
  });
  await until(() => refused.length > 0, 'one is refused');
  const ofOther = change(other);
  held.resolve();
  assert.is((await ofOther).status, 200);
  assert.is((await Promise.all(changes)).filter((status) => status === 200).length, most);
  assert.equal(refused, ['429 QUEUE_FULL, again after 5 s']);
  assert.is((await change(greedy)).status, 200, 'there is room again');
  await app.close();
});

test.run();
