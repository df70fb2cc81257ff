import * as assert from 'uvu/assert';
import { LruMap } from '../../src/protocol/lru-map.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('recent map');

function filled(most: number, ...keys: readonly string[]): LruMap<string> {
  const map = new LruMap<string>(most);
  for (const key of keys) map.set(key, key);
  return map;
}

test('forgets what was put in first', () => {
  const map = filled(2, 'a', 'b', 'c');
  assert.equal([map.size, map.get('a'), map.get('b'), map.get('c')], [2, undefined, 'b', 'c']);
});

test('keeps what is read or put in again', () => {
  for (const use of [(map: LruMap<string>) => map.get('a'), (map: LruMap<string>) => map.set('a', 'a')]) {
    const map = filled(2, 'a', 'b');
    use(map);
    map.set('c', 'c');
    assert.equal([...map.values()], ['a', 'c']);
  }
});

test('forgets the oldest when it is told to, and says so', () => {
  const forgotten: string[] = [];
  const map = new LruMap<string>(3, (value) => forgotten.push(value));
  for (const key of ['a', 'b']) map.set(key, key);
  for (let time = 0; time < 3; time += 1) map.forgetOldest();
  assert.equal([map.size, forgotten], [0, ['a', 'b']]);
});

test('does not take a look at all of them for use', () => {
  const map = filled(2, 'a', 'b');
  assert.equal([...map.values()], ['a', 'b']);
  map.set('c', 'c');
  assert.equal([...map.values()], ['b', 'c']);
});

test('replaces and removes', () => {
  const map = filled(2, 'a', 'b');
  map.set('a', 'x');
  map.delete('b');
  map.delete('none');
  assert.equal([...map.values()], ['x']);
});

test('tells what it forgot, not what was removed or replaced', () => {
  const forgotten: string[] = [];
  const map = new LruMap<string>(1, (value) => forgotten.push(value));
  map.set('a', 'a');
  map.set('a', 'x');
  map.set('b', 'b');
  map.delete('b');
  assert.equal(forgotten, ['x']);
});

test.run();
