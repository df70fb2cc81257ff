// POST /gateway/sync: callers share the syncs that may be under way.

import { writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { FakeCluster } from '../../../gateway/sync/fake-cluster.ts';
import { folderOfEach } from '../../../helpers/folder.ts';
import { type AccountsFixture, type Credentials, startWithAccounts } from '../../../helpers/http/accounts.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('syncs of several callers');
const folder = folderOfEach(test);
const NOWHERE = 'unix:///nowhere/engine.sock';
let cluster: FakeCluster;
let app: AccountsFixture;

test.before.each(async () => {
  cluster = new FakeCluster();
  await cluster.listen();
  const config = {
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'the-cluster', user: 'the-user' } }],
    clusters: [{ name: 'the-cluster', cluster: { server: cluster.url } }],
    users: [{ name: 'the-user', user: { token: cluster.token } }],
  };
  await writeFile(folder('config'), JSON.stringify(config));
  const env = { DOCKER_HOST: NOWHERE, CONTAINER_HOST: NOWHERE, KUBECONFIG: folder('config') };
  app = await startWithAccounts({ gateway: { discovery: { env } } });
});
test.after.each(async () => {
  await app.close();
  await cluster.close();
});

test('one caller has a quarter of them at most', async () => {
  cluster.held = [];
  const keyOf = () => app.key(['gateway:write']);
  const [greedy, other] = [await keyOf(), await keyOf()];
  const sync = (who: Credentials) => app.as(who, 'POST', '/gateway/sync', { body: { namespace: '*' } });
  const running = Array.from({ length: 9 }, () => sync(greedy));
  assert.is((await Promise.race(running)).outcome, '429 QUEUE_FULL');
  running.push(sync(other));
  const held = cluster.held.splice(0);
  cluster.held = undefined;
  for (const answer of held) answer();
  const statuses = (await Promise.all(running)).map(({ status }) => status);
  assert.equal(statuses.toSorted(), [...Array(9).fill(200), 429]);
  assert.is((await sync(greedy)).status, 200);
});

test.run();
