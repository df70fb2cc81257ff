// The first caller determines the fact; other callers wait, and the next one tries when it fails.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { shuttingDown } from '../../src/domain/errors.ts';
import { SingleFlight } from '../../src/transports/single-flight.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { TurnCounter, untimedScheduler } from '../helpers/turns.ts';

const test = suite('single flight');

/** Waiting callers that continue in one turn of the event loop. */
const PER_TURN = 5;

test('waiting callers continue a few per turn', async () => {
  const asker = new SingleFlight(untimedScheduler(PER_TURN));
  const turns = new TurnCounter();
  const first = Promise.withResolvers<void>();
  const { signal } = new AbortController();
  const all = [asker.run(signal, () => first.promise)];
  for (let count = 0; count < 30; count += 1) all.push(asker.run(signal, async () => turns.note()));
  first.resolve();
  await Promise.all(all);
  assert.equal([turns.all, turns.fullest], [30, PER_TURN]);
});

test('the next caller tries when the first one failed', async () => {
  const { asking, come } = make();
  const first = codeOf(come('a'));
  const second = come('b');
  asking.get('a')?.reject(shuttingDown());
  assert.is(await first, 'SHUTTING_DOWN');
  while (!asking.has('b')) await turn();
  asking.get('b')?.resolve('found');
  assert.is(await second, 'found');
});

test('an aborted caller stops waiting', async () => {
  const { asking, come } = make();
  void come('a');
  const caller = new AbortController();
  const waiting = codeOf(come('b', caller.signal));
  caller.abort(shuttingDown());
  assert.is(await waiting, 'SHUTTING_DOWN');
  assert.is(await codeOf(come('c', AbortSignal.abort(shuttingDown()))), 'SHUTTING_DOWN');
  assert.equal([...asking.keys()], ['a']);
});

test.run();

function make() {
  const asker = new SingleFlight(untimedScheduler(PER_TURN));
  const asking = new Map<string, PromiseWithResolvers<string>>();
  const come = (name: string, signal = new AbortController().signal): Promise<string> =>
    asker.run(signal, () => {
      const open = Promise.withResolvers<string>();
      asking.set(name, open);
      return open.promise;
    });
  return { asking, come };
}
