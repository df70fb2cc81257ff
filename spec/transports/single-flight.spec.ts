// The first caller determines the fact; other callers wait, and fail when it fails.

import * as assert from 'uvu/assert';
import { queueFull } from '../../src/domain/error-catalogue.ts';
import { shuttingDown } from '../../src/domain/errors.ts';
import { SingleFlight } from '../../src/transports/single-flight.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { TurnCounter, untimedScheduler } from '../helpers/turns.ts';

const test = suite('single flight');

/** Waiting callers that continue in one turn of the event loop. */
const PER_TURN = 5;

test('waiting callers continue a few per turn, whether the first call succeeded or failed', async () => {
  for (const isFound of [true, false]) {
    const asker = new SingleFlight(false, untimedScheduler(PER_TURN));
    const turns = new TurnCounter();
    const first = Promise.withResolvers<void>();
    const { signal } = new AbortController();
    const all = [codeOf(asker.run(signal, () => first.promise))];
    for (let count = 0; count < 30; count += 1) {
      const run = asker.run(signal, async () => turns.note());
      all.push(codeOf(isFound ? run : run.finally(turns.note)));
    }
    if (isFound) first.resolve();
    else first.reject(queueFull('it is sick'));
    await Promise.all(all.map((one) => one.catch(() => undefined)));
    assert.equal([turns.all, turns.fullest], [30, PER_TURN]);
  }
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

function make(isKnown = false) {
  const asker = new SingleFlight(isKnown, untimedScheduler(PER_TURN));
  const asking = new Map<string, PromiseWithResolvers<string>>();
  const come = (name: string, signal = new AbortController().signal): Promise<string> =>
    asker.run(signal, () => {
      const open = Promise.withResolvers<string>();
      asking.set(name, open);
      return open.promise;
    });
  return { asker, asking, come };
}
