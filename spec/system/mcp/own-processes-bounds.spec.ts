// How many processes an instance may run for single clients, over all lives of its shared one: those that survived count
// like all others, and when their sessions end nothing is left and their places are free.

import * as assert from 'uvu/assert';
import { canFindDescendants } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';
import { OwnHarness, pidOf } from './own-processes.ts';

const suited = suite('bounds of processes of single clients', { timeoutMs: 90_000 });
const test = suited.needs(canFindDescendants, 'processes are found through /proc, which is Linux');
let stage: OwnHarness;
suited.after.each(() => stage.close());

const FULL = '429 QUEUE_FULL';

test('those that survived count: the next one is refused, and let in when a place is free', async () => {
  stage = await OwnHarness.open({ processes: 2 });
  await stage.add();
  const [one, other] = [await stage.client(), await stage.client()];
  const pids = [await pidOf(one), await pidOf(other)];
  assert.is((await stage.knock()).said, FULL);
  await stage.loseAndRegain();
  assert.is((await stage.knock()).said, FULL);
  assert.equal((await stage.ownPids()).toSorted(), pids.toSorted());
  await one.close();
  await stage.comeIn();
  assert.is((await stage.knock()).said, FULL);
  assert.is(await pidOf(other), pids[1]);
  await stage.settlesAt(2);
});

test('a place is free, too, when its process died while there was no shared one', async () => {
  stage = await OwnHarness.open({ processes: 1 });
  await stage.add();
  const pid = await pidOf(await stage.client());
  await stage.lose();
  stage.kill(pid);
  await stage.settlesAt(0);
  await stage.regain();
  await stage.comeIn();
  assert.is((await stage.knock()).said, FULL);
});

test('many deaths with sessions opened in between never lead to more, and in the end nothing is left', async () => {
  const most = 3;
  stage = await OwnHarness.open({ processes: most });
  await stage.add();
  const open: string[] = [];
  const told: string[] = [];
  for (let life = 0; life < 4; life += 1) {
    if (life > 0) await stage.loseAndRegain();
    // Two more in each life: in the second one place is left, and then none.
    for (const { said, sessionId } of await Promise.all([stage.knock(), stage.knock()])) {
      told.push(said);
      if (sessionId !== undefined) open.push(sessionId);
    }
    await stage.settlesAt(open.length);
  }
  assert.equal(told.toSorted(), ['200', '200', '200', ...Array.from({ length: 5 }, () => FULL)]);

  await Promise.all(open.map((id) => stage.end(id)));
  await stage.settlesAt(0);
  for (let times = 0; times < most; times += 1) await stage.comeIn();
  assert.is((await stage.knock()).said, FULL);
});

test('sessions that are opened while the shared process dies are opened or refused, and leave nothing', async () => {
  const most = 4;
  stage = await OwnHarness.open({ processes: most });
  await stage.add();
  for (let life = 0; life < 3; life += 1) {
    // At every step of their opening: the first one has to start its program, others find a reserve or wait for a place.
    const knocks = Array.from({ length: 3 }, async (_, index) => {
      if (index > 0) await stage.ownPids();
      return stage.knock();
    });
    stage.kill(stage.sharedPid());
    const answers = await Promise.all(knocks);
    for (const { said } of answers) assert.match(said, /^(?:200|429 QUEUE_FULL|503 \w+)$/);
    const open = answers.flatMap(({ sessionId }) => sessionId ?? []);
    await stage.settlesAt(open.length);
    await Promise.all(open.map((id) => stage.end(id)));
    await stage.settlesAt(0);
    await stage.regain();
  }
  for (let times = 0; times < most; times += 1) await stage.comeIn();
  assert.is((await stage.knock()).said, FULL);
});

suited.run();
