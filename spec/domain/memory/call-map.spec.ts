// CallMap and LinkedSet compared with Map and Set, and the garbage that they leave to minor collections.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { CallMap } from '../../../src/domain/memory/call-map.ts';
import { type Linked, LinkedSet } from '../../../src/domain/memory/linked-set.ts';
import { seeded } from '../../balancing/candidates.ts';
import { collectGarbage } from '../../helpers/garbage.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call map');

class Item implements Linked {
  links: Linked['links'];
  readonly id: number;
  readonly content = new Array(1_000).fill(0);

  constructor(id: number) {
    this.id = id;
  }
}

test('distinguishes ids that are numbers, strings and large integers', () => {
  const map = new CallMap<string>();
  const ids = [1, '1', 1n, -1, 1.5, '', ':1', '1n', '__proto__', 'constructor', 2n ** 70n];
  for (const id of ids) {
    assert.equal([map.get(id), map.has(id), map.delete(id)], [undefined, false, false], String(id));
    map.set(id, `first ${typeof id} ${id}`);
    map.set(id, `${typeof id} ${id}`);
  }
  assert.equal([map.size, map.values().length], [ids.length, ids.length]);
  for (const id of ids) assert.is(map.get(id), `${typeof id} ${id}`);
  for (const id of ids) assert.equal([map.delete(id), map.has(id)], [true, false], String(id));
  assert.equal([map.size, map.values()], [0, []]);
});

test('behaves like a Map for any sequence of changes', () => {
  const random = seeded(7);
  const map = new CallMap<number>();
  const expected = new Map<number, number>();
  for (let step = 0; step < 5_000; step += 1) {
    // Numbers that count up, some that need the same place, and some that get none.
    const id = [step % 40, 1_024 * Math.floor(random() * 5), random() < 0.5 ? -1 : 0.5][step % 3] ?? 0;
    if (random() < 0.5) {
      map.set(id, step);
      expected.set(id, step);
    } else assert.is(map.delete(id), expected.delete(id));
    assert.equal([map.size, map.get(id)], [expected.size, expected.get(id)]);
  }
  assert.equal(map.values().sort(), [...expected.values()].sort());
});

test('LinkedSet behaves like a Set, in insertion order, for any sequence of changes', () => {
  const random = seeded(8);
  const items = Array.from({ length: 30 }, (_, id) => new Item(id));
  const set = new LinkedSet<Item>();
  const expected = new Set<Item>();
  for (let step = 0; step < 5_000; step += 1) {
    const item = items[Math.floor(random() * items.length)] as Item;
    if (random() < 0.5) {
      set.add(item);
      expected.add(item);
    } else assert.is(set.delete(item), expected.delete(item));
    const found = [set.size, set.has(item), set.first?.id];
    assert.equal(found, [expected.size, expected.has(item), [...expected][0]?.id]);
    const order = set.values().map(({ id }) => id);
    const expectedOrder = [...expected].map(({ id }) => id);
    assert.equal(order, expectedOrder);
  }
  set.clear();
  assert.equal([set.size, set.first, set.values()], [0, undefined, []]);
  assert.ok(items.every(({ links }) => links === undefined));
});

test('leaves deleted objects to minor collections, even when the map itself is old', async () => {
  const map = new CallMap<Item>();
  const leftByMap = await bytesLeft(
    (item) => map.set(item.id, item),
    ({ id }) => map.delete(id),
  );
  const set = new LinkedSet<Item>();
  const leftBySet = await bytesLeft(
    (item) => set.add(item),
    (item) => set.delete(item),
  );
  // A Map and a Set leave nearly all of the 8 MB.
  assert.ok(leftByMap < 1_000_000 && leftBySet < 1_000_000, `${leftByMap}, ${leftBySet}`);
});

test.run();

/** The bytes that minor collections leave of 1,000 objects of 8 kB, each added and, sixteen objects later, deleted. */
async function bytesLeft(add: (item: Item) => void, remove: (item: Item) => void): Promise<number> {
  const present: Item[] = [];
  const come = (id: number): void => {
    const item = new Item(id);
    add(item);
    present.push(item);
    const oldest = present.length > 16 ? present.shift() : undefined;
    if (oldest !== undefined) remove(oldest);
  };
  for (let id = 0; id < 100; id += 1) come(id);
  // The map and its objects are old from then on.
  for (let time = 0; time < 2; time += 1) collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let id = 100; id < 1_100; id += 1) come(id);
  for (const item of present.splice(0)) remove(item);
  for (let time = 0; time < 3; time += 1) {
    await turn();
    collectGarbage({ type: 'minor' });
  }
  return process.memoryUsage().heapUsed - before;
}
