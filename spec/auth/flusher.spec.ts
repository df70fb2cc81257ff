import { mock } from 'node:test';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { Flusher } from '../../src/auth/flusher.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('writing behind');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('writes once after the delay, however often it is asked', async () => {
  const { flusher, writes } = made();
  flusher.later();
  mock.timers.tick(900);
  flusher.later();
  assert.is(writes.length, 0);
  mock.timers.tick(100);
  await turns();
  assert.is(writes.length, 1);
  mock.timers.tick(10_000);
  assert.is(writes.length, 1);
});

test('writes again after the delay while something is left', async () => {
  const { flusher, writes } = made();
  flusher.later();
  mock.timers.tick(1_000);
  writes[0]?.(true);
  await turns();
  mock.timers.tick(1_000);
  await turns();
  assert.is(writes.length, 2);
  writes[1]?.(false);
  await turns();
  mock.timers.tick(10_000);
  assert.is(writes.length, 2);
});

test('never writes twice at a time, and all who come during a writing share the next one', async () => {
  const { flusher, writes } = made();
  const ends: string[] = [];
  const ask = (name: string) => flusher.now().then(() => ends.push(name));
  void ask('first');
  for (const name of ['a', 'b', 'c']) void ask(name);
  await turns();
  assert.is(writes.length, 1);
  void ask('d');
  writes[0]?.(false);
  await turns();
  assert.equal([ends, writes.length], [['first'], 2]);
  void ask('e');
  writes[1]?.(false);
  await turns();
  assert.equal([ends, writes.length], [['first', 'a', 'b', 'c', 'd'], 3]);
  writes[2]?.(false);
  await turns();
  assert.equal([ends.at(-1), writes.length], ['e', 3]);
});

test('in whatever order it is asked: one writing at a time, and each caller is served by one that began later', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom('now', 'end', 'turn'), { maxLength: 40 }), async (steps) => {
      const { flusher, writes } = made();
      let ended = 0;
      const served: Promise<void>[] = [];
      for (const step of steps) {
        if (step === 'now') {
          const begun = writes.length;
          served.push(flusher.now().then(() => assert.ok(ended > begun)));
        } else if (step === 'turn') await turns();
        else if (ended < writes.length) {
          writes[ended]?.(false);
          ended += 1;
        }
        assert.ok(writes.length - ended <= 1);
      }
      await turns();
      while (ended < writes.length) {
        writes[ended]?.(false);
        ended += 1;
        await turns();
      }
      await Promise.all(served);
      assert.ok(writes.length <= served.length);
    }),
    { numRuns: 50 },
  );
});

test('a last writing ends the writing, and one that never ends does not hold up the end', async () => {
  const { flusher, writes } = made();
  flusher.later();
  const closing = flusher.close();
  assert.is(writes.length, 1);
  writes[0]?.(true);
  await closing;
  mock.timers.tick(10_000);
  flusher.later();
  mock.timers.tick(10_000);
  assert.is(writes.length, 1);

  const hanging = made();
  const end = hanging.flusher.close();
  mock.timers.tick(5_000);
  await end;
});

/** A flusher of a second; `writes` holds the ends of its writings. */
function made() {
  const writes: ((isSomethingLeft: boolean) => void)[] = [];
  const flusher = new Flusher(1_000, () => new Promise((resolve) => writes.push(resolve)));
  return { flusher, writes };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test.run();
