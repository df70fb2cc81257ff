// Which entries a full map evicts, in total and per owner.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import { LruMap, QuotaLruMap } from '../../src/domain/lru-map.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('LRU maps');

test('report only evicted values, not replaced or deleted ones', () => {
  const forgotten: string[] = [];
  const map = new LruMap<string>(1, (value) => forgotten.push(value));
  map.set('a', 'a');
  map.set('a', 'x');
  map.set('b', 'b');
  map.delete('b');
  map.delete('none');
  assert.equal([forgotten, [...map.values()]], [['x'], []]);
});

function put(map: QuotaLruMap<string>, ownerId: string, ...keys: readonly string[]): void {
  for (const key of keys) map.set(ownerId, key, `${ownerId} ${key}`);
}

const keysOf = (map: QuotaLruMap<string>, ownerId: string, keys: string) =>
  [...keys].filter((key) => map.get(ownerId, key) !== undefined).join('');

test('keep entries of different owners apart', () => {
  const map = new QuotaLruMap<string>(8);
  put(map, 'ann', 'a');
  put(map, 'eve', 'a');
  const found = [map.get('ann', 'a'), map.get('eve', 'a'), map.get('eve', 'b')];
  assert.equal(found, ['ann a', 'eve a', undefined]);
  put(map, 'eve', 'a');
  assert.is(map.size, 2);
});

test('evict the least recently used entry of an owner with more than a quarter', () => {
  const forgotten: string[] = [];
  const map = new QuotaLruMap<string>(12, (value) => forgotten.push(value));
  put(map, 'ann', 'a');
  put(map, 'eve', 'a', 'b', 'c');
  map.get('eve', 'a');
  put(map, 'eve', 'd', 'e', 'f');
  assert.equal([keysOf(map, 'ann', 'a'), keysOf(map, 'eve', 'abcdef')], ['a', 'def']);
  assert.equal([map.size, forgotten], [4, ['eve b', 'eve c', 'eve a']]);
});

test('evict an entry of the owner with the most entries when full', () => {
  const map = new QuotaLruMap<string>(8);
  put(map, 'dan', 'a');
  for (const owner of ['ann', 'bob', 'cat']) put(map, owner, 'a', 'b');
  put(map, 'eve', 'a', 'b');
  assert.equal([map.size, keysOf(map, 'dan', 'a'), keysOf(map, 'ann', 'ab')], [8, 'a', 'b']);
  for (let number = 0; number < 10; number += 1) put(map, `owner ${number}`, 'a');
  assert.equal([map.size, keysOf(map, 'dan', 'a')], [8, '']);
});

test('have no quota for anonymous callers', () => {
  const map = new QuotaLruMap<string>(8);
  put(map, ANONYMOUS.id, ...'abcdefghij');
  assert.equal([map.size, keysOf(map, ANONYMOUS.id, 'abcdefghij')], [8, 'cdefghij']);
});

test.run();
