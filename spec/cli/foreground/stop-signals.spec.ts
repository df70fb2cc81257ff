// Signals and uncaught errors that end the program, or a command that follows something.

import { EventEmitter } from 'node:events';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { listenForStop, untilSignal } from '../../../src/cli/foreground/stop-signals.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('stop signals');

test('treats the same signal within half a second as one', async () => {
  const { source, stop, clock } = listen();
  source.emit('SIGINT', 'SIGINT');
  clock.nowMs += 499;
  source.emit('SIGINT', 'SIGINT');
  assert.is(await isPending(stop.urgent), true);
});

test('treats a later signal as urgent, with its exit code', async () => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const { source, stop, clock } = listen();
    source.emit('SIGTERM', 'SIGTERM');
    assert.equal(await stop.first, { cause: 'SIGTERM', exitCode: 0 });
    clock.nowMs += 500;
    source.emit(signal, signal);
    assert.is(await stop.urgent, code);
  }
});

test('a signal during the wait ends the wait, and the next one is urgent', async () => {
  const { source, stop, clock } = listen();
  source.emit('SIGTERM', 'SIGTERM');
  const waited = stop.wait(60_000);
  source.emit('SIGTERM', 'SIGTERM');
  assert.is(await isPending(waited), true);
  clock.nowMs += 500;
  source.emit('SIGTERM', 'SIGTERM');
  await waited;
  source.emit('SIGTERM', 'SIGTERM');
  assert.is(await isPending(stop.urgent), true);
  clock.nowMs += 500;
  source.emit('SIGTERM', 'SIGTERM');
  assert.is(await stop.urgent, 143);
});

test('reports up to 100 uncaught errors, and requests the stop at the first', async () => {
  const { source, stop, errors } = listen();
  const [one, two] = [new Error('one'), new Error('two')];
  source.emit('uncaughtException', one);
  source.emit('unhandledRejection', two);
  assert.equal(await stop.first, { cause: 'an uncaught error', exitCode: 1 });
  assert.equal(errors, [one, two]);
  for (let index = 0; index < 1_000; index += 1) source.emit('uncaughtException', index);
  assert.is(errors.length, 100);
});

test('survives a failing error report', async () => {
  const source = new EventEmitter();
  const failing = () => {
    throw new Error('the report failed');
  };
  const stop = listenForStop(failing, { source });
  assert.not.throws(() => source.emit('uncaughtException', new Error('one')));
  assert.is((await stop.first).exitCode, 1);
});

test('does not treat a signal after an uncaught error as urgent', async () => {
  const { source, stop, clock } = listen();
  source.emit('uncaughtException', new Error('one'));
  clock.nowMs += 10_000;
  source.emit('SIGTERM', 'SIGTERM');
  assert.is(await isPending(stop.urgent), true);
});

test('stops at SIGHUP with a terminal, but not under nohup', async () => {
  const foreground = listen({ hasTerminal: true });
  foreground.source.emit('SIGHUP', 'SIGHUP');
  assert.equal(await foreground.stop.first, { cause: 'SIGHUP', exitCode: 0 });
  const background = listen({ hasTerminal: false });
  background.source.emit('SIGHUP', 'SIGHUP');
  assert.is(await isPending(background.stop.first), true);
});

test('treats a Ctrl-C that arrives twice, by the terminal and by npm, as one', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const before = process.listenerCount('SIGINT');
    await untilSignal(async (signal) => {
      for (const name of ['SIGINT', 'SIGINT'] as const) {
        process.emit(name);
        assert.equal([signal.aborted, process.listenerCount('SIGINT')], [true, before + 1]);
      }
      mock.timers.tick(500);
      assert.is(process.listenerCount('SIGINT'), before, 'the next one ends the process');
    });
    await untilSignal(async () => {});
    assert.is(process.listenerCount('SIGINT'), before);
    await untilSignal(async () => void process.emit('SIGINT'));
    assert.is(
      process.listenerCount('SIGINT'),
      before + 1,
      'the same Ctrl-C may arrive again while the process ends',
    );
    mock.timers.tick(500);
    assert.is(process.listenerCount('SIGINT'), before);
  } finally {
    mock.timers.reset();
  }
});

test.run();

function listen({ hasTerminal = true } = {}) {
  const source = new EventEmitter();
  const clock = { nowMs: 1000 };
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const stop = listenForStop(onError, { source, hasTerminal, now: () => clock.nowMs });
  return { source, clock, errors, stop };
}

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
}
