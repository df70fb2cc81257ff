// Who starts when, and who does not wait any longer. Time is simulated.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { queueFull } from '../../src/domain/errors.ts';
import { StartLine } from '../../src/transports/start-line.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('start line');

const PATIENCE_MS = 1_000;

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('starts so many at once, the others in the order they came, well or not', async () => {
  const { started, come } = make();
  const all = ['a', 'b', 'c', 'd'].map((name) => come(name));
  await turn();
  assert.equal([...started.keys()], ['a', 'b']);
  started.get('b')?.reject(queueFull('b'));
  assert.is(await codeOf(all[1] ?? Promise.resolve()), 'QUEUE_FULL');
  assert.equal([...started.keys()], ['a', 'b', 'c']);
  started.get('a')?.resolve('a is up');
  assert.is(await all[0], 'a is up');
  assert.equal([...started.keys()], ['a', 'b', 'c', 'd']);
});

test('lets nobody in between who comes while a place is handed on', async () => {
  const { line, started, come } = make();
  for (const name of ['a', 'b', 'c']) void come(name);
  started.get('a')?.resolve('');
  await Promise.resolve();
  void come('d');
  await turn();
  assert.equal([[...started.keys()], line.starting, line.waiting], [['a', 'b', 'c'], 2, 1]);
});

test('counts down to nothing', async () => {
  const { line, started, come } = make();
  const all = ['a', 'b', 'c'].map((name) => come(name));
  for (const name of ['a', 'b', 'c']) {
    await turn();
    started.get(name)?.resolve('');
  }
  await Promise.all(all);
  assert.equal([line.starting, line.waiting], [0, 0]);
});

test('starts nothing for who is called off while waiting, and others move up', async () => {
  const { line, started, come } = make();
  const caller = new AbortController();
  void come('a');
  void come('b');
  const called = come('c', caller.signal);
  void come('d');
  caller.abort();
  assert.is(await codeOf(called), 'QUEUE_FULL');
  started.get('a')?.resolve('');
  await turn();
  assert.equal([[...started.keys()], line.waiting], [['a', 'b', 'd'], 0]);
  assert.is(await codeOf(come('e', AbortSignal.abort())), 'QUEUE_FULL', 'it did not even join');
});

test('lets nobody wait longer than it has patience', async () => {
  const { started, come } = make();
  void come('a');
  void come('b');
  const tired = codeOf(come('c'));
  mock.timers.tick(PATIENCE_MS);
  assert.is(await tired, 'BACKEND_UNAVAILABLE');
  assert.equal([...started.keys()], ['a', 'b']);
});

test.run();

function make() {
  const line = new StartLine({ atOnce: 2, patienceMs: PATIENCE_MS });
  const started = new Map<string, PromiseWithResolvers<string>>();
  /** Comes to the line; what it starts is settled through `started`. */
  const come = (name: string, signal = new AbortController().signal): Promise<string> => {
    const start = (): Promise<string> => {
      const running = Promise.withResolvers<string>();
      started.set(name, running);
      return running.promise;
    };
    return line.take(signal, () => queueFull('called off'), start);
  };
  return { line, started, come };
}
