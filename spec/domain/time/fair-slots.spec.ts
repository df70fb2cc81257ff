// Which opening starts when, which ones stop waiting, and the shares. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { grantPrincipalId } from '../../../src/domain/accounts/principal.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { FairSlots, type FairSlotsOptions } from '../../../src/domain/time/fair-slots.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns, TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('fair slots');

const PATIENCE_MS = 30_000;
/** Starts that begin, or time out, in one turn of the event loop. */
const PER_TURN = 3;
const TWO: Omit<FairSlotsOptions, 'scheduler' | 'clock'> = {
  atOnce: 2,
  atOncePerShare: 2,
  maxWaitMs: PATIENCE_MS,
};
const FOUR = { ...TWO, atOnce: 4, atOncePerShare: 3 };

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('counts down to zero, and forgets the shares', async () => {
  const { line, started, come } = make(FOUR);
  const names = ['ada 1', 'ada 2', 'ada 3', 'ada 4', 'bo 1'];
  const all = names.map((name) => come(name));
  for (const name of ['bo 1', 'ada 1', 'ada 2', 'ada 3', 'ada 4']) {
    await turn();
    started.get(name)?.resolve('');
  }
  await Promise.all(all);
  assert.equal([line.running, line.waiting, line.shares], [0, 0, 0]);
});

test('serves the owner with the fewest starts next, of several the least recently served one', async () => {
  const { started, come } = make(FOUR);
  for (const name of ['ada 1', 'ada 2', 'ada 3', 'bo 1']) void come(name);
  for (const name of ['ada 4', 'bo 2', 'cy 1', 'cy 2', 'dee 1', 'dee 2']) void come(name);
  for (const done of ['ada 1', 'ada 2', 'ada 3', 'bo 1', 'cy 1']) {
    started.get(done)?.resolve('');
    await turn();
  }
  assert.equal([...started.keys()].slice(4), ['cy 1', 'dee 1', 'ada 4', 'bo 2', 'cy 2']);
});

test('several clients of one user start no more than one', async () => {
  const { started, come } = make(FOUR);
  const names = ['1', '2', '3', '4'].map((grant) => `${grantPrincipalId(grant, 'ada')} ${grant}`);
  for (const name of [...names, 'bo 1']) void come(name);
  await turn();
  assert.equal([...started.keys()], [...names.slice(0, 3), 'bo 1']);
});

test('starts that time out together fail a few per turn, and none of them begins meanwhile', async () => {
  const { line, started, come } = make({
    ...TWO,
    scheduler: untimedScheduler(PER_TURN),
  });
  const turns = new TurnCounter();
  void come('a');
  void come('b');
  const waiting = Array.from({ length: 20 }, (_, count) => codeOf(come(`${count}`)).then(turns.note));
  mock.timers.tick(PATIENCE_MS);
  started.get('a')?.resolve('');
  await Promise.all(waiting);
  assert.equal([turns.all, turns.fullest], [20, PER_TURN]);
  assert.equal([[...started.keys()], line.waiting], [['a', 'b'], 0]);
});

test('after many ends a few starts begin per turn, while later ones wait', async () => {
  const { line, started, come } = make({
    ...FOUR,
    atOnce: 20,
    atOncePerShare: 20,
    scheduler: untimedScheduler(PER_TURN),
  });
  for (let count = 0; count < 20; count += 1) void come(`first ${count}`);
  const turns = new TurnCounter();
  for (let count = 0; count < 20; count += 1) void come(`then ${count}`, undefined, turns.note);
  for (const { resolve } of [...started.values()]) resolve('');
  await turns.pass(2);
  void come('then last');
  assert.is(started.has('then last'), false);
  await turns.pass(20);
  assert.equal([turns.all, turns.fullest], [20, PER_TURN]);
  assert.equal([line.running, line.waiting], [20, 1]);
});

test('an opening that hangs gives up its slot after a while, once', async () => {
  const { line, started, come } = make({ maxHoldMs: 5_000 });
  for (const name of ['ada 1', 'ada 2', 'ada 3', 'ada 4', 'ada 5']) void come(name);
  await turn();
  mock.timers.tick(4_999);
  await turn();
  assert.equal([...started.keys()], ['ada 1', 'ada 2']);
  mock.timers.tick(1);
  await turn();
  assert.equal([...started.keys()], ['ada 1', 'ada 2', 'ada 3', 'ada 4']);
  started.get('ada 1')?.resolve('');
  await turn();
  assert.equal([line.running, line.waiting], [2, 1]);
  started.get('ada 3')?.resolve('');
  await turn();
  assert.equal([line.running, line.waiting], [2, 0]);
});

test('work waits as long as its request says; the bound may be that of each share alone', async () => {
  const refusal = (why: string) => new Error(why);
  const { line, started, come } = make({ atOnce: Number.POSITIVE_INFINITY, atOncePerShare: 1, refusal });
  for (const name of ['ada 1', 'bo 1', 'bo 2']) void come(name);
  const start = async (): Promise<void> => assert.unreachable();
  const refused = line.take({ shareId: 'ada', maxWaitMs: 10, start }).catch((thrown) => thrown.message);
  mock.timers.tick(10);
  assert.is(await refused, 'late');
  started.get('bo 1')?.resolve('');
  await turn();
  assert.equal([...started.keys()], ['ada 1', 'bo 1', 'bo 2']);
  assert.equal([line.running, line.waiting], [2, 0]);
});

test.run();

/** The next start begins a moment after the end of another. */
function turn(): Promise<void> {
  return passTurns(2);
}

function make({ scheduler = untimedScheduler(), ...options }: Partial<FairSlotsOptions> = {}) {
  const line = new FairSlots({ ...TWO, clock: systemClock, scheduler, ...options });
  const started = new Map<string, PromiseWithResolvers<string>>();
  /** Joins the queue; its start is settled through `started`. The first word is the owner, if there are two. */
  const come = (name: string, signal = new AbortController().signal, begun = () => {}): Promise<string> => {
    const [ownerId = '', count] = name.split(' ');
    const start = (): Promise<string> => {
      begun();
      const running = Promise.withResolvers<string>();
      started.set(name, running);
      return running.promise;
    };
    return line.take({ shareId: count === undefined ? 'all' : ownerId, signal, start });
  };
  return { line, started, come };
}
