// How much the collections of the young generation copy, with a simulated heap that collects itself when it is full, as V8 does.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { shortenCollections, type YoungHeap } from '../../src/cli/young-garbage.ts';
import { simulatedClock, simulateTime } from '../helpers/simulated-time.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('young garbage');
let heap: SimulatedHeap;
simulateTime(test, () => {
  heap = new SimulatedHeap();
  shortenCollections(heap, simulatedClock);
});

const MB = 1e6;
const FULL_BYTES = 32 * MB;

test('without many that live, the heap collects when it is full', () => {
  load({ seconds: 10, livingBytes: 0.2 * MB });
  assert.ok(heap.copied.length > 20);
  assert.equal(heap.early, 0);
});

test('while thousands of calls wait, no collection copies more than a part of them', () => {
  load({ seconds: 1, livingBytes: 40 * MB });
  heap.copied.length = 0;
  load({ seconds: 1, livingBytes: 40 * MB });
  assert.ok(heap.copied.length > 20);
  assert.ok(Math.max(...heap.copied) < 8 * MB, `${Math.max(...heap.copied)} bytes`);
});

test('they are old before they end', () => {
  load({ seconds: 1, livingBytes: 60 * MB });
  mock.timers.tick(5_000);
  heap.copied.length = 0;
  heap.collect();
  assert.equal(heap.copied, [0]);
});

test('once few live, the heap collects when it is full', () => {
  load({ seconds: 1, livingBytes: 60 * MB });
  load({ seconds: 3, livingBytes: 0 });
  const { early } = heap;
  load({ seconds: 5, livingBytes: 0 });
  assert.ok(early > 20);
  assert.is(heap.early, early);
});

test('nothing runs at rest', () => {
  load({ seconds: 1, livingBytes: 60 * MB });
  mock.timers.tick(5_000);
  const { early } = heap;
  mock.timers.tick(3_600_000);
  assert.is(heap.early, early);
});

/** Allocates 100 MB a second, of which this much lives at the end. */
function load({ seconds, livingBytes }: { readonly seconds: number; readonly livingBytes: number }): void {
  const turns = seconds * 200;
  for (let turn = 0; turn < turns; turn += 1) {
    heap.allocate(0.5 * MB, livingBytes / turns);
    mock.timers.tick(5);
  }
}

class SimulatedHeap implements YoungHeap {
  readonly copied: number[] = [];
  /** Collections before it was full. */
  early = 0;
  #dead = 0;
  #living = 0;
  /** Lived through one collection. */
  #survivors = 0;
  #onCollected = (): void => {};

  used(): number {
    return this.#dead + this.#living + this.#survivors;
  }

  observe(onCollected: () => void): void {
    this.#onCollected = onCollected;
  }

  collect(): void {
    if (this.used() < FULL_BYTES) this.early += 1;
    this.copied.push(this.#living + this.#survivors);
    this.#survivors = this.#living;
    this.#living = 0;
    this.#dead = 0;
    this.#onCollected();
  }

  allocate(bytes: number, livingBytes: number): void {
    this.#living += livingBytes;
    this.#dead += bytes - livingBytes;
    if (this.used() >= FULL_BYTES) this.collect();
  }
}

test.run();
