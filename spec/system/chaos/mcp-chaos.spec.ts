// Random faults: clients of both eras on every kind of backend, while backends die, freeze, answer wrongly, come and go, and
// the gateway itself is stopped and killed. No client gets another's answer, or none; every failure has a code; and
// afterwards nothing is left. The seed repeats a run (helpers/dice.ts).

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { callTool, toolText } from '../../helpers/clients/caller.ts';
import { againWith, chosenSeed, Dice } from '../../helpers/dice.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { type ChaosBackends, startBackends, TEMPLATES } from './backends.ts';
import { ChaosHarness } from './chaos-harness.ts';
import { ChaosClient } from './clients.ts';
import { makeTrouble, mend, register } from './events.ts';

const clients = 30;
const troubleMs = 8_000;
/** Answers amid trouble that a client must have got: on a slow machine the trouble goes on until then, but not for longer than this. */
const fewestAnswers = 101;
const longestTroubleMs = 80_000;
/** Under load, before the gateway goes. */
const loadMs = 1_000;
/** Sessions end after 2 s, and instances are probed again some seconds later. */
const quietMs = 30_000;

const seed = chosenSeed();
const test = suite(`journey: chaos, ${againWith(seed)}`, { timeoutMs: 240_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);

const folder = folderOfAll(test)();
let backends: ChaosBackends;
let chaos: ChaosHarness;

test.before(async () => {
  backends = await startBackends();
  chaos = await ChaosHarness.start(folder);
  for (const { template, body } of backends.instances) await register(chaos, template, body);
});
test.after(async () => {
  await chaos.remove();
  await backends.close();
});

needsProcesses('calls get their answer or an error code while backends die, freeze or restart', async () => {
  const dice = new Dice(seed);
  const answered = (): number => chaos.ended.get('answered') ?? 0;
  const giveUpAtMs = performance.now() + longestTroubleMs;
  const isEnough = (): boolean => answered() >= fewestAnswers || performance.now() >= giveUpAtMs;
  await underLoad((isOver) => makeTrouble(chaos, backends, dice, isOver), troubleMs, isEnough);
  await mend(chaos, backends);
  await allIsWell();
  assert.ok(answered() >= fewestAnswers, JSON.stringify([...chaos.ended]));
});

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  needsProcesses(`${signal} under load leaves no children, and the restarted gateway serves`, async () => {
    await underLoad(async () => {
      await delay(loadMs);
      await chaos.restart(signal);
    }, loadMs);
    await allIsWell();
  });
}

needsProcesses('it exits with 0, without children or faults in the log', () => chaos.end('SIGTERM'));

test.run();

/** Clients call while `what` runs, for at least `atLeastMs`, and until it is enough. */
async function underLoad(
  what: (isOver: () => boolean) => Promise<unknown>,
  atLeastMs: number,
  isEnough: () => boolean = () => true,
): Promise<void> {
  let hasEnded = false;
  const untilMs = performance.now() + atLeastMs;
  const mayEnd = (): boolean => performance.now() >= untilMs && isEnough();
  const happening = what(mayEnd).finally(() => {
    hasEnded = true;
  });
  const isOver = (): boolean => hasEnded && mayEnd();
  const crowd = Array.from({ length: clients }, (_, number) => {
    return new ChaosClient(chaos, number, new Dice(seed + number)).run(isOver);
  });
  await Promise.all([happening, ...crowd]);
}

/** Asserts that nothing was wrong, nothing is left, and every template answers. */
async function allIsWell(): Promise<void> {
  assert.equal(chaos.wrong, [], againWith(seed));
  await chaos.quiet(backends.instances.length, quietMs);
  for (const template of TEMPLATES) {
    const ask = () => callTool(chaos.harness.admin, template, 'echo', { text: template });
    assert.is(toolText(await eventually(ask, ({ status }) => status === 200)), template);
  }
}
