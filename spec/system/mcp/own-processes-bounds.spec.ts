// How many processes an instance may run for single clients, over all lives of its shared one: those that survived count
// like all others, and when their sessions end nothing is left and their places are free.

import * as assert from 'uvu/assert';
import { canFindDescendants } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';
import { ownTests, pidOf } from './own-processes.ts';

const suited = suite('bounds of processes of single clients', { timeoutMs: 90_000 });
const test = ownTests(suited.needs(canFindDescendants, 'processes are found through /proc, which is Linux'));

const FULL = '429 QUEUE_FULL';

test('those that survived count: the next one is refused, and let in when a place is free', {
  processes: 2,
}, async (harness) => {
  await harness.add();
  const [one, other] = [await harness.client(), await harness.client()];
  const pids = [await pidOf(one), await pidOf(other)];
  assert.is((await harness.knock()).said, FULL);
  await harness.loseAndRegain();
  assert.is((await harness.knock()).said, FULL);
  assert.equal((await harness.ownPids()).toSorted(), pids.toSorted());
  await one.close();
  await harness.comeIn();
  assert.is((await harness.knock()).said, FULL);
  assert.is(await pidOf(other), pids[1]);
  await harness.settlesAt(2);
});

test('a place is free, too, when its process died while there was no shared one', {
  processes: 1,
}, async (harness) => {
  await harness.add();
  const pid = await pidOf(await harness.client());
  await harness.lose();
  harness.kill(pid);
  await harness.settlesAt(0);
  await harness.regain();
  await harness.comeIn();
  assert.is((await harness.knock()).said, FULL);
});

const MOST = 3;
test('many deaths with sessions opened in between never lead to more, and in the end nothing is left', {
  processes: MOST,
}, async (harness) => {
  await harness.add();
  const open: string[] = [];
  const told: string[] = [];
  for (let life = 0; life < 4; life += 1) {
    if (life > 0) await harness.loseAndRegain();
    // Two more in each life: in the second one place is left, and then none.
    for (const { said, sessionId } of await Promise.all([harness.knock(), harness.knock()])) {
      told.push(said);
      if (sessionId !== undefined) open.push(sessionId);
    }
    await harness.settlesAt(open.length);
  }
  assert.equal(told.toSorted(), ['200', '200', '200', ...Array.from({ length: 5 }, () => FULL)]);

  await Promise.all(open.map((id) => harness.end(id)));
  await harness.settlesAt(0);
  for (let times = 0; times < MOST; times += 1) await harness.comeIn();
  assert.is((await harness.knock()).said, FULL);
});

test('sessions that are opened while the shared process dies are opened or refused, and leave nothing', {
  processes: MOST,
}, async (harness) => {
  await harness.add();
  for (let life = 0; life < 3; life += 1) {
    // At every step of their opening: the first one has to start its program, others find a reserve or wait for a place.
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
