// What the death of a process means for those who do not have it: the shared one's for its sessions, for calls without a
// session and for who comes now; a single client's for everybody else. And what an operator sees meanwhile.

import * as assert from 'uvu/assert';
import { isRunning } from '../../helpers/is-running.ts';
import { suite } from '../../helpers/suite.ts';
import { count, ownTests, PATH, pidOf } from './own-processes.ts';

const suited = suite('processes of single clients, and all others', { timeoutMs: 60_000 });
const test = ownTests(suited);

const LOST = '404 -32001';

// --- the shared process dies ----------------------------------------------------------------------------------------

test('failover never: who shares the dead process initializes again, who has one does not', {
  policy: { session: 'auto' },
}, async (harness) => {
  await harness.add();
  const sharing = await harness.client({});
  const own = await harness.client();
  assert.equal([await count(sharing), await count(own)], ['1', '1']);
  assert.equal(
    [await pidOf(sharing), (await pidOf(own)) === harness.sharedPid()],
    [harness.sharedPid(), false],
  );
  await harness.lose();
  assert.equal([await count(sharing), await count(own)], [LOST, '2']);
});

test('failover always: who shares the dead process moves, who has one stays', {
  policy: { session: 'auto', sessionFailover: 'always' },
}, async (harness) => {
  await harness.add('a');
  const sharing = await harness.client({});
  const own = await harness.client();
  assert.equal([await count(sharing), await count(own)], ['1', '1']);
  await harness.add('b');
  await harness.lose('a');
  const pids = [(await sharing.call('pid')).instanceId, (await own.call('pid')).instanceId];
  assert.equal([await count(sharing), await count(own), ...pids], ['1', '2', 'b', 'a']);
});

test('without a shared process nobody new comes in, and nobody without a session', {}, async (harness) => {
  await harness.add();
  const client = await harness.client();
  await harness.lose();
  assert.is(await harness.rest('pid'), '503 NO_HEALTHY_INSTANCE');
  assert.is((await harness.knock()).said, '503 NO_HEALTHY_INSTANCE');
  assert.is(await count(client), '1');
});

test('who comes while there is no shared process comes to another instance', {}, async (harness) => {
  await harness.add('a');
  const old = await harness.client();
  await harness.add('b');
  await harness.lose('a');
  for (let times = 0; times < 4; times += 1) {
    assert.is(await harness.rest('name'), 'b by b');
    const client = await harness.client();
    assert.is((await client.call('name')).instanceId, 'b');
  }
  assert.is((await old.call('name')).instanceId, 'a');
});

test('when the shared process is back, new clients come in beside those who stayed', {}, async (harness) => {
  await harness.add();
  const old = await harness.client();
  await harness.loseAndRegain();
  const young = await harness.client();
  assert.is(await harness.rest('pid'), `${harness.sharedPid()} by a`);
  const pids = [await pidOf(old), await pidOf(young)];
  assert.is(new Set([...pids, harness.sharedPid()]).size, 3);
  assert.equal(
    new Set((await harness.record()).own_pids.map(({ pid }) => pid)),
    new Set(pids),
    'both are its processes',
  );
});

test('an operator sees an instance that is not healthy, and whose processes go on', {}, async (harness) => {
  await harness.add();
  const clients = [await harness.client(), await harness.client()];
  const pids = await Promise.all(clients.map(pidOf));
  const before = await harness.record();
  await harness.lose();
  const { status, body } = await harness.app.ask('GET', `${PATH}/health`);
  assert.equal([status, body.status, body.healthy_instances], [200, 'unhealthy', 0]);
  const { healthy, own_pids, own_processes, sessions } = await harness.record();
  assert.equal([healthy, own_processes, sessions], [false, 2, 2]);
  assert.equal(own_pids, before.own_pids);
  assert.equal(own_pids.map(({ pid }) => pid).toSorted(), pids.toSorted());
});

// --- the process of a client dies -----------------------------------------------------------------------------------

test('failover never: with its process one session ends, and nothing else', {}, async (harness) => {
  await harness.add();
  const clients = [await harness.client(), await harness.client(), await harness.client()];
  const shared = harness.sharedPid();
  const pids = await Promise.all(clients.map(pidOf));
  harness.kill(pids[1] ?? 0);
  await harness.settlesAt(2);
  assert.equal(await Promise.all(clients.map((client) => count(client))), ['1', LOST, '1']);
  const { healthy, restarts, pid } = await harness.record();
  assert.equal([healthy, restarts, pid, isRunning(shared)], [true, 0, shared, true]);
});

test('failover always: a session whose process died goes on in another one', {
  policy: { sessionFailover: 'always' },
}, async (harness) => {
  await harness.add('a');
  const [one, other] = [await harness.client(), await harness.client()];
  const pids = [await pidOf(one), await pidOf(other)];
  assert.equal([await count(one), await count(other)], ['1', '1']);
  await harness.add('b');
  harness.kill(pids[0] ?? 0);
  await harness.settlesAt(1);
  assert.equal([await count(one), await count(other)], ['1', '2']);
  assert.is.not(await pidOf(one), pids[0]);
  assert.is(await pidOf(other), pids[1]);
});

test('a process that dies after the shared one takes its own session only', {}, async (harness) => {
  await harness.add();
  const [one, other] = [await harness.client(), await harness.client()];
  const pids = [await pidOf(one), await pidOf(other)];
  await harness.lose();
  harness.kill(pids[0] ?? 0);
  await harness.settlesAt(1);
  assert.equal([await count(one), await count(other)], [LOST, '1']);
  await harness.regain();
  assert.equal([await count(one), await count(other)], [LOST, '2']);
});

test('failover always: a session whose process dies after the shared one goes on elsewhere', {
  policy: { sessionFailover: 'always' },
}, async (harness) => {
  await harness.add('a');
  const client = await harness.client();
  const pid = await pidOf(client);
  await harness.add('b');
  await harness.lose('a');
  assert.is(await pidOf(client), pid);
  harness.kill(pid);
  await harness.settlesAt(0);
  assert.is((await client.call('name')).instanceId, 'b');
});

suited.run();
