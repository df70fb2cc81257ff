// Dedicated processes as an operator sees them, and their limit per instance over all restarts of the shared process. The effect of a dead process on its session: client-session-rebinding.spec.ts.

import * as assert from 'uvu/assert';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { ownTests, PATH, pidOf } from './own-processes.ts';

const suited = suite('dedicated processes of an instance', { timeoutMs: 90_000 });
const test = ownTests(suited.needs(canFindProcesses, NO_PROCESSES));

const FULL = '429 QUEUE_FULL';

test('stay listed for an operator while the instance is unhealthy', {}, async (harness) => {
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

// --- the limit ------------------------------------------------------------------------------------------

const MOST = 3;
test('never exceed the limit over many deaths of the shared one, and leave nothing', {
  processes: MOST,
}, async (harness) => {
  await harness.add();
  const open: string[] = [];
  const reported: string[] = [];
  for (let life = 0; life < 4; life += 1) {
    if (life > 0) await harness.loseAndRegain();
    // Two more in each life: in the second life one more is possible, and then none.
    for (const { said, sessionId } of await Promise.all([harness.knock(), harness.knock()])) {
      reported.push(said);
      if (sessionId !== undefined) open.push(sessionId);
    }
    await harness.settlesAt(open.length);
  }
  assert.equal(reported.toSorted(), ['200', '200', '200', ...Array.from({ length: 5 }, () => FULL)]);

  await Promise.all(open.map((id) => harness.end(id)));
  await harness.settlesAt(0);
  for (let times = 0; times < MOST; times += 1) await harness.comeIn();
  assert.is((await harness.knock()).said, FULL);
});

test('are created or refused for sessions that open while the shared one dies, and leave nothing', {
  processes: MOST,
}, async (harness) => {
  await harness.add();
  for (let life = 0; life < 3; life += 1) {
    // At every step of their opening: the first starts its program, others find a reserve or wait for capacity.
    const knocks = Array.from({ length: 3 }, async (_, index) => {
      if (index > 0) await harness.ownPids();
      return harness.knock();
    });
    harness.kill(harness.sharedPid());
    const answers = await Promise.all(knocks);
    for (const { said } of answers) assert.match(said, /^(?:200|429 QUEUE_FULL|503 \w+)$/);
    const open = answers.flatMap(({ sessionId }) => sessionId ?? []);
    await harness.settlesAt(open.length);
    await Promise.all(open.map((id) => harness.end(id)));
    await harness.settlesAt(0);
    await harness.regain();
  }
  for (let times = 0; times < MOST; times += 1) await harness.comeIn();
  assert.is((await harness.knock()).said, FULL);
});

suited.run();
